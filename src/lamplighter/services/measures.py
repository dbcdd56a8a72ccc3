"""The numbers that a monitoring program asks for, from queries whose cost does not grow with the history."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

from lamplighter.domain.events import Event
from lamplighter.domain.sessions.actions import AgentState
from lamplighter.kit import log
from lamplighter.kit.errors import LampError
from lamplighter.services import outbox
from lamplighter.services.agents.seen import agents_of
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

PAGE = 500
MOST_PAGES = 20
"""At most so many events are read each time; what is left over is read the next time."""
MOST_REASONS = 50
OTHER = "other"
_OF_RUNS = "automation."


@dataclass(frozen=True)
class Measured:
    """What the store tells; spans are in seconds. `ended` counts from the first time that this process was asked."""

    runs: dict[str, int]
    """Runs under way, by state."""
    outbox: dict[str, int]
    """Items that are not settled, by state."""
    outbox_oldest: float
    """How long the item that was due first has been waiting."""
    schedule_lag: float
    """How late the trigger is that is due first; 0 if none is due."""
    events: int
    """The number of the newest event."""
    paused: bool
    inbox: int
    """Inbox items that are open and not snoozed."""
    agents: dict[str, int] | None = None
    """Agents by state; None if the configuration or the sessions cannot be read now."""
    starts: dict[str, int] = field(default_factory=dict)
    """How often agents were started, by the reason."""
    ended: dict[tuple[str, str], int] = field(default_factory=dict)
    """Runs that ended, by state and reason."""


class Measures:
    """Reads the numbers; keeps count of runs that ended by reading each event once."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._cursor: int | None = None
        self._ended: Counter[tuple[str, str]] = Counter()
        self._starts: Counter[str] = Counter()
        self._reasons: set[str] = set()

    async def take(self, now: datetime) -> Measured:
        if self._cursor is None:
            self._cursor = await self._host.store.read(_head)
        for _ in range(MOST_PAGES):
            found = await self._host.store.read(_after, self._cursor)
            self._count(found)
            if len(found) < PAGE:
                break
        taken = await self._host.store.read(_taken, now)
        taken.ended.update(self._ended)
        taken.starts.update(self._starts)
        return replace(taken, agents=await self._agents(now))

    async def _agents(self, now: datetime) -> dict[str, int] | None:
        try:
            found = await agents_of(self._host, now)
        except LampError as error:
            log.get().warning("metrics.agents_unknown", error=error.message)
            return None
        return {state.value: 0 for state in AgentState} | Counter(one.state for one in found)

    def _count(self, events: list[Event]) -> None:
        for event in events:
            self._cursor = event.seq
            payload = event.payload
            if event.type == "agent.started":
                why = str(payload.get("reason") or "") if isinstance(payload, dict) else ""
                self._starts[self._reason(why)] += 1
            elif (
                event.type.startswith(_OF_RUNS)
                and isinstance(payload, dict)
                and "run" in payload
                and "state" in payload
            ):
                self._ended[str(payload["state"]), self._reason(str(payload.get("reason") or ""))] += 1

    def _reason(self, reason: str) -> str:
        """A monitoring program keeps a series for each reason, so there is a bound to them."""
        if reason not in self._reasons and len(self._reasons) >= MOST_REASONS:
            return OTHER
        self._reasons.add(reason)
        return reason


def _head(tx: Tx) -> int:
    return tx.events.head()


def _after(tx: Tx, cursor: int) -> list[Event]:
    return tx.events.after(cursor, limit=PAGE)


def _taken(tx: Tx, now: datetime) -> Measured:
    oldest, due = outbox.next_due_at(tx), tx.triggers.next_due_at()
    city = tx.summary.city()
    return Measured(
        tx.summary.active_runs(),
        tx.outbox.open_items(),
        0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        0.0 if due is None else max(0.0, (now - due).total_seconds()),
        tx.events.head(),
        city is not None and city[1],
        tx.summary.attention(now),
    )
