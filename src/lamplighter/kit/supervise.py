"""A supervision tree as in OTP: ordered start, restart within a limit, ordered and bounded stop."""

import asyncio
import errno
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, Kind, LampError
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.records import record

FIRST_DELAY = timedelta(milliseconds=100)
LONGEST_DELAY = timedelta(seconds=5)
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors of a machine that has temporarily run out of something."""


@record
class Child:
    """One long-lived part: `run` works until cancelled; `stop`, if given, is called first to end it gracefully."""

    name: str
    run: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]] | None = None
    stop_within: timedelta = timedelta(seconds=5)
    dropped_when_fenced: bool = False
    """After a fence the child is cancelled without `stop`, as in a crash: `stop` would end what others may hold now.
    The same after `leave_behind`."""


class TooManyRestarts(Exception):
    """A child failed more often than the limit allows; the failure goes up to the supervisor's caller."""

    def __init__(self, child: str, limit: int, window: timedelta) -> None:
        super().__init__(f"{child} failed more than {limit} times within {window.total_seconds():g} s")
        self.child = child


@dataclass
class Supervisor:
    """Runs its children until one fails for good or the supervisor is cancelled; then stops them, last one first."""

    clock: Clock
    limit: int = 5
    window: timedelta = timedelta(seconds=60)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _children: dict[str, Child] = field(default_factory=dict)
    _fenced: bool = False

    def leave_behind(self) -> None:
        """From now on children are stopped as after a fence: what they hold is left to the next process."""
        self._fenced = True

    async def run(self, children: list[Child]) -> None:
        """Raises TooManyRestarts, Fenced or CancelledError; returns only when every child has returned."""
        try:
            for child in children:
                self._children[child.name] = child
                self._tasks[child.name] = asyncio.create_task(self._keep(child), name=child.name)
            # Not gather: it would cancel every child at once, but children must be stopped in order.
            done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        except Fenced:
            self._fenced = True
            raise
        finally:
            await self._stop_all()

    async def _keep(self, child: Child) -> None:
        failures: deque[datetime] = deque()
        waits = 0
        while True:
            began = self.clock.monotonic()
            try:
                return await child.run()
            except Fenced:
                raise
            except (LampError, OSError) as error:
                if _is_away(error):
                    # What the child needs is away (a full disk, a database restarting): wait for it, do not give up.
                    log.get().warning("child.waiting", child=child.name, error=str(error))
                    waits = 0 if self.clock.monotonic() - began > LONGEST_DELAY.total_seconds() else waits
                    delay = doubling(waits, first=FIRST_DELAY, most=LONGEST_DELAY)
                    waits += 1
                else:
                    delay = self._failed(child, failures, error)
            except Exception as error:  # noqa: BLE001  a supervisor is where bugs end
                delay = self._failed(child, failures, error)
            await self.clock.wait(asyncio.Event(), at_most=delay)

    def _failed(self, child: Child, failures: deque[datetime], error: Exception) -> timedelta:
        """Count the failure; returns how long to wait before the next start. Raises TooManyRestarts."""
        now = self.clock.now()
        failures.append(now)
        while failures and now - failures[0] > self.window:
            failures.popleft()
        log.get().error("child.failed", child=child.name, failures=len(failures), exc_info=error)
        if len(failures) > self.limit:
            raise TooManyRestarts(child.name, self.limit, self.window) from error
        return doubling(len(failures) - 1, first=FIRST_DELAY, most=LONGEST_DELAY)

    async def _stop_all(self) -> None:
        for name in reversed(list(self._tasks)):
            await self._stop(self._children[name], self._tasks[name])

    async def _stop(self, child: Child, task: asyncio.Task[None]) -> None:
        dropped = self._fenced and child.dropped_when_fenced
        if child.stop is not None and not task.done() and not dropped:
            try:
                async with TimeLimit(child.stop_within.total_seconds()):
                    await child.stop()
                    await asyncio.wait({task})
            except TimeoutError:
                log.get().warning("child.stop_overran", child=child.name, after_s=child.stop_within.total_seconds())
            except Exception as error:  # noqa: BLE001  one child's bad stop must not keep the others running
                log.get().error("child.stop_failed", child=child.name, exc_info=error)
        task.cancel()
        await asyncio.wait({task}, timeout=child.stop_within.total_seconds())
        if task.done() and not task.cancelled():
            task.exception()  # mark as seen; it was logged when it happened


def _is_away(error: LampError | OSError) -> bool:
    if isinstance(error, LampError):
        return error.kind is Kind.UNAVAILABLE
    return error.errno in _SCARCE
