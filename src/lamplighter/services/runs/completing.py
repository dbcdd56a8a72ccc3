"""Completion: an agent reports the end of its run once; replays get the same answer, other reports are refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.domain.access import Caller, Verb, require, require_own_run
from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs.artifacts import Artifact
from lamplighter.domain.runs.completion import (
    Accept,
    Completion,
    Judgement,
    Late,
    NotAnAgents,
    Recorded,
    error_of,
    judge,
)
from lamplighter.domain.runs.model import By, Mover, Run
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.ids import IdSource
from lamplighter.ports.runs import Completed, RunUnknown
from lamplighter.services.runs import review
from lamplighter.store.errors import CommitUnknown, StoreUnavailable
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import DirectStore, Store, Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio  # only for annotations: commands do not import it

FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(seconds=2)
REPEATS = 3
LATE = "late_completion"


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
        return Completed(self.run.id, self.run.state, replayed=not isinstance(self.judgement, Accept))


def complete(tx: Tx, completion: Completion, *, session: str | None, ids: IdSource, act: Act) -> Told:
    """End the run, its trigger event, bead and session record, and queue what follows, in one transaction.

    A refused completion changes nothing, except that the first late one is added to the run's timeline; only the first,
    so that a token cannot fill the timeline after the end. Raises RunUnknown, NotAnAgents.
    """
    automation = tx.runs.automation_of(completion.run)
    if automation is None:
        raise RunUnknown(completion.run)
    tx.automations.lock(automation)  # before the run's own row: the usual lock order
    before = tx.runs.lock(completion.run)
    if before is None:
        raise RunUnknown(completion.run)
    run = before.run
    if before.facts.action != AgentAction.kind:
        raise NotAnAgents(run)
    kept = tx.runs.papers(run.id).completion if run.completion_id is not None else None
    recorded = None if run.completion_id is None else Recorded(run.completion_id, kept or "")
    judgement = judge(run, recorded, completion, session=session)
    match judgement:
        case Accept(to):
            ending = review.Ending(
                to, to.value, summary=completion.summary, completion_id=completion.completion_id,
                duration=None if run.started_at is None else act.at - run.started_at,
            )  # fmt: skip
            after = review.end(tx, run.id, ending, By(Mover.COMPLETION, act.actor), ids=ids, act=act)
            tx.runs.keep_completion(run.id, completion.content)
            tx.sessions.report(run.id, completion.outcome.value, completion.summary)
            payload = {"run": run.id, "artifact": Artifact.COMPLETION.value}
            tx.outbox.add(new_item(ids.make("out"), ItemKind.WRITE_ARTIFACT, payload, act.at))
            return Told(judgement, after.run)
        case Late() if all(event.type != LATE for event in tx.runs.events(run.id)):
            said = completion.as_json()
            tx.runs.add_event(NewRunEvent(run.id, act.at, LATE, act.actor, run.state, run.state, said))
        case _:
            pass
    return Told(judgement, run)


def _never() -> "asyncio.Event":
    import asyncio

    return asyncio.Event()


@dataclass(frozen=True)
class Completions:
    """The completion service for surfaces that have an event loop.

    It retries while the database is unavailable, for at most `wait` and until `stopping` is set: the work of an agent
    that cannot report is lost, and many agents would not try again.
    """

    store: Store
    clock: Clock
    ids: IdSource
    stopping: "asyncio.Event" = field(default_factory=_never)
    wait: timedelta = timedelta(seconds=20)

    async def complete(self, completion: Completion, *, caller: Caller, session: str | None = None) -> Completed:
        require_own_run(caller, completion.run)
        act = Act(caller.actor, self.clock.now())
        told = await self._recorded(completion, session, act)
        crash_point(CrashPoint.COMPLETE_AFTER_COMMIT)
        return told.answer()

    async def run(self, run: str, *, caller: Caller) -> Mapping[str, Any]:
        require(caller, Verb.READ)
        return await self.store.read(review.show, run)

    async def _recorded(self, completion: Completion, session: str | None, act: Act) -> Told:
        """Retry also when the outcome of a commit is unknown: the same completion is recorded only once."""
        until = self.clock.monotonic() + self.wait.total_seconds()
        attempt = 0
        while not self.stopping.is_set() and self.clock.monotonic() < until:
            try:
                return await self._tried(completion, session, act)
            except StoreUnavailable as error:
                if not error.passing and not isinstance(error, CommitUnknown):
                    raise
            await self.clock.wait(self.stopping, at_most=doubling(attempt, first=FIRST_PAUSE, most=LONGEST_PAUSE))
            attempt += 1
        return await self._tried(completion, session, act)

    async def _tried(self, completion: Completion, session: str | None, act: Act) -> Told:
        return await self.store.transact(complete, completion, session=session, ids=self.ids, act=act)


@dataclass(frozen=True)
class DirectCompletions:
    """The same for a command, which has no event loop; its store decides how long it waits for the database."""

    store: DirectStore
    clock: Clock
    ids: IdSource

    def complete(self, completion: Completion, *, caller: Caller, session: str | None = None) -> Completed:
        require_own_run(caller, completion.run)
        act = Act(caller.actor, self.clock.now())
        for left in range(REPEATS, -1, -1):
            try:
                return self.store.transact(complete, completion, session=session, ids=self.ids, act=act).answer()
            except CommitUnknown:  # safe to repeat: the same completion is recorded only once
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")
