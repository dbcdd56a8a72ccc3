"""A transaction as a plain function sees it: the repositories of one connection, and the wake-ups it asks for."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from lamplighter.store.automations import Automations
from lamplighter.store.beads import Beads
from lamplighter.store.cities import Cities
from lamplighter.store.db import Db
from lamplighter.store.events import Events
from lamplighter.store.outbox import Outbox
from lamplighter.store.owners import Owners
from lamplighter.store.runs import Runs
from lamplighter.store.trigger_events import TriggerEvents
from lamplighter.store.triggers import Triggers

P = ParamSpec("P")
R = TypeVar("R")


class Tx:
    """Lives as long as its connection and is handed to one function at a time; `begin` clears what one leaves."""

    __slots__ = (
        "_wakes",
        "automations",
        "beads",
        "cities",
        "city",
        "db",
        "events",
        "outbox",
        "owners",
        "runs",
        "trigger_events",
        "triggers",
    )

    def __init__(self, db: Db, city: str) -> None:
        self.db = db
        self.city = city
        self._wakes: set[str] = set()
        self.events = Events(db, city, self._wakes)
        self.beads = Beads(db, city)
        self.cities = Cities(db, city)
        self.owners = Owners(db, city)
        self.automations = Automations(db, city)
        self.triggers = Triggers(db, city)
        self.trigger_events = TriggerEvents(db, city)
        self.runs = Runs(db, city)
        self.outbox = Outbox(db, city, self._wakes)

    def wake(self, topic: str) -> None:
        """Ask for a wake-up of everyone who waits for `topic`, sent once this transaction has committed."""
        self._wakes.add(topic)

    def take_wakes(self) -> frozenset[str]:
        wakes = frozenset(self._wakes)
        self._wakes.clear()
        return wakes


class Store(Protocol):
    """Where a city keeps its state. A transaction function may be run again, so it has no effect but its SQL."""

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` whole on a database thread, commit, and give its value.

        Cancelling the caller waits for the commit's answer first, so no caller ever leaves without knowing it.
        """
        ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` on a reader's snapshot; it never waits for a writer, and what it writes is refused."""
        ...

    def clock_offset(self) -> Awaitable[timedelta]:
        """How far the database's clock is ahead of this machine's."""
        ...

    async def close(self) -> None: ...


class DirectStore(Protocol):
    """The same transactions without an event loop: the command line's way in."""

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def close(self) -> None: ...
