"""Completion: an agent reports the end of its run once; replays get the same answer, other reports are refused."""

from dataclasses import dataclass

from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs.artifacts import Artifact
from lamplighter.domain.runs.completion import (
    Accept,
    Claims,
    Completion,
    Judgement,
    Late,
    NotAnAgents,
    Propose,
    Recorded,
    Replay,
    Verify,
    error_of,
    judge,
)
from lamplighter.domain.runs.model import By, Grade, Mover, Run, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.inbox.needs import PLAN
from lamplighter.services.runs import planning, review, taking
from lamplighter.store.rounds import Round
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

LATE = "late_completion"
CLAIMED = "completion_claimed"
QUESTION = "question"


@dataclass(frozen=True)
class Completed:
    """`replayed`: the same completion was already on record, and nothing was written.

    `verifying`: the success that is claimed is being verified, and the run goes on until that has ended; `message` says
    what that means for whoever reported.
    """

    run: str
    state: RunState
    replayed: bool = False
    grade: Grade | None = None
    verifying: bool = False
    message: str | None = None


@dataclass(frozen=True)
class Told:
    """The judgement of a completion, and the run after it; `answer` raises errors only after the commit."""

    judgement: Judgement
    run: Run

    def answer(self) -> Completed:
        """Raises CompletionRefused."""
        error = error_of(self.judgement)
        if error is not None:
            raise error
        replayed = isinstance(self.judgement, Replay)
        return Completed(
            self.run.id,
            self.run.state,
            replayed=replayed,
            grade=self.run.grade,
            verifying=self.run.pending is not None,
            message=self._message(),
        )

    def _message(self) -> str | None:
        run = self.run
        if run.pending is not None:
            return (
                "The success you report is being verified. End your turn now; if it does not hold, you are told what is"
                " wrong and go on in this run."
            )
        if run.state is RunState.NEEDS_HUMAN and run.reason == PLAN:
            return "Your plan waits for a person. End your turn now, and change nothing; you go on when it is approved."
        number = self.judgement.round if isinstance(self.judgement, Replay) else None
        if number is None or run.ended or number >= run.round:
            return None
        return (
            f"This was reported in round {number} and was not verified. Mend what is wrong, then report under"
            f" {completion_id(run.id, run.round)}."
        )


def complete(tx: Tx, completion: Completion, *, session: str | None, ctx: Context) -> Told:
    """End the run, its trigger event, bead and session record, and queue what follows, in one transaction.

    Where the automation names a command that verifies, a claim of success is only recorded, and verified by the run's
    holder. A refused completion changes nothing, except that the first late one is added to the run's timeline; only
    the first, so that a token cannot fill the timeline after the end. Raises RunUnknown, NotAnAgents.
    """
    automation = tx.runs.automation_of(completion.run)
    if automation is None:
        raise RunUnknown(completion.run)
    tx.automations.lock(automation)  # before the run's own row: the usual lock order
    before = tx.runs.lock(completion.run)
    if before is None:
        raise RunUnknown(completion.run)
    run = before
    if before.action != AgentAction.kind:
        raise NotAnAgents(run)
    if review.snapshots_of(run).speaks_to is not None:
        session = None  # the agent that it was told to reports it from a session of its own
    kept = tx.runs.papers(run.id).completion if run.completion_id is not None else None
    recorded = None if run.completion_id is None else Recorded(run.completion_id, kept or "")
    judgement = judge(run, recorded, completion, session=session, claims=_claims(tx, run), plans=_plans(run))
    match judgement:
        case Accept(to):
            ending = review.Ending(
                to,
                to.value if completion.question is None else QUESTION,
                summary=completion.summary,
                completion_id=completion.completion_id,
                duration=None if run.started_at is None else ctx.now - run.started_at,
                grade=Grade.CLAIMED if to is RunState.SUCCEEDED else None,
                question=completion.question,
            )
            after = review.end(tx, run.id, ending, By(Mover.COMPLETION, ctx.actor.name), ctx=ctx)
            keep(tx, run.id, completion, ctx=ctx)
            return Told(judgement, after)
        case Propose():
            return Told(judgement, _propose(tx, run, completion, ctx))
        case Verify():
            return Told(judgement, _claim(tx, run, completion, ctx))
        case Late() if all(event.type != LATE for event in tx.runs.events(run.id)):
            said = completion.as_json()
            tx.runs.add_event(NewRunEvent(run.id, ctx.now, LATE, ctx.actor.name, run.state, run.state, said))
        case _:
            pass
    return Told(judgement, run)


def _plans(run: Run) -> bool:
    return planning.plans(run, review.snapshots_of(run))


def _propose(tx: Tx, run: Run, completion: Completion, ctx: Context) -> Run:
    """End the run with its plan, which is kept as an artifact of its own."""
    ending = review.Ending(
        RunState.NEEDS_HUMAN,
        PLAN,
        summary=completion.summary,
        completion_id=completion.completion_id,
        duration=None if run.started_at is None else ctx.now - run.started_at,
    )
    after = review.end(tx, run.id, ending, By(Mover.COMPLETION, ctx.actor.name), ctx=ctx)
    keep(tx, run.id, completion, ctx=ctx)
    tx.sessions.report(run.id, after.state.value, completion.summary)
    _write(tx, run.id, Artifact.PLAN, ctx)
    return after


def keep(tx: Tx, run: str, completion: Completion, *, ctx: Context) -> None:
    """Keep the completion with which the run ended: its content, its session's record, its artifact."""
    tx.runs.keep_completion(run, completion.content)
    tx.sessions.report(run, completion.outcome.value, completion.summary)
    _write(tx, run, Artifact.COMPLETION, ctx)


def _write(tx: Tx, run: str, artifact: Artifact, ctx: Context) -> None:
    payload = {"run": run, "artifact": artifact.value}
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.WRITE_ARTIFACT, payload, ctx.now))


def _claims(tx: Tx, run: Run) -> Claims | None:
    automation = review.snapshots_of(run)
    if automation.policies.verify is None or planning.plans(run, automation):
        return None
    return Claims(tuple(Recorded(one.completion_id, one.completion, one.number) for one in tx.rounds.of(run.id)))


def _claim(tx: Tx, run: Run, completion: Completion, ctx: Context) -> Run:
    given_back = taking.give_back(tx, run, ctx=ctx)  # its holder, or the next one, verifies what a person completed
    after = changed(given_back, pending=completion.completion_id, last_activity_at=ctx.now)
    tx.runs.swap(run, after)
    tx.rounds.add(Round(run.id, run.round, completion.completion_id, completion.content, ctx.now))
    data = {"round": run.round, "completion_id": completion.completion_id}
    tx.runs.add_event(NewRunEvent(run.id, ctx.now, CLAIMED, ctx.actor.name, run.state, run.state, data))
    tx.wake(review.TOLD)  # its holder looks at the runs it holds
    return after
