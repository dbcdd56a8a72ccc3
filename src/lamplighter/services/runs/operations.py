"""What people, programs and agents can do to runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lamplighter.domain.access import Verb, require_own_run
from lamplighter.domain.runs.completion import ASK_TOOL, TOOL, Completion, Outcome, as_question, parse, parse_question
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import given
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Kind, Need, Operation, transaction
from lamplighter.services.runs import completing, continuing, people, planning, review
from lamplighter.services.runs.queries import RUN_ID
from lamplighter.services.runs.questions import not_a_choice
from lamplighter.services.runs.views import NotedRun, RunView, noted, view
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class CancelRun:
    """End a run that is under way."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class RetryRun:
    """A new run of the same, linked to the old one."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class ClaimRun:
    """Take a run into your care, so that others see who looks after it; claiming twice does no harm."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class UnclaimRun:
    """Let go of a run, whoever claimed it."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


class Resolved(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class ResolveRun:
    """Settle a run that failed, ran out of time or asked for a person: say how it ended after all."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    outcome: Resolved = given("How it ended after all.")
    reason: str = given("Why, in a word or two; at most 500 characters.", default="")
    comment: str = given("More about it; at most 2000 characters.", default="")


@dataclass(frozen=True)
class CompleteRun:
    """Report the end of your run: succeeded, failed, or needs_human. Mandatory before you stop."""

    # No argument is called `summary` or `security_risk`: some programs add those names to every tool themselves.
    run: str = given("The run's id, from your instructions.", key="run_id")
    completion_id: str = given("The completion id, from your instructions.")
    outcome: Outcome = given("How it ended.")
    summary: str = given("A few lines on what was done and found.", key="summary_markdown", default="")
    citations: Sequence[str] = given("Files, links or commits that show it.", default=())
    diff_ref: str = given("Where the change can be seen: a branch, commit or link.", default="")
    test_report_ref: str = given("Where the results of tests can be seen.", default="")
    side_effect_refs: Sequence[str] = given("What was changed outside: issues, pull requests, messages.", default=())


def cancel_run(tx: Tx, ask: CancelRun, ctx: Context) -> RunView:
    return view(review.cancel(tx, ask.run, ctx=ctx))


def retry_run(tx: Tx, ask: RetryRun, ctx: Context) -> NotedRun:
    made = review.retry_if_left(tx, ask.run, ctx=ctx)
    return noted(made, _old_definition(tx, made))


def _old_definition(tx: Tx, made: Run) -> str | None:
    """That a retry uses the definition of the run that it repeats, if the automation was changed since."""
    row = tx.automations.named(made.automation)
    if row is None or row.definition is None or _kept(snapshots.shape_of(row)) == _kept(made.definition):
        return None
    return (
        f"{made.automation} was changed since; a retry uses its definition as it was. "
        f"`lamp automation run {made.automation}` runs it as it is now."
    )


def _kept(shape: Mapping[str, Any]) -> dict[str, Any]:
    """What of a definition matters to a run."""
    return {key: value for key, value in shape.items() if key in {"action", "policies", "rig"}}


def claim_run(tx: Tx, ask: ClaimRun, ctx: Context) -> RunView:
    return view(people.claim(tx, ask.run, ctx=ctx))


def unclaim_run(tx: Tx, ask: UnclaimRun, ctx: Context) -> RunView:
    return view(people.unclaim(tx, ask.run, ctx=ctx))


def resolve_run(tx: Tx, ask: ResolveRun, ctx: Context) -> RunView:
    return view(people.resolve(tx, ask.run, resolution(ask.outcome, ask.reason, ask.comment), ctx=ctx))


LONGEST_REASON = 500
LONGEST_COMMENT = 2000


def resolution(outcome: Resolved, reason: str, comment: str) -> people.Resolution:
    """Raises UsageError for a reason or comment that is too long."""
    for name, text, most in (("reason", reason, LONGEST_REASON), ("comment", comment, LONGEST_COMMENT)):
        if len(text) > most:
            raise UsageError(f"The {name} has {len(text)} characters; at most {most} are kept.", hint="Shorten it.")
    return people.Resolution(RunState(outcome.value), " ".join(reason.split()), comment.strip())


def complete_run(tx: Tx, ask: Completion, ctx: Context) -> completing.Told:
    """Raises Forbidden for an actor that works inside another run, RunUnknown, NotAnAgents."""
    require_own_run(ctx.actor, ask.run)
    return completing.complete(tx, ask, session=ctx.actor.session, ctx=ctx)


def completed(told: completing.Told) -> completing.Completed:
    """Raises CompletionRefused: only now, because a refused completion may have left a mark on the run."""
    crash_point(CrashPoint.COMPLETE_AFTER_COMMIT)
    return told.answer()


