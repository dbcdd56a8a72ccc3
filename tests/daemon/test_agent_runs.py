"""Agent runs with real sessions: a shell for an agent, started once, followed, judged, stopped with all its tree."""

import asyncio
import io
import json
import os
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from loops_city import Loops, open_loops

from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.daemon.retention import RunRetention
from lamplighter.domain.access import of_run, owner
from lamplighter.domain.city.model import Configuration, Provider
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.runs.completion import TooLate, parse
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.runs.target import Selected
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit import log
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import to_json
from lamplighter.services import configurations, outbox, owners
from lamplighter.services.automations.operations import CREATE, CreateAutomation
from lamplighter.services.automations.queries import LIST, ListAutomations
from lamplighter.services.context import Configured, Context
from lamplighter.services.operation import judged
from lamplighter.services.runs import review, transcripts
from lamplighter.services.runs.operations import COMPLETE_RUN, completed
from lamplighter.services.runs.queries import ShowRun, show_run
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path, owners=("own_first", "own_second")) as found:
        yield found


async def add(loops: Loops, name: str, script: str, **keys: Any) -> None:
    agent = {"prompt": script, "preset": "shell"} | keys.pop("agent", {})
    await loops.add(name, agent=agent, **keys)


async def begin(loops: Loops, name: str) -> str:
    """Fire it, and let the loops work it aside until its session is up."""
    run = await loops.fire(name)
    await started(loops, run)
    return run


async def started(loops: Loops, run: str) -> None:
    for _ in range(3):
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()

    async def up() -> bool:
        row = await loops.get(run)
        return row.session_id is not None or row.ended is True

    await loops.until(up)


async def finished(loops: Loops, run: str) -> Run:
    watching = asyncio.create_task(loops.parts.worker.loop())
    async with asyncio.timeout(30):
        await loops.parts.dispatcher.drain()
    watching.cancel()
    await asyncio.wait({watching})
    return await loops.get(run)


def said(run: str, **changes: Any) -> Any:
    return parse(
        {"run_id": run, "completion_id": completion_id(run), "outcome": "succeeded", "summary_markdown": "Lit."}
        | changes
    )


async def complete(loops: Loops, run: str) -> None:
    ctx = changed(loops.context, actor=of_run(run))
    completed(await loops.store.transact(judged, COMPLETE_RUN, said(run), ctx))


async def types(loops: Loops, run: str) -> list[str]:
    shown = to_json(await loops.store.read(show_run, ShowRun(run), loops.context))
    return [one["type"] for one in shown["events"]]


async def test_a_program_that_ends_without_completing_has_failed_at_once(loops: Loops) -> None:
    await add(loops, "mute", "echo working; echo still working; exit 3")
    row = await loops.work("mute")
    assert (row.state, row.reason, row.exit_code) == (RunState.FAILED, "no_completion", 3)
    assert row.error.endswith("It wrote last: still working")
    told = await loops.store.read(transcripts.of_run, row.id)
    assert [one.body["text"] for one in told if one.kind == "text"] == ["working", "still working"]
    (session,) = await loops.store.read(lambda tx: tx.sessions.of_run(row.id))
    assert (session.exit_status, session.end_reason) == (3, "its program ended")
    assert list((loops.root / ".gc" / "runs").iterdir()) == []
    assert await loops.sessions.seen() == {}


async def test_a_completed_run_lets_its_program_finish_and_keeps_what_it_said_last(loops: Loops) -> None:
    os.mkfifo(loops.root / "go")
    await add(loops, "good", "echo begun; cat go; echo last words")
    run = await begin(loops, "good")
    await complete(loops, run)
    assert (await loops.get(run)).state is RunState.SUCCEEDED
    (loops.root / "go").write_text("")
    row = await finished(loops, run)
    assert (row.state, row.summary) == (RunState.SUCCEEDED, "Lit.")
    told = await loops.store.read(transcripts.of_run, run)
    assert [one.body["text"] for one in told if one.kind == "text"] == ["begun", "last words"]
    shown = to_json(await loops.store.read(show_run, ShowRun(run), loops.context))
    assert [one["name"] for one in shown["artifacts"]] == ["completion", "enrichment"]
    kept = json.loads(await loops.artifacts.get(f"runs/{run}/completion.json"))
    assert kept["summary_markdown"] == "Lit."
    assert await loops.sessions.seen() == {}


