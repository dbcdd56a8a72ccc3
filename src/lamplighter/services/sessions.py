"""Recording starts and ends of agent sessions, each with its events in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.events import NewEvent
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.store.agents import AgentStart, Remembered
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Tx

TOPIC = "agents"
PRUNE_AT_ONCE = 500
TAIL = 8000


@dataclass(frozen=True)
class Began:
    """A start and, when it succeeded, the session it made."""

    start: AgentStart
    session: SessionRow | None
    event: NewEvent | None

    def record(self, tx: Tx) -> None:
        tx.agents.add(self.start)
        if self.session is not None:
            tx.sessions.add(self.session)
        if self.event is not None:
            tx.events.append(self.event)


@dataclass(frozen=True)
class Ended:
    session: SessionName
    session_id: str
    end: SessionEnd
    wished: bool
    events: tuple[NewEvent, ...] = ()

    def record(self, tx: Tx) -> None:
        tx.agents.end(
            self.session, self.end.at, wished=self.wished, exit_status=self.end.exit_status, reason=self.end.reason
        )
        if self.session_id:
            tx.sessions.end(self.session_id, self.end)
        for event in self.events:
            tx.events.append(event)


@dataclass(frozen=True)
class Noted:
    """Events about a session, and the history that records them so that each is emitted once."""

    session: SessionName
    history: SessionHistory
    events: tuple[NewEvent, ...] = ()

    def record(self, tx: Tx) -> None:
        tx.agents.note(self.session, self.history)
        for event in self.events:
            tx.events.append(event)


@dataclass(frozen=True)
class Told:
    event: NewEvent

    def record(self, tx: Tx) -> None:
        tx.events.append(self.event)


Fact = Began | Ended | Noted | Told


def record(tx: Tx, facts: Sequence[Fact]) -> None:
    for fact in facts:
        fact.record(tx)


def remembered(tx: Tx, *, since: datetime) -> Remembered:
    return tx.agents.remembered(since)


def unquarantine(tx: Tx, session: SessionName, event: NewEvent) -> None:
    tx.agents.clear(session)
    tx.events.append(event)
    tx.wake(TOPIC)


def announce(tx: Tx, event: NewEvent) -> None:
    """Append the event and wake the patrol."""
    tx.events.append(event)
    tx.wake(TOPIC)


def prune(tx: Tx, *, before: datetime) -> int:
    """Delete ended sessions and starts older than `before`, a batch of each; returns how many."""
    sessions = tx.sessions.prune(before=before, limit=PRUNE_AT_ONCE)
    return sessions + tx.agents.prune(before=before, limit=PRUNE_AT_ONCE)
