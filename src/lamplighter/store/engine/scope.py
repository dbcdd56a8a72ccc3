"""What the engine knows of the object that a transaction function gets: its city, and the wake-ups it asks for."""

from collections.abc import Callable
from typing import Any, Protocol

from lamplighter.store.engine.db import Db

Work = Callable[..., Any]
"""A transaction function; its first argument is the Scope of its city."""


class Scope(Protocol):
    """One per connection and city, passed to one function at a time."""

    city: str
    db: Db

    def wake(self, topic: str) -> None: ...

    def take_wakes(self) -> frozenset[str]:
        """The wake-ups that were asked for; they are cleared."""
        ...


MakeScope = Callable[[Db, str], Scope]


class Scopes:
    """The scope of each city that one connection has served; one thread at a time uses it."""

    def __init__(self, db: Db, make: MakeScope) -> None:
        self._db = db
        self._make = make
        self._made: dict[str, Scope] = {}

    def of(self, city: str) -> Scope:
        """For the next function to run. Wake-ups that an earlier one asked for before it failed are forgotten."""
        scope = self._made.get(city)
        if scope is None:
            scope = self._made[city] = self._make(self._db, city)
        else:
            scope.take_wakes()
        return scope
