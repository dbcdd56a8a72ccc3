"""A transaction as a plain function sees it: the repositories of one connection, and the wake-ups it asks for."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cached_property
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from lamplighter.store.engine.db import Db

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.agents import Agents
    from lamplighter.store.artifacts import Artifacts
    from lamplighter.store.automations import Automations
    from lamplighter.store.beads import Beads
    from lamplighter.store.cities import Cities
    from lamplighter.store.clock_moves import ClockMoves
    from lamplighter.store.configurations import Configurations
    from lamplighter.store.effects import Effects
    from lamplighter.store.events import Events
    from lamplighter.store.nodes import Nodes
    from lamplighter.store.outbox import Outbox
    from lamplighter.store.owners import Owners
    from lamplighter.store.runs import Runs
    from lamplighter.store.sessions import Sessions
    from lamplighter.store.transcripts import Transcripts
    from lamplighter.store.trigger_events import TriggerEvents
    from lamplighter.store.triggers import Triggers

P = ParamSpec("P")
R = TypeVar("R")


class Tx:
    """One per connection, passed to one function at a time; `take_wakes` clears the wake-ups that function asked for.

    A repository is imported when a transaction first uses it, so that a short command loads only what it needs.
    """

    def __init__(self, db: Db, city: str) -> None:
        self.db = db
        self.city = city
        self._wakes: set[str] = set()

    @cached_property
    def events(self) -> "Events":
        from lamplighter.store.events import Events

        return Events(self.db, self.city, self._wakes)

    @cached_property
    def beads(self) -> "Beads":
        from lamplighter.store.beads import Beads

        return Beads(self.db, self.city)

    @cached_property
    def cities(self) -> "Cities":
        from lamplighter.store.cities import Cities

        return Cities(self.db, self.city)

    @cached_property
    def owners(self) -> "Owners":
        from lamplighter.store.owners import Owners

        return Owners(self.db, self.city)

    @cached_property
    def nodes(self) -> "Nodes":
        from lamplighter.store.nodes import Nodes

        return Nodes(self.db, self.city)

    @cached_property
    def automations(self) -> "Automations":
        from lamplighter.store.automations import Automations

        return Automations(self.db, self.city)

    @cached_property
    def clock_moves(self) -> "ClockMoves":
        from lamplighter.store.clock_moves import ClockMoves

        return ClockMoves(self.db, self.city)

    @cached_property
    def triggers(self) -> "Triggers":
        from lamplighter.store.triggers import Triggers

        return Triggers(self.db, self.city)

    @cached_property
    def trigger_events(self) -> "TriggerEvents":
        from lamplighter.store.trigger_events import TriggerEvents

        return TriggerEvents(self.db, self.city)

    @cached_property
    def runs(self) -> "Runs":
        from lamplighter.store.runs import Runs

        return Runs(self.db, self.city)

    @cached_property
    def outbox(self) -> "Outbox":
        from lamplighter.store.outbox import Outbox

        return Outbox(self.db, self.city, self._wakes)

    @cached_property
    def sessions(self) -> "Sessions":
        from lamplighter.store.sessions import Sessions

        return Sessions(self.db, self.city)

    @cached_property
    def agents(self) -> "Agents":
        from lamplighter.store.agents import Agents

        return Agents(self.db, self.city)

    @cached_property
    def artifacts(self) -> "Artifacts":
        from lamplighter.store.artifacts import Artifacts

        return Artifacts(self.db, self.city)

    @cached_property
    def configurations(self) -> "Configurations":
        from lamplighter.store.configurations import Configurations

        return Configurations(self.db, self.city)

    @cached_property
    def effects(self) -> "Effects":
        from lamplighter.store.effects import Effects

        return Effects(self.db, self.city)

    @cached_property
    def transcripts(self) -> "Transcripts":
        from lamplighter.store.transcripts import Transcripts

        return Transcripts(self.db, self.city)

    def wake(self, topic: str) -> None:
        """Ask for a wake-up of all that wait for `topic`; it is sent once this transaction has committed."""
        self._wakes.add(topic)

    def take_wakes(self) -> frozenset[str]:
        wakes = frozenset(self._wakes)
        self._wakes.clear()
        return wakes


class Store(Protocol):
    """Where a city keeps its state. A transaction function may be run again, so its SQL must be its only effect."""

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` on a database thread, commit, and return its value.

        A caller cancelled meanwhile gets its CancelledError only after the commit has succeeded or failed; the value or
        error of the transaction is then discarded.
        """
        ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` on a read-only snapshot; it never waits for a writer, and its writes are refused."""
        ...

    def clock_offset(self) -> Awaitable[timedelta]:
        """How far the database's clock is ahead of this machine's."""
        ...

    async def close(self) -> None: ...


class DirectStore(Protocol):
    """The same transactions without an event loop, for the command line."""

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def close(self) -> None: ...
