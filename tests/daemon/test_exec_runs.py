"""Exec actions from the outbox to their end: environment, limits, output, prechecks, stopping, adoption."""

import asyncio
import contextlib
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from loops_city import Loops
from test_agent_runs import finished

from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.runs.completion import NotAnAgents, parse
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.commands import OUTPUT_BYTES, CommandNotStopped
from lamplighter.services.automations import definitions
from lamplighter.services.automations.firing import ByHand
from lamplighter.services.deliveries.receiving import keep
from lamplighter.services.runs import completing, review
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow


async def labels(loops: Loops, run: str) -> tuple[str, ...]:
    row = await loops.get(run)
    bead = await loops.store.read(lambda tx: tx.beads.get(row.bead))
    assert bead is not None
    return bead.labels


async def told(loops: Loops, *types: str) -> list[str]:
    found = await loops.store.read(lambda tx: tx.events.after(0))
    return [event.type for event in found if event.type in types]


ENDS = ("automation.fired", "automation.completed", "automation.failed")


async def test_case_17_success_and_failure_with_their_labels_and_events(loops: Loops) -> None:
    await loops.add("good", exec="echo hello")
    await loops.add("bad", exec="echo no >&2; exit 3")
    good, bad = await loops.work("good"), await loops.work("bad")
    assert (good.state, good.exit_code, good.output_tail) == (RunState.SUCCEEDED, 0, "hello\n")
    assert (bad.state, bad.reason, bad.exit_code, bad.error) == (RunState.FAILED, "exit_3", 3, "no")
    assert await labels(loops, good.id) == ("automation-run:good", "exec")
    assert await labels(loops, bad.id) == ("automation-run:bad", "exec", "exec-failed")
    fired, completed, failed = ENDS
    assert await told(loops, *ENDS) == [fired, completed, fired, failed]


async def test_case_18_the_child_sees_its_directory_its_run_and_its_trigger(loops: Loops, tmp_path: Path) -> None:
    from lamplighter.adapters.files.automations import LayerDirectory, scan

    folder = tmp_path / "layer" / "automations" / "where"
    folder.mkdir(parents=True)
    line = "echo $AUTOMATION_DIR $LAMP_RUN_ID $LAMP_RIG $PWD; cat $LAMP_TRIGGER_FILE"
    (folder / "automation.toml").write_text(f'[automation]\nexec = "{line}"\ngate = "manual"\n')
    found = scan([LayerDirectory(tmp_path / "layer", "web")])
    await loops.store.transact(definitions.sync, found, loops.rules, ctx=loops.context)
    row = await loops.work("where:rig:web", why="test")
    first, _, rest = row.output_tail.partition("\n")
    assert first.split() == [str(folder), row.id, "web", str(tmp_path / "web")]
    trigger = json.loads(rest)
    assert (trigger["automation"], trigger["trigger"]) == ("where:rig:web", {"id": "manual", "kind": "manual"})
    assert (trigger["payload"], trigger["events"], trigger["slot"]) == ({"why": "test"}, [], None)
    assert row.bead is not None
    assert row.bead.startswith("we-")


TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.mark.parametrize(("sent", "seen"), [(TRACE, TRACE), ("nonsense", "none"), ("", "none")])
async def test_a_command_joins_the_trace_of_the_delivery_that_fired_it(loops: Loops, sent: str, seen: str) -> None:
    now = loops.clock.now()
    hook = ConnectionRow("ci", Provider.BEARER, "", (), (), (), now, "ada")
    assert await loops.store.transact(lambda tx: tx.connections.add(hook))
    await loops.add("job", exec="echo ${TRACEPARENT:-none}", gate="webhook", connection="ci")
    came = DeliveryRow("dlv_1", "ci", None, {"traceparent": sent} if sent else {}, "{}", now)
    await loops.store.transact(keep, came, loops.context)
    await loops.parts.dispatcher.drain()
    (run,) = await loops.store.read(lambda tx: tx.runs.page(automation="job", limit=2))
    assert (run.state, run.output_tail) == (RunState.SUCCEEDED, f"{seen}\n")


async def test_an_agent_joins_the_trace_of_the_delivery_that_fired_it(loops: Loops) -> None:
    now = loops.clock.now()
    hook = ConnectionRow("ci", Provider.BEARER, "", (), (), (), now, "ada")
    assert await loops.store.transact(lambda tx: tx.connections.add(hook))
    script = {"prompt": 'echo "$TRACEPARENT" > "$LAMP_CITY/seen"', "preset": "shell"}
    await loops.add("job", agent=script, gate="webhook", connection="ci")
    came = DeliveryRow("dlv_1", "ci", None, {"traceparent": TRACE}, '{"title": "Out"}', now)
    await loops.store.transact(keep, came, loops.context)
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    (run,) = await loops.store.read(lambda tx: tx.runs.page(automation="job", limit=2))
    await finished(loops, run.id)
    assert (loops.root / "seen").read_text() == f"{TRACE}\n"


