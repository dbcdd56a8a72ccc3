"""Opens real session providers for the contract suites, and ends the sessions they leave running."""

import os
from collections.abc import Callable
from datetime import timedelta

from lamplighter.ports.sessions import SessionProvider


class RealCities:
    """Remembers every provider it opened, so that no test leaves a process behind.

    `make` takes a city's name and its id. Ids are unique to this object: sessions are ended by city and name wherever
    their processes are, and tests that run in parallel must not end each other's sessions.
    """

    def __init__(self, make: Callable[[str, str], SessionProvider]) -> None:
        self._make = make
        self._run = os.urandom(6).hex()
        self._opened: list[tuple[str, SessionProvider]] = []

    def city_id(self, city: str = "first") -> str:
        return f"{city}-{self._run}"

    def open(self, city: str = "first") -> SessionProvider:
        provider = self._make(city, self.city_id(city))
        self._opened.append((city, provider))
        return provider

    async def end_all(self) -> None:
        for _, provider in self._opened:
            for name in await provider.seen():
                await provider.stop(name, grace=timedelta(0))
        for _, provider in self._opened:
            await provider.close()
