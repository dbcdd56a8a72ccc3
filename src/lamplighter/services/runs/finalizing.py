"""Applying the finalizer's verdicts to agent runs: fail, time out, or report as quiet; each in one transaction."""

from datetime import datetime
from typing import Any, assert_never

from lamplighter.domain.automations.model import Automation
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.runs.budget import Limits
from lamplighter.domain.runs.model import By, Mover, Run, RunState, Stage
from lamplighter.domain.runs.verdict import Asks, Fail, Leave, Policy, TimeOut, Verdict
from lamplighter.kit.clock import rfc3339
from lamplighter.services.context import Context
from lamplighter.services.runs import review
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

AT_ONCE = 50
QUIET = "run_quiet"


def policy_of(automation: Automation, city: Runs) -> Policy:
    """The automation's settings override the city's; an idle timeout of zero means that there is none."""
    policies = automation.policies
    time = min((one for one in (policies.budget.time, policies.timeout) if one is not None), default=None)
    idle_timeout = city.idle_timeout if policies.idle_timeout is None else policies.idle_timeout
    stuck_after = city.stuck_after if policies.stuck_after is None else policies.stuck_after
    limits = Limits(policies.budget.cost, policies.budget.tokens, time)
    return Policy(city.idle, idle_timeout or None, limits, stuck_after)


def candidates(tx: Tx, now: datetime, city: Runs) -> list[Run]:
    """Agent runs past their deadline, or running and silent for long by the city's limits; earliest deadline first."""
    silence = min(city.idle, city.idle_timeout or city.idle)
    return tx.runs.stale(now, silent_since=now - silence, limit=AT_ONCE)


def settle(tx: Tx, run: str, verdict: Verdict, *, ctx: Context) -> bool:
    """Apply the verdict; returns whether it ended the run. A run that has ended meanwhile is left as it is."""
    match verdict:
        case Leave(quiet_since):
            if quiet_since is not None:
                _tell_quiet(tx, run, quiet_since, ctx)
            return False
        case Fail() | TimeOut() | Asks():
            ending = ending_of(verdict)
            return review.end_if_active(tx, run, ending, By(Mover.FINALIZER, ctx.actor.name), ctx=ctx) is not None
        case _:
            assert_never(verdict)


def ending_of(verdict: Fail | TimeOut | Asks) -> review.Ending:
    match verdict:
        case Fail(reason, error):
            return review.Ending(RunState.FAILED, reason, Stage.FINALIZER, error=error)
        case Asks(what, reason):
            text = f"Its program waits for a permission: {what}"
            question: dict[str, Any] = {"text": text, "choices": [], "without_answer": None}
            return review.Ending(RunState.NEEDS_HUMAN, reason, Stage.FINALIZER, question=question)
        case TimeOut(reason):
            return review.Ending(RunState.TIMED_OUT, reason, Stage.FINALIZER)
        case _:
            assert_never(verdict)


def _tell_quiet(tx: Tx, run: str, since: datetime, ctx: Context) -> None:
    """Report a quiet run, once for each silence."""
    row = tx.runs.lock(run)
    if row is None or row.ended:
        return
    told = tx.runs.events(run)
    data = {"since": rfc3339(since)}
    if any(event.type == QUIET and event.data == data for event in told):
        return
    tx.runs.add_event(NewRunEvent(run, ctx.now, QUIET, ctx.actor.name, data=data))
    tx.events.append(ctx.event("run.quiet", subject=row.automation, message="nothing is heard of it", payload=data))
