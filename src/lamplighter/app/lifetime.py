"""The lifetime of a controller or worker process: runs until told to stop, and starts anew after it was fenced."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import CityGone, Fenced, LampError, Unavailable
from lamplighter.kit.supervise import Child, Supervisor

FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)


class Lifetime:
    """`name` is the process's name in log events; `told` is set when it is to stop.

    `leaving`: it stops, but leaves sessions and runs under way to the process that follows it.
    """

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self.told = asyncio.Event()
        self.leaving = False

    async def run(self, live: Callable[[bool], Awaitable[None]]) -> None:
        """Call `live` until told to stop; its argument is False once the process was fenced.

        After Fenced (the proof of life was lost) it is called again, with growing pauses while it raises Unavailable.
        Raises CityGone, and Unavailable if the process was never fenced.
        """
        asyncio.get_running_loop().set_exception_handler(_tell)
        fenced, waits = False, 0
        while not self.told.is_set():
            try:
                return await live(not fenced)
            except Unavailable as error:
                if isinstance(error, CityGone) or (not fenced and not isinstance(error, Fenced)):
                    raise
                fenced, waits = True, 0 if isinstance(error, Fenced) else waits + 1
                log.get().warning(f"{self._name}.starts_anew", error=error.message)
            await self._clock.wait(self.told, at_most=doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT))
        return None

    async def supervise(self, children: list[Child]) -> None:
        """Run the children until told to stop; raises the error of a child that fails for good."""
        supervisor = Supervisor(self._clock)
        tree = asyncio.create_task(supervisor.run(children), name="tree")
        told = asyncio.create_task(self.told.wait(), name="stop")
        await asyncio.wait({tree, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if tree.done():
            await tree
        if self.leaving:
            supervisor.leave_behind()
        tree.cancel()
        with suppress(asyncio.CancelledError):
            await tree

    def leave(self) -> None:
        """Stop, and leave sessions and runs to the next process. Without effect once it was told to stop."""
        self.leaving = self.leaving or not self.told.is_set()
        self.told.set()

    def stop(self) -> None:
        """Stop with all that it started, even if it was leaving."""
        self.leaving = False
        self.told.set()

    def on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # SIGHUP: the terminal was closed
            loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        if self.told.is_set():
            if number is signal.SIGHUP:
                return  # the terminal was closed while the process was stopping
            log.get().warning("stop.forced", signal=number.name)
            os._exit(128 + number)  # a second request: end at once instead of waiting on
        log.get().info("stop.asked", signal=number.name)
        self.told.set()


async def if_possible(step: Callable[..., Awaitable[object]], *args: Any) -> None:
    """Run one step of a shutdown; a LampError is logged, not raised.

    A process must be able to stop while its database is unreachable; the next process expires what it still held.
    """
    try:
        await step(*args)
    except LampError as error:
        log.get().warning("stop.incomplete", error=error.message)


def _tell(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled: from a callback, a connection or a task that was never awaited."""
    log.get().error("loop.error", error=context.get("message"), exc_info=context.get("exception"))