async def test_the_run_has_its_trigger_its_token_and_its_name(loops: Loops) -> None:
    script = (
        'cat "$LAMP_TRIGGER_FILE" > seen.json; ls -l "$LAMP_RUN_TOKEN_FILE" > mode; echo $LAMP_RUN_ID > name; exit 1'
    )
    await add(loops, "looks", script)
    run = await loops.fire("looks", what="lamps")
    row = await finished(loops, run)
    assert row.reason == "no_completion"
    assert json.loads((loops.root / "seen.json").read_text())["payload"] == {"what": "lamps"}
    assert (loops.root / "mode").read_text().startswith("-rw-------")
    assert (loops.root / "name").read_text().strip() == run


async def test_cancelling_ends_the_whole_tree(loops: Loops) -> None:
    await add(loops, "long", "setsid sleep 4711 & sh -c 'setsid sleep 4711 & wait' & sleep 4711")
    run = await begin(loops, "long")
    async with asyncio.timeout(20):
        while len(loops.sleepers()) < 3:  # noqa: ASYNC110  other processes set no event of ours
            await asyncio.sleep(0.01)
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    row = await finished(loops, run)
    assert row.state is RunState.CANCELED
    assert loops.sleepers() == []
    assert ("stop_session", "done") in await _items(loops, run)


async def _items(loops: Loops, run: str) -> list[tuple[str, str]]:
    found = await loops.store.read(
        lambda tx: tx.db.rows("SELECT kind, state FROM outbox WHERE run_id = :run", {"run": run})
    )
    return [(row["kind"], row["state"]) for row in found]


async def test_at_its_deadline_a_run_times_out_with_its_whole_tree(loops: Loops) -> None:
    await add(loops, "hangs", "setsid sleep 4711 & sleep 4711", deadline="1s")
    row = await loops.work("hangs")
    assert (row.state, row.reason) == (RunState.TIMED_OUT, "deadline_exceeded")
    assert loops.sleepers() == []
    with pytest.raises(TooLate):
        await complete(loops, row.id)


async def test_a_run_that_is_silent_for_too_long_is_ended_with_its_whole_tree(loops: Loops) -> None:
    await add(loops, "stuck", "echo thinking; setsid sleep 4711 & sleep 4711", idle_timeout="1s")
    row = await loops.work("stuck")
    assert (row.state, row.reason) == (RunState.FAILED, "idle")
    assert row.error == "Its session said nothing for 1s."
    assert "thinking" in row.output_tail
    assert loops.sleepers() == []
    with pytest.raises(TooLate):
        await complete(loops, row.id)


async def test_a_run_that_goes_on_talking_is_not_ended_for_silence(loops: Loops) -> None:
    """It speaks for longer than it may be silent."""
    await add(loops, "talks", "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.3; done; exit 9", idle_timeout="2s")
    row = await loops.work("talks")
    assert (row.reason, row.exit_code) == ("no_completion", 9)


async def test_a_silent_run_whose_worker_is_gone_is_ended_at_the_periodic_pass(loops: Loops) -> None:
    loops.parts.active.city = replace_runs(loops, idle_timeout=timedelta(seconds=1))
    await add(loops, "stuck", "sleep 4711")
    run = await begin(loops, "stuck")
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    spoke = (await loops.get(run)).last_activity_at
    assert spoke is not None
    rest = spoke + timedelta(seconds=1.1) - loops.clock.now()
    await loops.clock.wait(asyncio.Event(), at_most=max(rest, timedelta(0)))
    await loops.parts.finalizer.tick()
    assert (await loops.get(run)).reason == "idle"
    await loops.parts.dispatcher.drain()
    assert loops.sleepers() == []


