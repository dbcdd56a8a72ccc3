"""Where features of runs meet: retries and worktrees, taken runs and clocks, answers and budgets, fallbacks."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from loops_city import Loops
from puppets import let_go, puppet, until_called
from test_agent_runs import add, finished, said, started, types
from test_conversations import BY, _at_work
from test_plans import propose
from test_questions import answer, ask, inbox, loops
from test_taken_runs import begun, handed_over, take
from test_verified_runs import WAIT, claim, repository

from lamplighter.domain.runs.budget import midnight
from lamplighter.domain.runs.model import Grade, RunState
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.kit.records import changed
from lamplighter.services import worktrees
from lamplighter.services.automations import firing
from lamplighter.services.automations.firing import AlreadyRunning
from lamplighter.services.context import Context
from lamplighter.services.inbox.operations import ANSWER, APPROVE, AnswerItem, ApproveItem
from lamplighter.services.operation import judged
from lamplighter.services.runs import continuing, planning, review, taking, turns
from lamplighter.services.runs.budgets import BudgetUsedUp
from lamplighter.services.runs.operations import COMPLETE_RUN, completed
from lamplighter.services.runs.taking import TAKE_RUN, TakeRun
from lamplighter.services.worktrees import StillAtWork
from lamplighter.store.run_days import day_named

__all__ = ["loops"]


async def test_a_retry_has_the_worktree_of_its_conversation_and_nothing_removes_it(loops: Loops) -> None:
    repository(loops.root)
    script = f'echo x > left; [ ! -e "$LAMP_CITY/fails" ] || exit 1; {WAIT}'
    precheck = 'echo x >> "$LAMP_CITY/prechecks"'
    await add(loops, "light", script, continue_by=BY, retry=1, precheck=precheck)
    first = await loops.fire("light", issue={"number": 7})
    await started(loops, first)
    await claim(loops, first)
    place = Path(((await finished(loops, first)).worktree or {})["path"])
    (loops.root / "fails").touch()
    second = await loops.fire("light", issue={"number": 7})
    await loops.until(lambda: _ended(loops, second))
    (loops.root / "fails").unlink()
    failed = await loops.get(second)
    assert (failed.state, failed.continues, failed.worktree) == (RunState.FAILED, first, None)
    (retry,) = await loops.store.read(lambda tx: [run for run in tx.runs.page() if run.retries == second])
    await loops.until(lambda: _at_work(loops, retry.id))
    row = await loops.get(retry.id)
    assert Path((row.worktree or {})["path"]) == place
    assert (loops.root / "prechecks").read_text() == "x\n", "what goes on with a conversation runs no precheck"
    # As an earlier program left it: the failed run names the place, too.
    await loops.store.transact(lambda tx: tx.runs.set_worktree(second, row.worktree))
    later = loops.clock.now().replace(year=2999)
    assert await loops.store.read(worktrees.left_behind, "here", before=later, limit=9) == []
    assert await loops.parts.upkeep().bound_worktrees(0) == 0
    assert await loops.store.read(worktrees._wanted, None) == []
    with pytest.raises(StillAtWork, match=retry.id):
        await loops.store.read(worktrees._wanted, second)
    assert (place / "left").exists()
    await claim(loops, retry.id)
    assert (await finished(loops, retry.id)).state is RunState.SUCCEEDED


async def test_a_fallback_does_not_resume_the_session_of_another_program_but_is_told_by_files(loops: Loops) -> None:
    await puppet(loops, "light")
    first = await begun(loops, "light")
    await ask(loops, first)
    await finished(loops, first)
    made = await answer(loops, first)
    row = await loops.get(made.id)
    assert await loops.store.read(turns.resumed, row, PRESETS["codex"]) == "th-1"
    for other in ("claude", "goose"):
        turn = await loops.store.read(turns.turn_of, row, PRESETS[other])
        assert (turn.resume, "question.md" in dict(turn.files)) == ("", True)


@pytest.mark.parametrize("waits", [True, False])
async def test_what_a_person_completes_who_has_taken_it_is_verified(loops: Loops, *, waits: bool) -> None:
    await puppet(loops, "light", verify="true")
    run = await begun(loops, "light")
    before = await loops.get(run)
    await take(loops, run)
    if waits:
        await handed_over(loops, run)
    told = completed(await loops.store.transact(judged, COMPLETE_RUN, said(run), loops.context))
    assert told.verifying
    row = await loops.get(run)
    assert (row.taken_by, row.taken_at) == (None, None)
    assert row.stood is not None
    assert before.deadline_at is not None
    assert row.deadline_at == before.deadline_at + row.stood
    let_go(loops, run)
    await loops.until(lambda: _ended(loops, run))
    row = await finished(loops, run)
    assert (row.state, row.grade) == (RunState.SUCCEEDED, Grade.VERIFIED)
    assert [one for one in await types(loops, run) if one.startswith("run_g")] == ["run_given"]


async def test_a_day_of_work_leaves_out_what_a_person_had(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await begun(loops, "light")
    row = await loops.get(run)
    assert row.started_at is not None
    hour, midnight = timedelta(hours=1), row.started_at - timedelta(hours=9)

    async def worked(hours: float, *, since: datetime = midnight) -> int:
        now = loops.clock.now() + hours * hour
        spent = await loops.store.read(lambda tx: tx.run_days.spent(since, now, automation=row.automation_id))
        return round(spent.time / hour)

    def at(hours: float) -> Context:
        return changed(loops.context, now=loops.clock.now() + hours * hour)

    await loops.store.transact(judged, TAKE_RUN, TakeRun(run), at(1))
    await handed_over(loops, run)
    assert (await worked(1), await worked(5)) == (1, 1), "a taken run counts until it was taken"
    await loops.store.transact(taking.give, run, "", ctx=at(5))
    assert (await worked(5), await worked(7)) == (1, 3)
    next_midnight = row.started_at + 3 * hour
    assert await worked(7, since=next_midnight) == 2, "of what it stood only the part of the day is left out"
    await until_called(loops, run, 2)
    await loops.until(lambda: _has_session(loops, run))
    await loops.store.transact(judged, TAKE_RUN, TakeRun(run), at(7))
    await loops.store.transact(review.cancel, run, ctx=at(9))
    assert (await worked(10), await worked(10, since=next_midnight)) == (3, 2), (
        "also of one that ends while it is taken"
    )
    await finished(loops, run)


@pytest.mark.parametrize("overlap", ["skip", "replace"])
async def test_beside_a_taken_run_nothing_starts_and_what_comes_after_it_has_its_time(
    loops: Loops, overlap: str
) -> None:
    await puppet(loops, "light", deadline="1h", continue_by=BY, overlap=overlap)
    first = await loops.fire("light", issue={"number": 7})
    await until_called(loops, first)
    await loops.until(lambda: _has_session(loops, first))
    second = await loops.fire("light", issue={"number": 7})
    await take(loops, first)
    await handed_over(loops, first)
    later = changed(loops.context, now=loops.clock.now() + timedelta(hours=5))
    other = firing.ByHand("light", {"issue": {"number": 8}})
    with pytest.raises(AlreadyRunning, match=first):
        await loops.store.transact(firing.run_by_hand, other, rules=loops.rules, ctx=later)
    assert (await loops.get(first)).taken_by == "tester"
    assert await loops.store.read(lambda tx: tx.runs.next_deadline(before=later.now)) is None
    assert await loops.store.read(lambda tx: tx.runs.stale(later.now, silent_since=later.now, limit=9)) == []
    assert await loops.store.transact(review.time_out, ctx=later) == []
    completed(await loops.store.transact(judged, COMPLETE_RUN, said(first), later))
    row = await loops.get(second)
    assert row.deadline_at == later.now + timedelta(hours=1)
    assert await loops.store.read(lambda tx: tx.runs.next_deadline(before=row.deadline_at)) == row.deadline_at
    await loops.store.transact(review.cancel, second, ctx=loops.context)
    await finished(loops, second)


@pytest.mark.parametrize("plans", [False, True])
async def test_an_answer_is_not_used_up_by_a_budget_of_the_day(loops: Loops, *, plans: bool) -> None:
    keys = {"approve": "plan"} if plans else {}
    await puppet(loops, "light", budget={"day_tokens": 100}, **keys)
    run = await begun(loops, "light")
    await (propose(loops, run) if plans else ask(loops, run))
    row = await finished(loops, run)
    today = day_named(midnight(loops.clock.now(), loops.rules.zone))
    await loops.store.transact(lambda tx: tx.run_days.add(run, row.automation_id, today, tokens=150, cost=0))
    decide = (planning.approve, planning.amend) if plans else (continuing.answer,)
    for act in (*decide, continuing.send):
        with pytest.raises(BudgetUsedUp, match="have used 150 tokens today"):
            await loops.store.transact(act, run, "the left", ctx=loops.context)
    (item,) = await inbox(loops)
    assert (item.runs, (await loops.get(run)).continued_by) == ([run], None)
    operation, words = (APPROVE, ApproveItem(item.id)) if plans else (ANSWER, AnswerItem(item.id, "the left"))
    with pytest.raises(BudgetUsedUp):
        await loops.store.transact(judged, operation, words, loops.context)
    await loops.store.transact(lambda tx: tx.run_days.delete_of_runs([run]))
    made = await loops.store.transact(decide[0], run, "the left", ctx=loops.context)
    assert (made.continues, await inbox(loops)) == (run, [])


async def _has_session(loops: Loops, run: str) -> bool:
    return (await loops.get(run)).session_id is not None


async def _ended(loops: Loops, run: str) -> bool:
    await _at_work(loops, run)
    return (await loops.get(run)).ended
