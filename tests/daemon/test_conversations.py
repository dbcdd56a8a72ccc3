"""Firings that go on with a conversation: by a value of what fired them, in its place, one after another."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import add, finished, started
from test_verified_runs import WAIT, claim, repository

from lamplighter.domain.automations.conversations import alike, key_of
from lamplighter.domain.automations.decode import Invalid, Origin, decode_json
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.services.automations import due
from lamplighter.services.retention import prune_runs
from lamplighter.services.runs import review, turns
from lamplighter.services.runs.continuing import send
from lamplighter.store.url import Place

BY = "payload.issue.number"


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path) as found:
        yield found


async def issue(loops: Loops, number: Any) -> str:
    run = await loops.fire("light", issue={"number": number})
    await started(loops, run)
    return run


async def ended(loops: Loops, run: str) -> Run:
    await claim(loops, run)
    return await finished(loops, run)


async def test_a_firing_with_the_same_value_goes_on_in_the_place_of_the_last(loops: Loops) -> None:
    repository(loops.root)
    script = f'pwd >> "$LAMP_CITY/places"; echo x > left; cp "$LAMP_MESSAGE_FILE" "$LAMP_CITY/told" 2>/dev/null; {WAIT}'
    await add(loops, "light", script, continue_by=BY)
    first = await issue(loops, 7)
    assert (await ended(loops, first)).state is RunState.SUCCEEDED
    other = await issue(loops, 8)
    await ended(loops, other)
    second = await issue(loops, "7")
    row = await ended(loops, second)
    assert (row.state, row.continues, row.trigger_kind) == (RunState.SUCCEEDED, first, "manual")
    assert (await loops.get(first)).continued_by == second
    assert (await loops.get(other)).continues is None
    places = (loops.root / "places").read_text().split()
    assert (places[0], len(set(places))) == (places[2], 2)
    assert "Something more has come in" in (loops.root / "told").read_text()
    assert (await loops.get(first)).worktree is None
    assert row.worktree is not None
    third = await issue(loops, 7)
    assert (await ended(loops, third)).continues == second, "the last of the conversation"
    without = await loops.fire("light", nothing=1)
    await started(loops, without)
    assert (await ended(loops, without)).continues is None


async def test_what_comes_while_it_is_at_work_waits_and_comes_next(loops: Loops) -> None:
    repository(loops.root)
    await add(loops, "light", f"echo x > left; {WAIT}", continue_by=BY, retry=1)
    first = await issue(loops, 7)
    await loops.store.transact(send, first, "Hurry.", ctx=loops.context)
    second = await loops.fire("light", issue={"number": 7})
    third = await loops.fire("light", issue={"number": 7})
    for _ in range(3):
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()
    assert [(await loops.get(run)).continues for run in (first, second, third)] == [None, first, second]
    assert (await loops.get(second)).session_id is None, "two programs never work in one place"
    place = (await loops.get(first)).worktree
    for run in (first, second):
        await claim(loops, run)
        following = second if run == first else third
        await loops.until(lambda following=following: _at_work(loops, following))
        assert (await loops.get(run)).worktree is None
        assert (await loops.get(following)).worktree == place
    await claim(loops, third)
    await loops.until(lambda: _is_ended(loops, third))
    rows = await loops.store.read(lambda tx: tx.runs.page(automation="light"))
    said = next(row for row in rows if row.trigger_kind == "message")
    assert said.continues in {second, third}, "a message that waited is told after that"
    await loops.parts.dispatcher.stop()


async def test_what_is_cancelled_before_its_turn_lets_nothing_start_early(loops: Loops) -> None:
    """The middle of three that wait, then the last, then a new one comes, then a message: all wait for the first."""
    repository(loops.root)
    await add(loops, "light", f"echo x > left; {WAIT}", continue_by=BY)
    first = await issue(loops, 7)
    second, third, fourth = [await loops.fire("light", issue={"number": 7}) for _ in range(3)]
    await loops.store.transact(send, fourth, "Hurry.", ctx=loops.context)
    for run in (third, second):
        await loops.store.transact(review.cancel, run, ctx=loops.context)
    assert (await loops.get(fourth)).continues == first
    await loops.store.transact(review.cancel, fourth, ctx=loops.context)
    rows = await loops.store.read(lambda tx: tx.runs.page(automation="light"))
    (said,) = [row for row in rows if row.trigger_kind == "message"]
    fifth = await loops.fire("light", issue={"number": 7})
    await loops.store.transact(review.cancel, said.id, ctx=loops.context)
    again = await loops.store.transact(send, first, "Where are you?", ctx=loops.context)
    assert again == (await loops.get(fifth), True)
    assert [(await loops.get(run)).continues for run in (said.id, fifth)] == [first, first]
    assert await loops.store.read(turns.must_wait, await loops.get(fifth), "here")
    overdue = await loops.store.read(lambda tx: tx.runs.overdue(loops.clock.now().replace(year=2999), limit=10))
    assert fifth not in overdue, "its clock does not go"
    place = (await loops.get(first)).worktree
    await claim(loops, first)
    await loops.until(lambda: _at_work(loops, fifth))
    assert [(await loops.get(run)).worktree for run in (first, second, fourth, fifth)] == [None, None, None, place]
    await claim(loops, fifth)
    await loops.until(lambda: _is_ended(loops, fifth))
    last = await loops.get((await loops.get(fifth)).continued_by or "")
    assert (last.trigger_kind, last.continues) == ("message", fifth), "what was said is told after that"
    await loops.parts.dispatcher.stop()


async def test_events_of_several_conversations_make_a_run_for_each_and_none_is_lost(loops: Loops) -> None:
    await add(loops, "light", "true", gate="event", on="issue.said", continue_by=BY)
    for number in (1, 1, 2, 1):
        event = loops.context.event("issue.said", subject="x", message="", payload={"issue": {"number": number}})
        await loops.store.transact(lambda tx, event=event: tx.events.append(event))
    await loops.until(lambda: _numbered(loops, 4))
    await loops.store.transact(lambda tx: tx.triggers.mark_due({"issue.said"}, loops.clock.now()))
    for _ in range(4):
        await loops.store.transact(due.fire_due, limit=10, rules=loops.rules, ctx=loops.context)
        open_ = await loops.store.read(lambda tx: [run for run in tx.runs.page() if not run.ended])
        for row in sorted(open_, key=lambda one: one.id):
            await finished(loops, row.id)
    rows = sorted(await loops.store.read(lambda tx: tx.runs.page(automation="light")), key=lambda one: one.id)
    assert [row.continues for row in rows] == [None, None, rows[0].id]
    events = await loops.store.read(lambda tx: [tx.trigger_events.get(row.trigger_event or "") for row in rows])
    assert [len((one.payload or {})["events"]) for one in events if one is not None] == [2, 1, 1]


async def test_a_conversation_whose_runs_are_gone_begins_anew(loops: Loops) -> None:
    await add(loops, "light", WAIT, continue_by=BY)
    first = await issue(loops, 7)
    await ended(loops, first)
    await loops.store.transact(prune_runs, before=loops.clock.now().replace(year=2999))
    assert await loops.store.read(lambda tx: tx.conversations.run_of("x", "7")) is None
    assert (await ended(loops, await issue(loops, 7))).continues is None


@pytest.mark.parametrize(
    ("payload", "key"),
    [
        ({"payload": {"issue": {"number": 7}}}, "7"),
        ({"payload": {"issue": {"number": "7"}}}, "7"),
        ({"events": [{"payload": {"issue": {"number": 7}}}, {"payload": {}}]}, "7"),
        ({"payload": {"issue": {"number": None}}}, None),
        ({"payload": {"issue": {"number": {"a": 1}}}}, None),
        ({"payload": {"issue": {"number": True}}}, None),
        ({"payload": {"issue": {"number": ""}}}, None),
        ({"payload": {"issue": 7}}, None),
        ({}, None),
    ],
)
def test_the_value_is_found_in_what_came_by_hand_and_in_the_first_event(
    payload: dict[str, Any], key: str | None
) -> None:
    assert key_of(BY, payload) == key
    assert key_of(None, payload) is None


def test_long_values_are_told_apart_and_events_are_cut_where_another_conversation_begins() -> None:
    long = [key_of(BY, {"payload": {"issue": {"number": "x" * size}}}) for size in (1000, 1001)]
    assert len({*long}) == 2
    assert all(len(one or "") <= 200 for one in long)
    events = [{"payload": {"issue": {"number": number}}} for number in (1, 1, 2, 1)]
    assert (alike(BY, events), alike(None, events), alike(BY, [])) == (2, 4, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gate": "cooldown", "interval": "1h", "continue_by": BY, "agent": {"prompt": "p"}},
        {"gate": "manual", "continue_by": "issue number", "agent": {"prompt": "p"}},
        {"gate": "manual", "continue_by": BY, "exec": "true"},
    ],
)
def test_where_there_is_no_payload_or_no_conversation_it_is_refused(wrong: dict[str, Any]) -> None:
    found = decode_json({"name": "x", **wrong}, Origin())
    assert isinstance(found, Invalid)
    assert "continue_by" in str(found)


async def _due(loops: Loops) -> None:
    """What was put off for some seconds is due now."""
    await loops.store.transact(
        lambda tx: tx.db.execute("UPDATE outbox SET due_at = 0 WHERE state = 'pending' AND kind LIKE 'enqueue%'", {})
    )


async def _at_work(loops: Loops, run: str) -> bool:
    await _due(loops)
    await loops.parts.worker.tick()
    await loops.parts.dispatcher.tick()
    return (await loops.get(run)).session_id is not None


async def _is_ended(loops: Loops, run: str) -> bool:
    return (await loops.get(run)).ended


async def _numbered(loops: Loops, count: int) -> bool:
    return len(await loops.store.read(lambda tx: tx.events.after_of_type("issue.said", 0, limit=10))) == count
