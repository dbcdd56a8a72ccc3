"""Automations with `approve = "plan"`: the first run only plans, and a person decides what becomes of the plan."""

import asyncio
from typing import Any

import pytest
from loops_city import Loops
from puppets import let_go, puppet, until_called
from test_agent_runs import finished, said, types
from test_questions import inbox, loops
from test_verified_runs import claim, repository

from lamplighter.domain.access import Forbidden, of_run
from lamplighter.domain.inbox.items import NotOpen, Shown
from lamplighter.domain.runs.completion import NoPlan
from lamplighter.domain.runs.model import Grade, Run, RunState
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.automations.operations import CREATE, CreateAutomation
from lamplighter.services.context import Configured
from lamplighter.services.inbox import operations as inbox_operations
from lamplighter.services.inbox.operations import AMEND, APPROVE, REJECT, AmendItem, ApproveItem, RejectItem
from lamplighter.services.operation import judged
from lamplighter.services.runs import continuing, planning, review
from lamplighter.services.runs.completing import Completed
from lamplighter.services.runs.continuing import AlreadyAnswered, AwaitsApproval
from lamplighter.services.runs.operations import (
    APPROVE_RUN,
    COMPLETE_RUN,
    REJECT_RUN,
    ApproveRun,
    RejectRun,
    completed,
)
from lamplighter.services.runs.planning import NoPlanWaits
from lamplighter.services.runs.views import RunView

__all__ = ["loops"]
PLAN = "1. Trim the wick.\n2. Light it."


async def propose(loops: Loops, run: str, plan: str = PLAN) -> Completed:
    ctx = changed(loops.context, actor=of_run(run))
    try:
        words = said(run, summary_markdown=plan)
        return completed(await loops.store.transact(judged, COMPLETE_RUN, words, ctx))
    finally:
        if plan:
            let_go(loops, run)


async def planned(loops: Loops, name: str) -> Run:
    run = await loops.fire(name)
    await until_called(loops, run)
    await propose(loops, run)
    return await finished(loops, run)


async def approve(loops: Loops, run: str, text: str = "") -> RunView:
    made: RunView = await loops.store.transact(judged, APPROVE_RUN, ApproveRun(run, text), loops.context)
    return made


async def test_a_plan_is_made_in_mode_plan_approved_and_carried_out_in_the_mode_named(loops: Loops) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await puppet(loops, "light", approve="plan", verify="true", rig="web")
    run = await loops.fire("light:rig:web")
    words = await until_called(loops, run)
    assert ("read-only" in words, "--dangerously-bypass-approvals-and-sandbox" in words) == (True, False)
    assert "you only plan" in words[-1]
    with pytest.raises(NoPlan):
        await propose(loops, run, "")
    told = await propose(loops, run)
    assert "waits for a person" in (told.message or "")
    assert (await propose(loops, run)).replayed
    row = await finished(loops, run)
    assert (row.state, row.reason, row.summary, row.grade) == (RunState.NEEDS_HUMAN, "plan", PLAN, None)
    assert await loops.artifacts.get(f"runs/{run}/plan.md") == (PLAN + "\n").encode()
    place = (loops.root / "where").read_text()
    (item,) = await inbox(loops)
    assert (item.plan, item.fix) == (True, f"lamp run approve {run}")
    assert "has a plan that waits for approval: 1. Trim the wick." in item.sentence
    with pytest.raises(AwaitsApproval):
        await loops.store.transact(continuing.answer, run, "yes", ctx=loops.context)

    made = await approve(loops, run, "Mind the curtains.")
    assert (made.continues, made.approved_by) == (run, "tester")
    words = await until_called(loops, made.id)
    assert ("read-only" in words, "--dangerously-bypass-approvals-and-sandbox" in words) == (False, True)
    assert words[words.index("resume") + 1] == "th-1"
    assert "Your plan is approved." in words[-1]
    assert "Mind the curtains." in words[-1]
    assert "you only plan" not in words[-1]
    assert (loops.root / "where").read_text() == place
    await claim(loops, made.id)
    last = await finished(loops, made.id)
    assert (last.state, last.grade) == (RunState.SUCCEEDED, Grade.VERIFIED)
    assert await inbox(loops) == []
    assert [one.settled_how for one in await inbox(loops, Shown.SETTLED)] == ["its plan was approved"]