@dataclass(frozen=True)
class AskPerson:
    """Ask a person what you cannot decide. It ends your run; when it is answered, you go on where you were."""

    run: str = given("The run's id, from your instructions.", key="run_id", metavar="ID", positional=True)
    question: str = given("The question, with all that is needed to answer it.")
    choices: Sequence[str] = given("Answers you propose; a person may give another one.", default=())
    without_answer: str = given("What happens if nobody answers.", default="")
    summary: str = given("A few lines on what was done and found so far.", key="summary_markdown", default="")


@dataclass(frozen=True)
class AnswerRun:
    """Answer a run that needs a person: a new run goes on with its work, in its place. The first answer wins."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    text: str = given("The answer.", metavar="TEXT", positional=True, rest=True)


def answer_run(tx: Tx, ask: AnswerRun, ctx: Context) -> NotedRun:
    asking = tx.runs.get(ask.run)
    choices = () if asking is None else (asking.question or {}).get("choices") or ()
    note = not_a_choice(choices, ask.text)
    return noted(continuing.answer(tx, ask.run, ask.text, ctx=ctx), note)


@dataclass(frozen=True)
class ApproveRun:
    """Approve the plan of a run: a new run carries it out, in the mode of its automation. The first decision wins."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    text: str = given("What it is told besides.", default="")


@dataclass(frozen=True)
class AmendRun:
    """Have a run's plan made anew, with what you say in mind; it then waits for approval again."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    text: str = given("What is to be different.", metavar="TEXT", positional=True)


@dataclass(frozen=True)
class RejectRun:
    """Reject the plan of a run: nothing of it is done, and the run has failed."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    reason: str = given("Why.", default="")


def approve_run(tx: Tx, ask: ApproveRun, ctx: Context) -> RunView:
    return view(planning.approve(tx, ask.run, ask.text, ctx=ctx))


def amend_run(tx: Tx, ask: AmendRun, ctx: Context) -> RunView:
    return view(planning.amend(tx, ask.run, ask.text, ctx=ctx))


def reject_run(tx: Tx, ask: RejectRun, ctx: Context) -> RunView:
    return view(planning.reject(tx, ask.run, ask.reason, ctx=ctx))


CANCEL_RUN = transaction(
    "run.cancel", Verb.CANCEL_RUN, CancelRun, RunView, cancel_run, http=Http("POST", "/runs/{run}/cancel")
)
RETRY_RUN = transaction(
    "run.retry",
    Verb.RETRY_RUN,
    RetryRun,
    NotedRun,
    retry_run,
    needs=Need.CONFIG,
    http=Http("POST", "/runs/{run}/retry", status=201, location="/runs/{id}"),
)
CLAIM_RUN = transaction(
    "run.claim", Verb.CLAIM_RUN, ClaimRun, RunView, claim_run, http=Http("POST", "/runs/{run}/claim"), repeatable=True
)  # fmt: skip
UNCLAIM_RUN = transaction(
    "run.unclaim", Verb.CLAIM_RUN, UnclaimRun, RunView, unclaim_run,
    http=Http("POST", "/runs/{run}/unclaim"), repeatable=True,
)  # fmt: skip
RESOLVE_RUN = transaction(
    "run.resolve", Verb.RESOLVE_RUN, ResolveRun, RunView, resolve_run, http=Http("POST", "/runs/{run}/resolve")
)
COMPLETE_RUN: Operation[Completion, completing.Completed] = Operation(
    "run.complete", Kind.TRANSACTION, Verb.COMPLETE_RUN, Completion, completing.Completed, complete_run,
    form=CompleteRun, reads=parse, writes=Completion.as_json, settle=completed, repeatable=True, patient=True,
    tool=TOOL, http=Http("POST", "/runs/{run}/complete"),
)  # fmt: skip
ASK_PERSON: Operation[Completion, completing.Completed] = Operation(
    "run.ask", Kind.TRANSACTION, Verb.COMPLETE_RUN, Completion, completing.Completed, complete_run,
    form=AskPerson, reads=parse_question, writes=as_question, settle=completed, repeatable=True, patient=True,
    tool=ASK_TOOL, http=Http("POST", "/runs/{run}/ask"),
)  # fmt: skip
ANSWER_RUN = transaction(
    "run.answer",
    Verb.ANSWER_RUN,
    AnswerRun,
    NotedRun,
    answer_run,
    needs=Need.CONFIG,
    http=Http("POST", "/runs/{run}/answer"),
)
APPROVE_RUN = transaction(
    "run.approve",
    Verb.ANSWER_RUN,
    ApproveRun,
    RunView,
    approve_run,
    needs=Need.CONFIG,
    http=Http("POST", "/runs/{run}/approve"),
)
AMEND_RUN = transaction(
    "run.amend",
    Verb.ANSWER_RUN,
    AmendRun,
    RunView,
    amend_run,
    needs=Need.CONFIG,
    http=Http("POST", "/runs/{run}/amend"),
)
REJECT_RUN = transaction(
    "run.reject", Verb.ANSWER_RUN, RejectRun, RunView, reject_run, http=Http("POST", "/runs/{run}/reject")
)