async def test_stopping_the_city_interrupts_the_run_its_processes_first(loops: Loops) -> None:
    await add(loops, "long", "sleep 4711")
    run = await begin(loops, "long")
    await loops.parts.dispatcher.stop()
    row = await loops.get(run)
    assert (row.state, row.reason) == (RunState.FAILED, "interrupted")
    assert loops.sleepers() == []


async def test_case_20_of_schedules_a_run_outlives_its_worker_and_is_followed_by_the_next(loops: Loops) -> None:
    os.mkfifo(loops.root / "go")
    await add(loops, "long", "echo started >> starts; cat go; exit 7")
    run = await begin(loops, "long")
    first = loops.parts
    for task in set(first.worker.tasks.running):
        task.cancel()  # as a process that dies leaves it: nothing is written any more
    await first.worker.tasks.all_done()
    await loops.store.transact(owners.void, "own_first", ctx=loops.context)
    loops.parts = loops.build("own_second")
    await loops.parts.dispatcher.tick()
    assert "run_adopted" in await types(loops, run)
    (loops.root / "go").write_text("")
    row = await finished(loops, run)
    assert (row.state, row.reason, row.exit_code) == (RunState.FAILED, "no_completion", 7)
    assert (loops.root / "starts").read_text().split() == ["started"]
    assert (await types(loops, run)).count("session_created") == 1
    await first.close()


async def test_case_20_a_start_that_was_cut_off_before_it_was_told_is_taken_up(loops: Loops) -> None:
    """The session is up, and its worker died before it could say so."""
    await add(loops, "once", "echo started >> starts; exit 4")
    run = await begin(loops, "once")
    row = await finished(loops, run)
    assert row.reason == "no_completion"

    def as_if_its_holder_had_died_in_between(tx: Tx) -> None:
        tx.db.execute(
            "UPDATE runs SET state = 'running', ended_at = NULL, session_id = NULL, prompt_sent_at = NULL"
            " WHERE id = :run",
            {"run": run},
        )

    await loops.store.transact(as_if_its_holder_had_died_in_between)
    plan = await loops.parts.agents.plans.plan(row)
    place = await loops.parts.agents.places.place(row, plan)
    await loops.parts.agents._start(row, plan, place, {})
    assert await loops.parts.worker.adopt() == 1
    again = await finished(loops, run)
    assert (again.state, again.reason) == (RunState.FAILED, "no_completion")
    assert (loops.root / "starts").read_text().split() == ["started", "started"], "the second by this test, no third"


async def said_to(loops: Loops, run: str, text: str) -> bool:
    return text in await loops.parts.agents.sessions.peek(SessionName(run), 10)


async def test_a_run_that_was_completed_before_its_start_was_told_has_its_session_on_record(loops: Loops) -> None:
    """Its worker died between the two, and its program spoke to another."""
    await add(loops, "fast", "echo begun; sleep 4711")
    run = await begin(loops, "fast")
    await loops.until(lambda: said_to(loops, run, "begun"))
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()

    def forget(tx: Tx) -> None:
        tx.db.execute("UPDATE runs SET session_id = NULL, prompt_sent_at = NULL WHERE id = :run", {"run": run})
        tx.db.execute("DELETE FROM sessions WHERE run_id = :run", {"run": run})

    await loops.store.transact(forget)
    await complete(loops, run)
    await loops.parts.agents.release(run)
    (session,) = await loops.store.read(lambda tx: tx.sessions.of_run(run))
    assert (session.outcome, session.summary, session.ended_at is not None) == ("succeeded", "Lit.", True)
    told = await loops.store.read(transcripts.of_run, run)
    assert [one.body["text"] for one in told if one.kind == "text"] == ["begun"]
    assert loops.sleepers() == []


async def test_a_session_goes_on_when_its_configuration_is_gone(loops: Loops) -> None:
    os.mkfifo(loops.root / "go")
    await loops.store.transact(configurations.sync, (Configuration(name="web"),), loops.clock.now())
    await add(loops, "long", "cat go; exit 5", agent={"configuration": "web"})
    run = await begin(loops, "long")
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    await loops.store.transact(configurations.sync, (), loops.clock.now())
    await loops.store.transact(owners.void, "own_first", ctx=loops.context)
    assert await loops.parts.worker.adopt() == 1
    (loops.root / "go").write_text("")
    row = await finished(loops, run)
    assert (row.reason, row.exit_code) == ("no_completion", 5)


