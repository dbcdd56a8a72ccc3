"""Watches for the end of processes, also of those that are not our children."""

import asyncio
import os
import select
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from lamplighter.adapters.processes.table import Identity, is_alive
from lamplighter.kit import descriptors
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit

Ended = Callable[[], None]
_POLL_S = 0.05


def watch(who: Identity, ended: Ended) -> Callable[[], None]:
    """Call `ended` once, from the running loop, when `who` ends or if it already has; returns the cancel function."""
    if not may_live(who):
        handle = asyncio.get_running_loop().call_soon(ended)
        return handle.cancel
    return _watch_by_system(who, ended)


def may_live(who: Identity) -> bool:
    """False only if the process is known to have ended; True while no descriptor is free to look at it."""
    try:
        return is_alive(who)
    except Unavailable:
        return True


async def all_ended(processes: Iterable[Identity], within: timedelta) -> bool:
    """Wait until all have ended; False when some have not after `within`."""
    done = asyncio.Event()
    left = set(processes)
    if not left:
        return True

    def strike(who: Identity) -> None:
        left.discard(who)
        if not left:
            done.set()

    cancels = [watch(who, partial(strike, who)) for who in tuple(left)]
    try:
        async with TimeLimit(within.total_seconds()):
            await done.wait()
    except TimeoutError:
        return False
    finally:
        for cancel in cancels:
            cancel()
    return True


def _watch_by_poll(who: Identity, ended: Ended) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    pending: list[asyncio.TimerHandle] = []

    def look() -> None:
        pending.clear()
        if may_live(who):
            pending.append(loop.call_later(_POLL_S, look))
        else:
            ended()

    def cancel() -> None:
        for handle in pending:
            handle.cancel()
        pending.clear()

    look_soon = loop.call_later(_POLL_S, look)
    pending.append(look_soon)
    return cancel


if sys.platform == "linux":

    def _watch_by_system(who: Identity, ended: Ended) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        try:
            fd = os.pidfd_open(who.pid)
        except ProcessLookupError:
            return loop.call_soon(ended).cancel
        except (OSError, AttributeError):  # out of descriptors, or a system without pidfds: poll instead
            return _watch_by_poll(who, ended)
        if descriptors.too_many_for_a_watch(fd):
            os.close(fd)
            return _watch_by_poll(who, ended)
        open_fds = {fd}

        def cancel() -> None:
            if open_fds:
                open_fds.clear()
                loop.remove_reader(fd)
                os.close(fd)

        def fire() -> None:
            cancel()
            ended()

        loop.add_reader(fd, fire)
        if not may_live(who):  # it ended and its pid was reused between the first check and pidfd_open
            cancel()
            return loop.call_soon(ended).cancel
        return cancel

elif sys.platform == "darwin":

    def _watch_by_system(who: Identity, ended: Ended) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        queue = select.kqueue()
        event = select.kevent(
            who.pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
        )
        try:
            queue.control([event], 0)
        except ProcessLookupError:
            queue.close()
            return loop.call_soon(ended).cancel

        def cancel() -> None:
            if not queue.closed:
                loop.remove_reader(queue.fileno())
                queue.close()

        def fire() -> None:
            cancel()
            ended()

        loop.add_reader(queue.fileno(), fire)
        return cancel

else:
    _watch_by_system = _watch_by_poll
