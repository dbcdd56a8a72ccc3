"""Recording starts and ends of agent sessions, each with its events in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.events import NewEvent
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import session_ends
from lamplighter.services.context import acting
from lamplighter.services.inbox import needs, settling
from lamplighter.store.agents import AgentStart, Remembered
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Tx

TOPIC = "agents"
QUARANTINED = "agent.quarantined"
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
        if self.session_id and tx.sessions.end(self.session_id, self.end):
            session_ends.tell(tx, self.session_id, self.end.at)
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
            if event.type == QUARANTINED:
                ctx = acting(event.actor, event.at)
                needs.open_item(
                    tx, needs.quarantined(event.subject or "", self.session, event.message or "", event.at), ctx=ctx
                )


@dataclass(frozen=True)
class Standing:
    """An agent whose program stands at a permission prompt of its own: what it asks for, and since when."""

    agent: str
    what: str
    since: datetime


@dataclass(frozen=True)
class Prompted:
    """All agents that stand at a prompt for so long that people are told; the items of others are settled."""

    standing: Mapping[SessionName, Standing]
    at: datetime
    actor: str

    def record(self, tx: Tx) -> None:
        ctx = acting(self.actor, self.at)
        found = {name: needs.waiting(one.agent, name, one.what, one.since) for name, one in self.standing.items()}
        for need in found.values():
            needs.open_item(tx, need, ctx=ctx)
        settling.of_answered_prompts(tx, {need.fingerprint for need in found.values()}, ctx=ctx)


@dataclass(frozen=True)
class Told:
    event: NewEvent

    def record(self, tx: Tx) -> None:
        tx.events.append(self.event)


Fact = Began | Ended | Noted | Prompted | Told


def record(tx: Tx, facts: Sequence[Fact]) -> None:
    for fact in facts:
        fact.record(tx)


def remembered(tx: Tx, *, since: datetime) -> Remembered:
    return tx.agents.remembered(since)


def unquarantine(tx: Tx, session: SessionName, event: NewEvent) -> None:
    tx.agents.clear(session)
    settling.of_lifted(tx, event.subject or "", event.actor, event.at)
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
