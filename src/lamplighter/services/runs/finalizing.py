"""Applying the finalizer's verdicts to agent runs: fail, time out, or report as quiet; each in one transaction."""

from datetime import datetime
from typing import assert_never

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.city.sections import Runs
from lamplighter.domain.runs.budget import Limits
from lamplighter.domain.runs.model import By, Mover, RunState, Stage
from lamplighter.domain.runs.verdict import Fail, Leave, Policy, TimeOut, Verdict
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.ids import IdSource
from lamplighter.services.runs import review
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.tx import Tx

AT_ONCE = 50
QUIET = "run_quiet"


def policy_of(automation: Automation, city: Runs) -> Policy:
    """The automation's settings override the city's; an idle timeout of zero means that there is none."""
    policies = automation.policies
    time = min((one for one in (policies.budget.time, policies.timeout) if one is not None), default=None)
    idle_timeout = city.idle_timeout if policies.idle_timeout is None else policies.idle_timeout
    return Policy(city.idle, idle_timeout or None, Limits(policies.budget.cost, policies.budget.tokens, time))


def candidates(tx: Tx, now: datetime, city: Runs) -> list[RunRow]:
    """Agent runs past their deadline, or running and silent for long by the city's limits; earliest deadline first."""
    silence = min(city.idle, city.idle_timeout or city.idle)
    return tx.runs.stale(now, silent_since=now - silence, limit=AT_ONCE)


def settle(tx: Tx, run: str, verdict: Verdict, *, ids: IdSource, act: Act) -> bool:
    """Apply the verdict; returns whether it ended the run. A run that has ended meanwhile is left as it is."""
    match verdict:
        case Leave(quiet_since):
            if quiet_since is not None:
                _tell_quiet(tx, run, quiet_since, act)
            return False
        case Fail() | TimeOut():
            ending = ending_of(verdict)
            return review.end_if_active(tx, run, ending, By(Mover.FINALIZER, act.actor), ids=ids, act=act) is not None
        case _:
            assert_never(verdict)


def ending_of(verdict: Fail | TimeOut) -> review.Ending:
    match verdict:
        case Fail(reason, error):
            return review.Ending(RunState.FAILED, reason, Stage.FINALIZER, error=error)
        case TimeOut(reason):
            return review.Ending(RunState.TIMED_OUT, reason, Stage.FINALIZER)
        case _:
            assert_never(verdict)


def _tell_quiet(tx: Tx, run: str, since: datetime, act: Act) -> None:
    """Report a quiet run, once for each silence."""
    row = tx.runs.lock(run)
    if row is None or row.run.ended:
        return
    told = tx.runs.events(run)
    data = {"since": rfc3339(since)}
    if any(event.type == QUIET and event.data == data for event in told):
        return
    tx.runs.add_event(NewRunEvent(run, act.at, QUIET, act.actor, data=data))
    tx.events.append(act.event("run.quiet", subject=row.run.automation, message="nothing is heard of it", payload=data))
