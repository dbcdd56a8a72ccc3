"""Runs that a person takes over and gives back: one session at a time, and a clock that stands meanwhile."""

import asyncio
import os
from datetime import timedelta

import pytest
from loops_city import Loops
from puppets import let_go, puppet, until_called
from test_agent_runs import finished, types
from test_questions import loops
from test_verified_runs import claim, repository

from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.daemon.pipeline.agent_sessions import StillOpen
from lamplighter.domain.access import Forbidden, of_run
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.records import changed
from lamplighter.services.operation import judged
from lamplighter.services.runs import review, taking, transcripts
from lamplighter.services.runs.taking import (
    GIVE_RUN,
    TAKE_RUN,
    AlreadyTaken,
    GiveRun,
    NotHandedOver,
    NothingToTake,
    NotTaken,
    TakeRun,
)

__all__ = ["loops"]


async def take(loops: Loops, run: str) -> None:
    await loops.store.transact(judged, TAKE_RUN, TakeRun(run), loops.context)


async def give(loops: Loops, run: str, text: str = "") -> None:
    await loops.store.transact(judged, GIVE_RUN, GiveRun(run, text), loops.context)


async def handed_over(loops: Loops, run: str) -> Run:
    async def is_theirs() -> bool:
        await loops.parts.worker.tick()
        await loops.parts.dispatcher.tick()
        return taking.handed_over(await loops.get(run))

    await loops.until(is_theirs)
    return await loops.get(run)


async def begun(loops: Loops, name: str) -> str:
    run = await loops.fire(name)
    await until_called(loops, run)

    async def is_on_record() -> bool:
        return (await loops.get(run)).session_id is not None

    await loops.until(is_on_record)
    return run


async def test_a_taken_run_has_no_program_and_given_back_it_goes_on_in_its_conversation(loops: Loops) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await puppet(loops, "light", rig="web", precheck='test ! -e "$LAMP_CITY/where"')
    run = await begun(loops, "light:rig:web")
    before = await loops.get(run)
    await take(loops, run)
    await take(loops, run)  # whoever has it may ask again
    with pytest.raises(NotHandedOver):
        await give(loops, run)
    row = await handed_over(loops, run)
    assert (row.state, row.taken_by, row.session_id) == (RunState.RUNNING, "tester", None)
    assert await loops.sessions.seen() == {}
    assert (loops.root / ".gc" / "worktrees" / run).is_dir()
    other = changed(loops.context, actor=changed(loops.context.actor, name="bob"))
    with pytest.raises(AlreadyTaken):
        await loops.store.transact(judged, TAKE_RUN, TakeRun(run), other)

    await give(loops, run, "Only the right one is left.")
    after = await loops.get(run)
    assert before.deadline_at is not None
    assert after.deadline_at is not None
    assert after.stood is not None
    assert after.deadline_at - before.deadline_at == after.stood > timedelta(0)
    words = await until_called(loops, run, 2)
    assert words[words.index("resume") + 1] == "th-1"
    assert "Only the right one is left." in words[-1]
    assert "gives it back to you" in words[-1]
    assert (loops.root / "where").read_text().strip() == str(loops.root / ".gc" / "worktrees" / run)
    with pytest.raises(NotTaken):
        await give(loops, run)
    let_go(loops, run, 2)
    await claim(loops, run)
    last = await finished(loops, run)
    assert (last.state, last.reason) == (RunState.SUCCEEDED, "succeeded")
    kinds = await types(loops, run)
    mine = {"run_taken", "run_handed_over", "run_given"}
    assert [one for one in kinds if one in mine] == ["run_taken", "run_handed_over", "run_given"]
    assert kinds.count("session_created") == 2
    said = await loops.store.read(transcripts.of_run, run)
    assert {"text": "Only the right one is left.", "by": "tester"} in [dict(one.body) for one in said]


async def test_the_clock_of_a_taken_run_stands(loops: Loops) -> None:
    await puppet(loops, "light", deadline="1h", idle_timeout="1m", budget={"time": "30m"})
    run = await begun(loops, "light")
    await take(loops, run)
    await handed_over(loops, run)
    later = changed(loops.context, now=loops.clock.now() + timedelta(hours=3))
    assert await loops.store.read(lambda tx: tx.runs.stale(later.now, silent_since=later.now, limit=9)) == []
    assert await loops.store.transact(review.time_out, ctx=later) == []
    assert not await loops.store.read(lambda tx: tx.runs.has_orphans("here", later.now))
    await loops.store.transact(taking.give, run, "", ctx=later)
    row = await loops.get(run)
    assert row.stood is not None
    assert row.stood > timedelta(hours=2)
    assert row.deadline_at is not None
    assert row.deadline_at > later.now
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    await finished(loops, run)


async def test_it_does_not_go_on_while_its_program_is_open_in_a_terminal(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await begun(loops, "light")
    await take(loops, run)
    await handed_over(loops, run)
    workshop = FileRunWorkshop(loops.root / ".gc", {})
    terminal = workshop.hold_open(run)
    assert terminal is not None
    assert workshop.hold_open(run) is None
    given = changed(await loops.get(run), given={"text": "", "by": "tester"})
    with pytest.raises(StillOpen):
        await loops.parts.agents.begin(given)
    await give(loops, run)
    os.close(terminal)
    await until_called(loops, run, 2)
    let_go(loops, run, 2)
    await claim(loops, run)
    assert (await finished(loops, run)).state is RunState.SUCCEEDED


async def test_a_process_that_dies_while_it_hands_over_leaves_it_to_the_next_one(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await begun(loops, "light")
    await take(loops, run)
    # As after a kill: nobody holds the run, its program lives, and a person has taken it.
    void = "UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL WHERE city_id = :city AND id = :id"
    await loops.store.transact(lambda tx: tx.db.execute(void, {"city": tx.city, "id": run}))
    row = await handed_over(loops, run)
    assert row.taken_by == "tester"
    assert await loops.sessions.seen() == {}
    await give(loops, run)
    await until_called(loops, run, 2)
    let_go(loops, run, 2)
    await claim(loops, run)
    assert (await finished(loops, run)).state is RunState.SUCCEEDED


async def test_a_run_that_is_completed_while_it_is_taken_has_one_end(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await begun(loops, "light")
    await take(loops, run)
    await claim(loops, run)
    row = await finished(loops, run)
    assert (row.state, row.taken_by, row.taken_at) == (RunState.SUCCEEDED, None, None)
    assert await loops.sessions.seen() == {}
    with pytest.raises(NothingToTake):
        await take(loops, run)
    with pytest.raises(NotTaken):
        await give(loops, run)


async def test_what_cannot_be_taken_is_refused_with_the_reason(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await loops.fire("light")
    with pytest.raises(NothingToTake, match="it is queued"):
        await take(loops, run)
    with pytest.raises(NotTaken):
        await give(loops, run)
    await until_called(loops, run)
    ctx = changed(loops.context, actor=of_run(run))
    with pytest.raises(Forbidden):
        await loops.store.transact(judged, TAKE_RUN, TakeRun(run), ctx)
    let_go(loops, run)
    await finished(loops, run)
    await loops.add("plain", exec="true")
    done = await loops.work("plain")
    with pytest.raises(NothingToTake, match="no agent's"):
        await take(loops, done.id)
