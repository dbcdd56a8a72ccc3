"""Opens real session providers for the contract suites, and ends what they leave running."""

from collections.abc import Callable
from datetime import timedelta

from lamplighter.ports.sessions import SessionProvider


class RealCities:
    """Remembers every provider it opened, so that no test leaves a process behind."""

    def __init__(self, make: Callable[[str], SessionProvider]) -> None:
        self._make = make
        self._opened: list[tuple[str, SessionProvider]] = []

    def open(self, city: str = "first") -> SessionProvider:
        provider = self._make(city)
        self._opened.append((city, provider))
        return provider

    async def end_all(self) -> None:
        for _, provider in self._opened:
            for name in await provider.seen():
                await provider.stop(name, grace=timedelta(0))
        for _, provider in self._opened:
            await provider.close()
