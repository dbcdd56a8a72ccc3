"""The store of one city: typed transactions on a database that may serve other cities too."""

from collections.abc import Callable
from datetime import timedelta
from typing import Concatenate, ParamSpec, TypeVar

from lamplighter.store.engine import Database, Datagrams, DirectDatabase, Publisher, WithDatagrams
from lamplighter.store.tx import Tx

P = ParamSpec("P")
R = TypeVar("R")


class CityStore:
    """One that `owns` its database closes it; others only stop being told of wake-ups."""

    def __init__(
        self, database: Database, city: str, wakes: Publisher, *, datagrams: Datagrams | None = None, owns: bool
    ) -> None:
        self.database = database
        self._city = city
        self._wakes = wakes if datagrams is None else WithDatagrams(wakes, datagrams)
        self._datagrams = datagrams
        self._owns = owns
        database.wakes.add(city, self._wakes)

    @property
    def trouble(self) -> str | None:
        return self.database.trouble

    async def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = await self.database.transact(self._city, fn, args, kwargs)
        return value

    async def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = await self.database.read(self._city, fn, args, kwargs)
        return value

    async def clock_offset(self) -> timedelta:
        return await self.database.clock_offset()

    async def close(self) -> None:
        if self._owns:
            await self.database.close()
        self.database.wakes.remove(self._city, self._wakes)
        if self._datagrams is not None:
            self._datagrams.close()


class CityDirect:
    """The same transactions on the caller's thread. One that `owns` its connection closes it."""

    def __init__(self, database: DirectDatabase, city: str, *, datagrams: Datagrams | None = None, owns: bool) -> None:
        self.database = database
        self._city = city
        self._datagrams = datagrams
        self._owns = owns
        if datagrams is not None:
            database.wakes.add(city, datagrams)

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = self.database.transact(self._city, lambda tx: fn(tx, *args, **kwargs))
        return value

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = self.database.read(self._city, lambda tx: fn(tx, *args, **kwargs))
        return value

    def close(self) -> None:
        if self._owns:
            self.database.close()
        if self._datagrams is not None:
            self.database.wakes.remove(self._city, self._datagrams)
            self._datagrams.close()
