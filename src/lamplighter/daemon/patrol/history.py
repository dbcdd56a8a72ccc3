"""The patrol's history of sessions: kept in memory, and recorded in the store as soon as that is available."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lamplighter.domain.events import NewEvent
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.tasks import spawn
from lamplighter.services import sessions
from lamplighter.services.context import acting
from lamplighter.services.sessions import Began, Ended, Fact, Noted, Told
from lamplighter.store.agents import AgentStart
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Store

ACTOR = "controller"
MOST_PENDING = 10_000
_BLANK = SessionHistory()


@dataclass(frozen=True)
class Where:
    """Where sessions of this controller live, for their records."""

    provider: str
    node: str


@dataclass
class PatrolHistory:
    """Agents are kept alive while the store is away: facts wait, in order, until it is back.

    With more than MOST_PENDING waiting, each new fact drops the oldest; how many were lost is told while they wait and
    when the others are on record.
    """

    store: Store
    clock: Clock
    ids: IdSource
    where: Where
    histories: dict[SessionName, SessionHistory] = field(default_factory=dict)
    open_ids: dict[SessionName, str] = field(default_factory=dict)
    problem: str | None = None
    turns: dict[SessionName, int] = field(default_factory=dict)
    _pending: list[tuple[int, Fact]] = field(default_factory=list)
    _lost: int = 0
    _last_turn: int = 0
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _soon: asyncio.Task[None] | None = None

    async def load(self, window: timedelta, *, keep_quarantine: bool) -> None:
        """Load what earlier controllers recorded. Without `keep_quarantine` their starts do not count."""
        found = await self.store.read(sessions.remembered, since=self.clock.now() - max(window, timedelta(days=1)))
        self.open_ids = dict(found.open_ids)
        self.histories = {
            name: history if keep_quarantine else _forgiven(history) for name, history in found.histories.items()
        }

    def of(self, session: SessionName) -> SessionHistory:
        return self.histories.get(session, _BLANK)

    def began(self, agent: str, seen: Seen, reason: str, *, at: datetime, counted: bool, told: bool = True) -> None:
        """Record a start, or with `told` false the adoption of a session that another process started.

        That process may have reported the start itself.
        """
        self.histories[seen.name] = self.of(seen.name).started(at, counted=counted)
        self.open_ids[seen.name] = seen.session_id
        start = AgentStart(self.ids.make("ast"), seen.name, agent, seen.session_id, at, reason, counted=counted)
        row = SessionRow(seen.session_id, seen.name, agent, None, self.where.provider, self.where.node, seen.pid, at)
        payload = {"session": seen.name, "session_id": seen.session_id, "pid": seen.pid, "reason": reason}
        event = self.event("agent.started" if told else "agent.adopted", agent, reason, payload)
        self.add(seen.name, Began(start, row if seen.session_id else None, event))

    def failed(
        self, agent: str, session: SessionName, reason: str, error: LampError, *, at: datetime, counted: bool
    ) -> None:
        self.histories[session] = self.of(session).failed(at, counted=counted, cause=error.message)
        start = AgentStart(
            self.ids.make("ast"), session, agent, "", at, reason, failure=error.message, counted=counted,
            ended_at=self.clock.now(),
        )  # fmt: skip
        event = self.event("agent.start_failed", agent, error.message, {"session": session, "hint": error.hint})
        self.add(session, Began(start, None, event))

    def ended(self, session: SessionName, end: SessionEnd, *, wished: bool, events: tuple[NewEvent, ...] = ()) -> None:
        session_id = self.open_ids.pop(session, "")
        self.histories[session] = self.of(session).ended(end.at, wished=wished, cause=end.reason)
        self.add(session, Ended(session, session_id, end, wished, events))

    def noted(self, session: SessionName, *events: NewEvent, **told: object) -> None:
        """Set `crash_noted` or `quarantine_noted` in the session's history, and record it with the events."""
        self.histories[session] = replace(self.of(session), **told)  # type: ignore[arg-type]  # its fields by name
        self.add(session, Noted(session, self.histories[session], events))

    def tell(self, session: SessionName, event: NewEvent) -> None:
        self.add(session, Told(event))

    def cleared(self, session: SessionName) -> None:
        """A person lifted the quarantine; the process that did so has already recorded it in the store."""
        self.histories[session] = self.of(session).cleared()

    def event(self, kind: str, agent: str, message: str, payload: Mapping[str, object] | None = None) -> NewEvent:
        given = None if payload is None else dict(payload)
        return acting(ACTOR, self.clock.now(), self.ids).event(kind, subject=agent, message=message, payload=given)

    def turn(self, session: SessionName) -> None:
        """Give the session the next turn: facts flushed together are recorded in the order of their sessions' turns."""
        self._last_turn += 1
        self.turns[session] = self._last_turn

    def add(self, session: SessionName, fact: Fact) -> None:
        self._pending.append((self.turns.get(session, 0), fact))
        self._drop_the_oldest()

    def _drop_the_oldest(self) -> None:
        too_many = max(0, len(self._pending) - MOST_PENDING)
        del self._pending[:too_many]
        self._lost += too_many

    def flush_soon(self) -> None:
        """Record pending facts in the background, so that relighting an agent does not wait for the store."""
        if self._soon is None:
            self._soon = spawn(self._flush_aside(), name="agents' records")

    async def _flush_aside(self) -> None:
        await asyncio.sleep(0)  # facts added in the same turn of the event loop are written along
        self._soon = None
        try:
            await self.flush()
        except LampError as error:  # only logged here; a later flush by `tick` raises its own errors
            log.get().warning("agents.unrecorded", error=error.message)

    async def flush(self) -> None:
        """Record the pending facts; those of actions that ran in parallel in the order they were decided.

        Facts added during a write are recorded by the next flush, which waits for that write.
        """
        await asyncio.sleep(0)  # facts of the same turn of the event loop are written together
        async with self._writing:
            facts, self._pending = self._pending, []
            if not facts:
                return
            try:
                await self.store.transact(sessions.record, [fact for _, fact in sorted(facts, key=_turn)])
            except Unavailable as error:
                self._pending = facts + self._pending
                self._drop_the_oldest()
                lost = f" ({self._lost} older ones are lost)" if self._lost else ""
                self.problem = f"{len(self._pending)} facts about agents are not on record yet{lost}: {error.message}"
                log.get().warning("agents.unrecorded", count=len(self._pending), lost=self._lost, error=error.message)
                if isinstance(error, Fenced):  # this process cannot record them any more
                    raise
            else:
                self.problem = None
                if self._lost:
                    log.get().error("agents.facts_lost", count=self._lost)
                    self._lost = 0


def _turn(pending: tuple[int, Fact]) -> int:
    return pending[0]


def _forgiven(history: SessionHistory) -> SessionHistory:
    lives = tuple(replace(life, counted=False) for life in history.lives)
    return replace(history, lives=lives, quarantine_noted=None)
