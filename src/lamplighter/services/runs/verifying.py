"""The verdict on a claim of success: one transaction that ends the run, or sends it into its next round."""

import json
from typing import Any

from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.policies import ROUNDS
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.lease import fence
from lamplighter.domain.runs.model import By, Grade, Mover, Run, RunState, Stage
from lamplighter.domain.runs.verify import Again, Checked, GivenUp, Passed, judged, refused
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.runs import circling, completing, review
from lamplighter.store.rounds import Round
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

PASSED = "verify_passed"
FAILED = "verify_failed"
REASON = "verify"
LONGEST_TAIL = 16_000


def rounds_of(automation: Automation) -> int:
    found = automation.policies.rounds
    return ROUNDS if found is None else found


def settle(tx: Tx, held: Run, checked: Checked, *, actor: str, ctx: Context) -> Run:
    """Record what the verification said of the claim that waits, and what follows. Raises LeaseLost, RunUnknown.

    `held` is the run as its holder knows it. A run that has ended, or whose claim was judged already, is left as it is.
    """
    tx.automations.lock(held.automation_id)  # before the run's own row: the usual lock order
    run = tx.runs.lock(held.id)
    if run is None:
        raise RunUnknown(held.id)
    if run.ended or run.pending is None:
        return run
    fence(run.lease, held.lease.version)
    claim = next(one for one in tx.rounds.of(run.id) if one.number == run.round)
    tail = checked.output[-LONGEST_TAIL:]
    tx.rounds.judge(_judged(claim, checked, tail, ctx))
    automation = review.snapshots_of(run)
    number = run.round - circling.rounds(tx, run.id)
    verdict = judged(number, rounds=rounds_of(automation), passed=checked.passed)
    _tell(tx, run, checked, tail, actor, ctx)
    if isinstance(verdict, Again):
        after = changed(
            run,
            round=run.round + 1,
            pending=None,
            session_id=None,
            prompt_sent_at=None,
            given=None,
            last_activity_at=ctx.now,
        )
        tx.runs.swap(run, after)
        payload = {"run": run.id, "round": run.round, "exit_code": checked.exit_code, "rounds": rounds_of(automation)}
        text = f"round {run.round} was not verified"
        tx.events.append(ctx.event("run.verify_failed", subject=run.automation, message=text, payload=payload))
        return after
    completion = parse(json.loads(claim.completion))
    ending = _ending(run, verdict, checked, tail, completion.summary, ctx)
    after = review.end(tx, run.id, ending, By(Mover.WORKER, actor, run.lease.version), ctx=ctx)
    completing.keep(tx, run.id, completion, ctx=ctx)
    return after


def _judged(claim: Round, checked: Checked, tail: str, ctx: Context) -> Round:
    return Round(
        claim.run, claim.number, claim.completion_id, claim.completion, claim.claimed_at, ctx.now, checked.passed,
        checked.exit_code, checked.why, tail,
    )  # fmt: skip


def _tell(tx: Tx, run: Run, checked: Checked, tail: str, actor: str, ctx: Context) -> None:
    kind = PASSED if checked.passed else FAILED
    data: dict[str, Any] = {"round": run.round, "exit_code": checked.exit_code}
    if not checked.passed:
        data |= {"why": checked.told, "output_tail": tail[-review.LONGEST_ERROR :]}
    tx.runs.add_event(NewRunEvent(run.id, ctx.now, kind, actor, run.state, run.state, data))


def _ending(
    run: Run, verdict: Passed | GivenUp, checked: Checked, tail: str, summary: str, ctx: Context
) -> review.Ending:
    duration = None if run.started_at is None else ctx.now - run.started_at
    if isinstance(verdict, Passed):
        return review.Ending(
            RunState.SUCCEEDED, RunState.SUCCEEDED.value, summary=summary, completion_id=run.pending,
            duration=duration, grade=Grade.VERIFIED,
        )  # fmt: skip
    why = refused(review.snapshots_of(run).policies.verify or "", checked)
    rounds = "round" if run.round == 1 else "rounds"
    error = f"It claimed success, and after {run.round} {rounds} that could not be verified: {why}"
    return review.Ending(
        RunState.FAILED, REASON, Stage.VERIFICATION, error=error, exit_code=checked.exit_code, output_tail=tail,
        summary=summary, completion_id=run.pending, duration=duration,
    )  # fmt: skip