async def test_case_19_a_command_past_its_limit_is_ended_with_its_children(loops: Loops) -> None:
    await loops.add("stuck", exec="sleep 4711 & (setsid sleep 4711 &) ; sleep 4711", timeout="300ms")
    row = await loops.work("stuck")
    assert (row.state, row.reason, row.exit_code) == (RunState.FAILED, "timeout", None)
    assert loops.sleepers() == []


async def _largest(home: Path, ended: asyncio.Event) -> int:
    """The most that a command's output took on the disk, looked at every few milliseconds."""
    largest = 0
    while not await SystemClock().wait(ended, at_most=timedelta(milliseconds=5)):
        with contextlib.suppress(FileNotFoundError):  # not there yet, or put away already: the directory too
            for path in home.glob("output*"):
                largest = max(largest, path.stat().st_blocks * 512)
    return largest


async def test_an_action_that_prints_a_gigabyte_fills_neither_memory_nor_disk(loops: Loops) -> None:
    await loops.add("loud", exec="yes 0123456789abcde | head -c 1073741824; echo the end", timeout="60s")
    run = await loops.fire("loud")
    ended = asyncio.Event()
    measuring = asyncio.create_task(_largest(loops.root / ".gc" / "commands" / run, ended))
    await loops.parts.dispatcher.drain()
    ended.set()
    largest = await measuring
    row = await loops.get(run)
    assert row.state is RunState.SUCCEEDED
    assert row.output_tail.endswith("the end\n")
    assert len(row.output_tail) <= OUTPUT_BYTES
    assert 0 < largest < 1 << 30
    assert list((loops.root / ".gc" / "commands").iterdir()) == []


@pytest.mark.parametrize(("code", "state", "reason"), [
    (0, RunState.SUCCEEDED, ""), (75, RunState.SKIPPED, "nothing_to_do"), (1, RunState.FAILED, "precheck_failed"),
])  # fmt: skip
async def test_a_precheck_decides_whether_the_action_runs(
    loops: Loops, code: int, state: RunState, reason: str
) -> None:
    await loops.add("careful", exec="touch ran", precheck=f"exit {code}")
    row = await loops.work("careful")
    assert (row.state, row.reason) == (state, reason)
    assert (loops.root / "ran").exists() == (code == 0)


async def test_case_12_a_directory_that_vanished_is_skipped_and_counts_until_it_disables(loops: Loops) -> None:
    (loops.root / "web").rmdir()
    await loops.add("gone", exec="true", rig="web", gate="cooldown", interval="1ms")
    for _ in range(5):
        await loops.parts.scheduler.tick()
        await loops.parts.dispatcher.drain()
    row = await loops.store.read(lambda tx: tx.automations.named("gone:rig:web"))
    assert row is not None
    assert (row.enabled, row.failures) == (False, 5)
    found = await loops.store.read(lambda tx: tx.runs.page())
    assert {(one.state, one.reason) for one in found} == {(RunState.SKIPPED, "project_missing")}
    assert await told(loops, "automation.disabled") == ["automation.disabled"]


async def test_stopping_the_city_ends_what_runs_as_interrupted(loops: Loops) -> None:
    await loops.add("long", exec="echo begun; sleep 4711")
    run = await loops.fire("long")
    await loops.parts.dispatcher.tick()
    await loops.until(lambda: _running(loops, run))
    await _output(loops, run, "begun")
    await loops.parts.dispatcher.stop()
    row = await loops.get(run)
    assert (row.state, row.reason, row.output_tail) == (RunState.FAILED, "interrupted", "begun\n")
    assert loops.sleepers() == []


async def _running(loops: Loops, run: str) -> bool:
    return (await loops.get(run)).state is RunState.RUNNING


async def _output(loops: Loops, run: str, text: str) -> None:
    async with asyncio.timeout(30):
        while text not in await loops.runner.tail(run):
            await asyncio.to_thread(os.sched_yield)


async def _begun_and_cancelled(loops: Loops, name: str) -> str:
    run = await loops.fire(name)
    await loops.parts.dispatcher.tick()
    await _output(loops, run, "begun")
    watching = asyncio.create_task(loops.parts.worker.loop())
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    async with asyncio.timeout(30):
        await loops.parts.worker.tasks.all_done()
    watching.cancel()
    return run


async def test_the_deadline_of_a_command_is_kept_to_the_second_and_its_output_too(loops: Loops) -> None:
    """Nobody ticks here: whoever runs it sees to it."""
    await loops.add("late", exec="echo I was here; sleep 4711", deadline="1s")
    row = await loops.work("late")
    assert (row.state, row.reason, row.output_tail) == (
        RunState.TIMED_OUT, "deadline_exceeded", "I was here\n",
    )  # fmt: skip
    assert "its deadline came" in row.error
    assert loops.sleepers() == []