async def test_an_amended_plan_is_made_anew_and_waits_again(loops: Loops) -> None:
    await puppet(loops, "light", approve="plan")
    row = await planned(loops, "light")
    (item,) = await inbox(loops)
    with pytest.raises(UsageError):
        await loops.store.transact(judged, AMEND, AmendItem(item.id, " "), loops.context)
    await loops.store.transact(judged, AMEND, AmendItem(item.id, "Left one first."), loops.context)
    second = (await loops.get(row.id)).continued_by or ""
    words = await until_called(loops, second)
    assert "read-only" in words
    assert "Left one first." in words[-1]
    assert "you only plan" in words[-1]
    await propose(loops, second, "Left one first, then the right one.")
    again = await finished(loops, second)
    assert (again.state, again.reason, again.approved) == (RunState.NEEDS_HUMAN, "plan", None)
    (item,) = await inbox(loops)
    await loops.store.transact(judged, APPROVE, ApproveItem(item.id), loops.context)
    third = (await loops.get(second)).continued_by or ""
    assert (await loops.get(third)).approved == "tester"
    with pytest.raises(NotOpen):
        await loops.store.transact(judged, REJECT, RejectItem(item.id), loops.context)
    assert "--dangerously-bypass-approvals-and-sandbox" in await until_called(loops, third)
    let_go(loops, third)
    ended = await finished(loops, third)
    retried = await loops.store.transact(review.retry, ended.id, ctx=loops.context)
    assert retried.approved == "tester", "what was approved once is not planned again"


async def test_a_rejected_plan_is_not_carried_out_and_its_place_is_let_go_of(loops: Loops) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await puppet(loops, "light", approve="plan", rig="web")
    row = await planned(loops, "light:rig:web")
    place = loops.root / ".gc" / "worktrees" / row.id
    assert place.is_dir()
    await loops.store.transact(judged, REJECT_RUN, RejectRun(row.id, "Too dear."), loops.context)
    after = await finished(loops, row.id)
    assert (after.state, after.reason) == (RunState.FAILED, "manual_resolution:rejected")
    assert not place.exists()
    assert await inbox(loops) == []
    assert [one.settled_how for one in await inbox(loops, Shown.SETTLED)] == ["its plan was rejected"]
    with pytest.raises(NoPlanWaits):
        await approve(loops, row.id)
    assert len(await loops.store.read(lambda tx: tx.runs.page())) == 1
    assert "manual_resolution" in await types(loops, row.id)


async def test_the_first_decision_wins(loops: Loops) -> None:
    await puppet(loops, "light", approve="plan")
    row = await planned(loops, "light")
    asked: list[Any] = [
        loops.store.transact(planning.approve, row.id, "", ctx=loops.context),
        loops.store.transact(planning.reject, row.id, "", ctx=loops.context),
        loops.store.transact(planning.amend, row.id, "Other.", ctx=loops.context),
        loops.store.transact(planning.approve, row.id, "", ctx=loops.context),
    ]
    found = await asyncio.gather(*asked, return_exceptions=True)
    lost = [one for one in found if isinstance(one, BaseException)]
    assert len(lost) == 3, found
    assert all(isinstance(one, AlreadyAnswered | NoPlanWaits) for one in lost), lost
    assert len(await loops.store.read(lambda tx: tx.runs.page())) <= 2


async def test_only_people_decide_and_only_about_plans(loops: Loops) -> None:
    await puppet(loops, "light")
    run = await loops.fire("light")
    await until_called(loops, run)
    with pytest.raises(NoPlanWaits):
        await approve(loops, run)
    ctx = changed(loops.context, actor=of_run(run))
    with pytest.raises(Forbidden):
        await loops.store.transact(judged, APPROVE_RUN, ApproveRun(run), ctx)
    let_go(loops, run)
    await finished(loops, run)
    (item,) = await inbox(loops)
    with pytest.raises(inbox_operations.NoPlan):
        await loops.store.transact(judged, APPROVE, ApproveItem(item.id), loops.context)


async def test_a_program_that_cannot_plan_is_refused_where_the_automation_is_made(loops: Loops) -> None:
    agent = {"prompt": "p", "mode": "full_access", "preset": "goose"}
    body = {"name": "no", "gate": "manual", "approve": "plan", "agent": agent}
    ctx = changed(loops.context, configured=Configured(loops.city, loops.rules, None))
    with pytest.raises(DefinitionInvalid, match="approve: goose cannot plan without a person beside it"):
        await loops.store.transact(judged, CREATE, CreateAutomation(body), ctx)
    body["agent"] = {**agent, "preset": "codex"}
    await loops.store.transact(judged, CREATE, CreateAutomation(body), ctx)


async def test_a_mode_in_which_no_run_can_complete_is_refused_where_the_automation_is_made(loops: Loops) -> None:
    ctx = changed(loops.context, configured=Configured(loops.city, loops.rules, None))
    body = {"name": "no", "gate": "manual", "agent": {"prompt": "p", "preset": "goose", "mode": "plan"}}
    with pytest.raises(DefinitionInvalid, match=r"agent.mode: goose cannot complete a run in mode `plan`"):
        await loops.store.transact(judged, CREATE, CreateAutomation(body), ctx)
    body["agent"] = {"prompt": "p", "preset": "goose", "mode": "full_access"}
    await loops.store.transact(judged, CREATE, CreateAutomation(body), ctx)
