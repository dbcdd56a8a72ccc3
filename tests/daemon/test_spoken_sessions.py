"""Automations whose action names a session: their runs are the next turns of that conversation."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops
from test_agent_runs import add, finished, started
from test_verified_runs import WAIT, claim, repository

from lamplighter.domain.automations.decode import Invalid, Origin, decode_json
from lamplighter.domain.automations.references import unknown_names
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.prompt import Turn, prompt
from lamplighter.kit.clock import SystemClock
from lamplighter.services.automations import references, snapshots
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.automations.firing import AlreadyRunning
from lamplighter.services.retention import prune_runs
from lamplighter.services.runs.continuing import answer
from lamplighter.store.owners import Owner
from lamplighter.store.url import Place


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    found = Loops(place, tmp_path, SystemClock())
    await found.store.transact(lambda tx: tx.cities.ensure("loops", found.clock.now()))
    me = Owner("own_first", "controller", "here", os.getpid(), found.clock.now())
    await found.store.transact(lambda tx: tx.owners.register(me))
    yield found
    await found.parts.worker.stop()
    await found.parts.close()
    await found.store.close()


async def begun(loops: Loops, name: str) -> str:
    run = await loops.fire(name)
    await started(loops, run)
    return run


async def ended(loops: Loops, run: str) -> Run:
    await claim(loops, run)
    return await finished(loops, run)


async def test_a_run_is_the_next_turn_of_the_session_that_its_action_names(loops: Loops) -> None:
    """In its place, with its program and its variables, whatever automation began it; each turn after the last."""
    repository(loops.root)
    await add(loops, "light", f'pwd >> "$LAMP_CITY/places"; echo x > left; {WAIT}', env={"COLOUR": "red", "SIZE": "1"})
    first = await begun(loops, "light")
    await ended(loops, first)
    session = (await loops.get(first)).session_id
    script = f'pwd >> "$LAMP_CITY/places"; echo "$COLOUR$SIZE" > "$LAMP_CITY/own"; {WAIT}'
    await loops.add("daily", agent={"prompt": script, "session": session}, env={"SIZE": "2"})
    second = await begun(loops, "daily")
    row = await ended(loops, second)
    assert (row.automation, row.state, row.grade, row.continues) == ("daily", RunState.SUCCEEDED, "claimed", first)
    assert (await loops.get(first)).continued_by == second
    assert len(set((loops.root / "places").read_text().split())) == 1
    assert (loops.root / "own").read_text().split() == ["red2"]
    third = await begun(loops, "daily")
    assert (await ended(loops, third)).continues == second, "the last of the conversation"


async def test_it_waits_for_the_conversation_and_stands_back_for_itself(loops: Loops) -> None:
    repository(loops.root)
    await add(loops, "light", WAIT)
    first = await begun(loops, "light")
    await loops.add("daily", agent={"prompt": WAIT, "session": first}, precheck='touch "$LAMP_CITY/looked"')
    second = await loops.fire("daily")
    for _ in range(3):
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()
    assert (await loops.get(second)).state is RunState.READY, "two programs never work in one conversation"
    with pytest.raises(AlreadyRunning):
        await loops.fire("daily")
    await claim(loops, first)
    await loops.until(lambda: _at_work(loops, second))
    assert (loops.root / "looked").exists(), "it has a precheck of its own"
    assert (await ended(loops, second)).state is RunState.SUCCEEDED


async def test_a_question_that_waits_for_a_person_is_not_taken_away_by_a_firing(loops: Loops) -> None:
    repository(loops.root)
    await add(loops, "light", WAIT)
    first = await begun(loops, "light")
    await claim(loops, first, outcome="needs_human", summary_markdown="Which?")
    assert (await finished(loops, first)).state is RunState.NEEDS_HUMAN
    await loops.add("daily", agent={"prompt": WAIT, "session": first})
    with pytest.raises(AlreadyRunning, match="its conversation waits for a person"):
        await loops.fire("daily")
    told = await loops.store.transact(answer, first, "Both.", ctx=loops.context)
    await started(loops, told.id)
    await ended(loops, told.id)
    second = await begun(loops, "daily")
    assert (await ended(loops, second)).continues == told.id


async def test_a_conversation_that_is_gone_is_refused_and_fails_by_name(loops: Loops) -> None:
    body = {"name": "daily", "gate": "manual", "agent": {"prompt": "p", "session": "run_00000000000000000000000000"}}
    with pytest.raises(DefinitionInvalid, match="there is no session or run"):
        await loops.store.transact(_created, body, loops)
    await add(loops, "light", WAIT)
    await loops.add("other", exec="true")
    command = await loops.work("other")
    wrong = {**body, "agent": {"prompt": "p", "session": command.id}}
    with pytest.raises(DefinitionInvalid, match="is no agent's"):
        await loops.store.transact(_created, wrong, loops)
    first = await begun(loops, "light")
    await ended(loops, first)
    await loops.store.transact(_created, {**body, "agent": {"prompt": "p", "session": first}}, loops)
    later = loops.clock.now().replace(year=2999)
    assert await loops.store.transact(prune_runs, before=later)
    run = await loops.fire("daily")
    await started(loops, run)
    row = await loops.get(run)
    assert (row.state, row.reason) == (RunState.FAILED, "session_missing")
    assert first in row.error
    (stored,) = [one for one in await loops.store.read(lambda tx: tx.automations.page()) if one.scoped_name == "daily"]
    known = await loops.store.read(references.known, loops.context)
    assert [one.key for one in unknown_names(snapshots.of_row(stored), known)] == ["agent.session"]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"agent": {"session": "run_1", "agent": "mayor"}}, "agent.agent"),
        ({"agent": {"session": "run_1", "preset": "codex"}}, "agent.preset"),
        ({"agent": {"session": "run_1", "path": "/srv"}}, "agent.path"),
        ({"agent": {"session": "run_1"}, "continue_by": "payload.x"}, "continue_by"),
        ({"agent": {"agent": "mayor", "mode": "plan"}}, "agent.mode"),
        ({"agent": {"agent": "mayor"}, "approve": "plan"}, "approve"),
        ({"agent": {"agent": "mayor"}, "env": {"A": "b"}}, "env"),
        ({"agent": {"agent": "mayor"}, "budget": {"cost": 1}}, "budget.cost"),
        ({"agent": {"agent": "mayor"}, "stuck_after": 3}, "stuck_after"),
    ],
)
def test_what_a_conversation_has_of_its_own_is_not_chosen_once_more(keys: dict[str, Any], named: str) -> None:
    body = {"name": "daily", "gate": "manual"} | keys
    body["agent"] = {"prompt": "p", **keys["agent"]}
    found = decode_json(body, Origin())
    assert isinstance(found, Invalid)
    assert [one.key for one in found.problems] == [named]


def test_a_program_that_resumes_is_told_what_the_automation_asks_now() -> None:
    turn = Turn(1, "An automation asks.", "thread-7", tells_trigger=True, instructs=True)
    text = prompt("Water the plants.", run="run_1", context_file="/f/trigger.json", turn=turn)
    assert "Water the plants." in text
    assert "/f/trigger.json" in text
    assert "cannot be resumed" not in text


def _created(tx: Any, body: dict[str, Any], loops: Loops) -> None:
    from lamplighter.services.automations import editing

    row = editing.create(tx, body, rules=loops.rules, ctx=loops.context)
    references.refuse_unknown(tx, row, loops.context)


async def _at_work(loops: Loops, run: str) -> bool:
    await loops.parts.dispatcher.tick()
    row = await loops.get(run)
    return row.state is RunState.RUNNING and row.session_id is not None