@pytest.mark.parametrize(
    ("agent", "reason", "state"),
    [
        ({"preset": "nobody"}, "preset_unknown", "failed"),
        ({"preset": "openhands"}, "program_missing", "failed"),
        ({"path": "/not-there"}, "project_missing", "skipped"),
    ],
)
async def test_what_cannot_be_started_says_why(loops: Loops, agent: dict[str, str], reason: str, state: str) -> None:
    await add(loops, "wrong", "true", agent=agent)
    row = await loops.work("wrong")
    assert (row.state, row.reason) == (state, reason)
    assert row.session_id is None


@pytest.mark.parametrize(("kind", "payload"), [("enqueue_execute", {}), ("polish_lamps", {"run": "run_1"})])
async def test_case_10_an_item_that_no_handler_can_work_with_fails_at_once(
    loops: Loops, kind: str, payload: dict[str, str]
) -> None:
    from lamplighter.domain.delivery.outbox import Item

    await loops.store.transact(lambda tx: tx.outbox.add(Item("out_bad", kind, payload, loops.clock.now())))
    await loops.parts.dispatcher.drain()
    (row,) = await loops.store.read(lambda tx: tx.db.rows("SELECT * FROM outbox", {}))
    assert (row["state"], row["attempts"]) == ("failed", 1)
    assert row["last_error"]


