"""A database as the stores on it see it: transaction functions with their city go in, their values come back."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Protocol

from lamplighter.store.engine.city_wakes import CityWakes
from lamplighter.store.engine.scope import Work


class Database(Protocol):
    """Has threads and connections of its own, which serve any number of cities."""

    wakes: CityWakes
    """Who is told of the wake-ups that the transactions of each city ask for."""

    @property
    def trouble(self) -> str | None:
        """Why transactions failed lately for want of the database; None if they did not."""
        ...

    def transact(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[Any]:
        """Run `fn` with the city's scope in a transaction, and commit it."""
        ...

    def read(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[Any]:
        """Run `fn` with the city's scope on a read-only snapshot."""
        ...

    def clock_offset(self) -> Awaitable[timedelta]:
        """How far the database's clock is ahead of this machine's."""
        ...

    async def close(self) -> None:
        """Finish what was handed in for all cities, then close every connection."""
        ...


class DirectDatabase(Protocol):
    """One connection, used on the caller's thread."""

    wakes: CityWakes
    """Who is told, beside those who listen to the database itself."""

    def transact(self, city: str, fn: Work) -> Any: ...

    def read(self, city: str, fn: Work) -> Any: ...

    def close(self) -> None: ...