async def test_a_cancelled_run_keeps_what_its_command_had_said(loops: Loops) -> None:
    await loops.add("long", exec="echo begun; sleep 4711")
    run = await _begun_and_cancelled(loops, "long")
    row = await loops.get(run)
    assert (row.state, row.output_tail) == (RunState.CANCELED, "begun\n")
    assert row.duration is not None


async def test_a_cancelled_run_is_stopped_although_its_output_cannot_be_read(
    loops: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_run: str) -> str:
        raise OSError("no such disk")

    await loops.add("long", exec="echo begun; sleep 4711")
    monkeypatch.setattr(loops.parts.worker.runner, "tail", unreadable)
    run = await loops.fire("long")
    await loops.parts.dispatcher.tick()
    await loops.until(lambda: asyncio.to_thread(lambda: bool(loops.sleepers())))
    watching = asyncio.create_task(loops.parts.worker.loop())
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    async with TimeLimit(30):
        await loops.parts.worker.tasks.all_done()
    watching.cancel()
    assert loops.sleepers() == []
    assert await loops.parts.worker.runner.kept() == []


async def test_a_command_is_not_completed_by_word(loops: Loops) -> None:
    await loops.add("long", exec="sleep 4711")
    run = await loops.fire("long")
    said = parse({"run_id": run, "completion_id": "cmp_1", "outcome": "succeeded"})
    with pytest.raises(NotAnAgents, match="ends when its command"):
        await loops.store.transact(completing.complete, said, session=None, ctx=loops.context)
    assert (await loops.get(run)).state is RunState.READY


async def test_a_run_that_waits_for_its_place_can_be_cancelled(loops: Loops) -> None:
    """It is called running, for whoever fired it started it; its command never runs."""
    loops.parts.worker._room._places = asyncio.Semaphore(1)
    await loops.add("long", exec="echo $LAMP_RUN_ID >> ran; sleep 4711", overlap="allow")
    watching = asyncio.create_task(loops.parts.worker.loop())
    first, second = [(await loops.parts.worker.fire(ByHand("long"), ctx=loops.context)).run for _ in range(2)]
    ran = loops.root / "ran"
    await loops.until(lambda: asyncio.to_thread(ran.exists))
    assert (await loops.get(second)).state is RunState.RUNNING
    for run in (second, first):
        await loops.store.transact(review.cancel, run, ctx=loops.context)
    async with asyncio.timeout(30):  # half of what the next look without a wake-up would take
        await loops.parts.worker.tasks.all_done()
    watching.cancel()
    assert ran.read_text().split() == [first]
    assert {(await loops.get(run)).state for run in (first, second)} == {RunState.CANCELED}


async def test_cancelling_a_run_ends_its_processes_at_once(loops: Loops) -> None:
    await loops.add("long", exec="echo begun; sleep 4711")
    run = await _begun_and_cancelled(loops, "long")
    assert (await loops.get(run)).state is RunState.CANCELED
    assert loops.sleepers() == []
    assert list((loops.root / ".gc" / "commands").iterdir()) == []


async def test_case_21_cooking_that_fails_is_told_and_the_others_run(loops: Loops) -> None:
    await loops.add("broken", formula="missing")
    await loops.add("fine", formula="feature", pool="crew")
    broken, fine = await loops.work("broken"), await loops.work("fine")
    assert (broken.state, broken.reason) == (RunState.FAILED, "cook_failed")
    assert "missing" in broken.error
    assert (fine.state, fine.wisp is not None) == (RunState.RUNNING, True)


async def test_case_18_a_bug_in_one_item_is_kept_on_it_and_the_process_lives(loops: Loops) -> None:
    await loops.add("good", exec="true")
    odd = """INSERT INTO outbox (city_id, id, kind, payload, state, due_at)
        VALUES (:city, 'out_0', 'odd', '{}', 'pending', 0)"""
    await loops.store.transact(lambda tx: tx.db.execute(odd, {"city": tx.city}))
    row = await loops.work("good")
    assert row.state is RunState.SUCCEEDED
    item = await loops.store.read(lambda tx: tx.db.row("SELECT state, last_error FROM outbox WHERE id = 'out_0'", {}))
    assert item is not None
    assert (item["state"], item["last_error"]) == ("failed", "`odd` is not a kind of outbox item")


async def test_a_command_that_could_not_be_stopped_is_stopped_at_the_next_try(
    loops: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, failures = loops.parts.worker.runner.stop, [CommandNotStopped("it"), OSError("too many files")]

    async def fails_at_first(key: str, *, grace: timedelta) -> None:
        if failures:
            raise failures.pop()
        await stop(key, grace=grace)

    await loops.add("long", exec="echo begun; sleep 4711")
    monkeypatch.setattr(loops.parts.worker.runner, "stop", fails_at_first)
    run = await _begun_and_cancelled(loops, "long")
    assert (await loops.get(run)).state is RunState.CANCELED
    assert loops.sleepers() == []