def a_repository(path: Path) -> None:
    path.mkdir(exist_ok=True)
    git = ["git", "-C", str(path), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    (path / "lamp.txt").write_text("dark\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)


async def test_a_run_works_in_a_worktree_of_its_own_which_is_kept_with_its_diff(loops: Loops) -> None:
    a_repository(loops.root / "web")
    await add(loops, "writes", "echo lit > lamp.txt; pwd; exit 1", rig="web")
    row = await loops.work("writes:rig:web")
    assert (loops.root / "web" / "lamp.txt").read_text() == "dark\n"
    worktree = row.worktree
    assert worktree is not None
    assert (Path(worktree["path"]) / "lamp.txt").read_text() == "lit\n"
    shown = to_json(await loops.store.read(show_run, ShowRun(row.id), loops.context))
    (kept,) = [one["data"] for one in shown["events"] if one["type"] == "worktree_kept"]
    assert kept["why"] == "uncommitted"
    assert "1 file changed" in kept["diff"]
    await loops.parts.agents.places.discard(row)
    assert not Path(worktree["path"]).exists()
    assert (await loops.get(row.id)).worktree is None


async def test_a_worktree_in_which_nothing_changed_is_removed(loops: Loops) -> None:
    a_repository(loops.root / "web")
    await add(loops, "reads", "cat lamp.txt; exit 1", rig="web")
    row = await loops.work("reads:rig:web")
    assert row.worktree is None
    assert list((loops.root / ".gc" / "worktrees").iterdir()) == []


async def test_a_run_in_place_works_where_it_was_told(loops: Loops) -> None:
    a_repository(loops.root / "web")
    loops.parts.active.city = replace_runs(loops, isolation="none")
    await add(loops, "writes", "echo lit > lamp.txt; exit 1", rig="web")
    await loops.work("writes:rig:web")
    assert (loops.root / "web" / "lamp.txt").read_text() == "lit\n"


def replace_runs(loops: Loops, **keys: Any) -> Any:
    from dataclasses import replace

    return replace(loops.city, runs=Runs(**keys))


async def test_a_model_picks_the_configuration_and_the_run_works_there(loops: Loops) -> None:
    known = (
        Configuration(name="web", description="The site.", rig="web", env={"LAMPS": "seven"}),
        Configuration(name="api", description="The service."),
    )
    await loops.store.transact(configurations.sync, known, loops.clock.now())
    loops.selector.answer = Selected("web", "it is about the site")
    agent = {"strategy": "agent_decide", "configurations": ["web", "api"]}
    await add(loops, "decides", "echo $LAMPS > count; exit 1", agent=agent)
    row = await loops.work("decides")
    assert [one.name for one in loops.selector.asked[0]] == ["web", "api"]
    assert row.configuration == "web"
    assert (loops.root / "web" / "count").read_text() == "seven\n"


@pytest.mark.parametrize("strategy", ["fixed", "agent_decide"])
async def test_a_stored_configuration_serves_as_one_of_a_file_does(loops: Loops, strategy: str) -> None:
    body = {"name": "site", "description": "The site.", "rig": "web", "preset": "shell", "env": {"LAMPS": "nine"}}
    await loops.store.transact(configurations.create, body, source="api", city=loops.city, ctx=loops.context)
    loops.selector.answer = Selected("site", "it is about the site")
    named = {"configuration": "site"} if strategy == "fixed" else {"configurations": ["site"]}
    agent = {"prompt": "echo $LAMPS > count; exit 1", "strategy": strategy} | named
    await loops.add("works", agent=agent)
    row = await loops.work("works")
    assert (row.configuration, row.reason) == ("site", "no_completion")
    assert (loops.root / "web" / "count").read_text() == "nine\n"
    assert len(loops.selector.asked) == (0 if strategy == "fixed" else 1)
    shown = to_json(await loops.store.read(show_run, ShowRun(row.id), loops.context))
    (resolved,) = [one["data"] for one in shown["events"] if one["type"] == "target_resolved"]
    assert resolved["configuration"] == "site"


async def test_case_15_a_fixed_configuration_asks_nobody(loops: Loops) -> None:
    await loops.store.transact(configurations.sync, (Configuration(name="web"),), loops.clock.now())
    await add(loops, "fixed", "exit 1", agent={"configuration": "web"})
    row = await loops.work("fixed")
    assert (row.configuration, loops.selector.asked) == ("web", [])


async def test_a_precheck_that_finds_nothing_to_do_starts_no_agent(loops: Loops) -> None:
    await add(loops, "lazy", "echo started >> starts", precheck="exit 75")
    row = await loops.work("lazy")
    assert (row.state, row.reason) == (RunState.SKIPPED, "nothing_to_do")
    assert not (loops.root / "starts").exists()


async def test_a_finalizer_judges_runs_whose_worker_is_gone(loops: Loops, request: pytest.FixtureRequest) -> None:
    await add(loops, "hangs", "sleep 4711", deadline="1s")
    run = await begin(loops, "hangs")
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    row = await loops.get(run)
    assert row.deadline_at is not None
    await loops.clock.wait(asyncio.Event(), at_most=max(row.deadline_at - loops.clock.now(), timedelta(0)))
    log.set_up(lines := io.StringIO())
    request.addfinalizer(structlog.reset_defaults)
    await loops.parts.finalizer.tick()
    assert (await loops.get(run)).state is RunState.TIMED_OUT
    (told,) = [line for line in lines.getvalue().splitlines() if "finalizer.ended_run" in line]
    assert f"reason=deadline_exceeded run={run} verdict=timed_out" in told
    await loops.parts.dispatcher.drain()
    assert loops.sleepers() == []


async def test_what_a_dead_worker_left_of_an_ended_run_is_tidied(loops: Loops) -> None:
    await add(loops, "hangs", "sleep 4711")
    run = await begin(loops, "hangs")
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    await loops.parts.worker.tidy()
    assert loops.sleepers() == []
    (session,) = await loops.store.read(lambda tx: tx.sessions.of_run(run))
    assert session.ended_at is not None


async def test_a_program_that_has_just_reported_is_not_tidied_away_by_a_process_that_begins(loops: Loops) -> None:
    """Its worker lost the database at that moment, say; its last words are ended by the item that waits for them."""
    await add(loops, "good", "sleep 4711")
    run = await begin(loops, "good")
    await loops.until(lambda: asyncio.to_thread(lambda: len(loops.sleepers()) == 1))
    for task in set(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    await complete(loops, run)
    await loops.parts.worker.tidy()
    (session,) = await loops.store.read(lambda tx: tx.sessions.of_run(run))
    assert session.ended_at is None
    assert len(loops.sleepers()) == 1
    long_ago = "UPDATE runs SET ended_at = ended_at - :by WHERE id = :id"
    by = review.LAST_WORDS // timedelta(microseconds=1)
    await loops.store.transact(lambda tx: tx.db.execute(long_ago, {"by": by, "id": run}))
    await loops.parts.worker.tidy()
    assert loops.sleepers() == []


async def test_case_24_of_schedules_what_an_agent_creates_waits_for_a_person(loops: Loops) -> None:
    ctx = Context(owner("agent"), loops.clock.now(), loops.ids, "tool", Configured(loops.city, loops.rules))
    body = {"name": "daily", "exec": "true", "gate": "schedule", "cadence": "daily", "hour": 9, "enabled": True}
    made = await loops.store.transact(judged, CREATE, CreateAutomation(body), ctx)
    assert (made.enabled, made.source) == (False, "agent")
    assert [one.name for one in await loops.store.read(judged, LIST, ListAutomations(), ctx)] == ["daily"]


async def test_an_artifact_store_that_is_away_is_tried_again(loops: Loops) -> None:
    (loops.root / ".gc").mkdir(exist_ok=True)
    (loops.root / ".gc" / "artifacts").write_text("in the way")
    await add(loops, "mute", "exit 1")
    row = await loops.work("mute")
    (item,) = await loops.store.read(
        lambda tx: tx.db.rows("SELECT state, attempts FROM outbox WHERE kind = 'write_artifact'", {})
    )
    assert (row.state, item["state"], item["attempts"]) == (RunState.FAILED, "pending", 1)
    assert await loops.store.read(outbox.next_due_at) is not None


async def test_what_runs_left_behind_is_removed_in_time(loops: Loops) -> None:
    a_repository(loops.root / "web")
    await add(loops, "writes", "echo lit > lamp.txt; exit 1", rig="web")
    row = await loops.work("writes:rig:web")
    upkeep = RunRetention(loops.store, loops.clock, loops.parts.agents, loops.artifacts)
    assert await upkeep.prune_artifacts(timedelta(hours=1)) == 0
    assert await upkeep.discard_worktrees(timedelta(hours=1)) == 0
    assert await upkeep.prune_artifacts(timedelta(0)) == 1
    assert await upkeep.discard_worktrees(timedelta(0)) == 1
    assert await loops.artifacts.keys("runs/") == []
    assert (await loops.get(row.id)).worktree is None
    assert list((loops.root / ".gc" / "worktrees").iterdir()) == []
    assert await loops.store.read(lambda tx: tx.artifacts.of(row.id)) == []


async def test_a_secret_that_a_declared_provider_refers_to_is_opened(loops: Loops) -> None:
    box, now = KeyedBox(loops.root / ".gc", {}, "town"), loops.clock.now()
    for name, value in (("TOKEN", "of the provider"), ("OTHER", "secret:TOKEN")):
        sealed = box.seal(name, value, ())
        row = SecretRow(name, sealed.key_id, sealed.nonce, sealed.text, now, "ada", now, "ada")
        await loops.store.transact(lambda tx, row=row: tx.secrets.put(row))
    script = 'printf "%s\\n" "$KEY" "$OWN" > seen'
    mine = Provider(command="sh", args=("-c", script), prompt_mode="none", env={"KEY": "secret:TOKEN"})
    active = loops.parts.active
    active.secrets = StoredSecrets(loops.store, box)
    active.city = changed(active.city, providers={"mine": mine})
    await add(loops, "opened", "Light it.", agent={"preset": "mine"}, env={"OWN": "secret:OTHER"})
    await loops.work("opened")
    assert (loops.root / "seen").read_text() == "of the provider\nsecret:TOKEN\n", "what was opened is opened once"
    active.city = changed(active.city, providers={"mine": changed(mine, env={"KEY": "secret:NONE"})})
    row = await loops.work("opened")
    assert (row.state, row.reason) == (RunState.FAILED, "secret_missing")
