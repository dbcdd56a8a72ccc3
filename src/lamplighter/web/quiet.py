"""A uvicorn server that sleeps while nobody asks: by itself it wakes ten times a second, for the date and the end."""

import asyncio
import contextlib
from collections.abc import Iterator
from email.utils import formatdate

import uvicorn
from uvicorn.server import ServerState

from lamplighter.kit.clock import SystemClock

_CLOCK = SystemClock()


class QuietServer(uvicorn.Server):
    """Signals are the process's own business; `stop` ends it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = _DatedState()
        self._told = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        await self._told.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _DatedState(ServerState):
    """Its headers are asked for with each answer; the date among them is made anew when a second has passed."""

    _second = 0
    _dated: list[tuple[bytes, bytes]]

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        second = int(_CLOCK.now().timestamp())
        if second != self._second:
            self._second = second
            self._dated = [(b"date", formatdate(second, usegmt=True).encode())]
        return self._dated

    @default_headers.setter
    def default_headers(self, _value: list[tuple[bytes, bytes]]) -> None:
        """The base class sets an empty list first."""
