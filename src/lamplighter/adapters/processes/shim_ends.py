"""Watches for the end of any number of shims with one descriptor."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lamplighter.adapters.processes.table import Identity
from lamplighter.adapters.processes.watch import Ended, may_live, watch
from lamplighter.kit.inotify import CLOSE_WRITE, IGNORED, OVERFLOW, Inotify, available

Cancel = Callable[[], None]
LOOK_S = 5.0
FIRST_TRY_S = 0.02
LAST_TRY_S = 5.0


@dataclass
class _One:
    who: Identity
    ended: Ended
    cancel: Cancel


class ShimEnds:
    """Uses inotify to see the exit file that a shim writes into its session's directory as its last act.

    A shim that is killed writes none, so all shims are checked every few seconds, with one or two system calls each.
    Where there is no inotify, or it has no more watches, each shim's process is watched by itself.
    """

    def __init__(self, exit_file: str, *, look_every: float = LOOK_S) -> None:
        self._exit_file = exit_file
        self._look_every = look_every
        self._notify: Inotify | None = None
        self._watched: dict[int, _One] = {}
        self._next_look: asyncio.TimerHandle | None = None

    def watch(self, home: Path, who: Identity, ended: Ended) -> Cancel:
        """Call `ended` once, from the running loop, when the shim ends or if it already has; returns the cancel."""
        number = self._add(home)
        if number is None:
            return watch(who, ended)
        one = self._watched[number] = _One(who, ended, lambda: self._forget(number))
        if (home / self._exit_file).exists() or not may_live(who):
            self._forget(number)
            return asyncio.get_running_loop().call_soon(ended).cancel
        return lambda: one.cancel()  # noqa: PLW0108  `_directory_gone` replaces it

    def _add(self, home: Path) -> int | None:
        if not available():
            return None
        try:
            return self._opened().add(os.fspath(home), CLOSE_WRITE)
        except OSError:
            self._close_if_unused()
            return None

    def _opened(self) -> Inotify:
        if self._notify is None:
            self._notify = Inotify()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._notify.fd, self._heard)
            self._next_look = loop.call_later(self._look_every, self._look)
        return self._notify

    def _heard(self) -> None:
        if self._notify is None:
            return
        for change in list(self._notify.read()):
            if change.mask & OVERFLOW:
                self._look_at_all()
            elif change.watch in self._watched and change.name == self._exit_file:
                self._fire(change.watch)
            elif change.watch in self._watched and change.mask & IGNORED:
                self._directory_gone(change.watch)

    def _directory_gone(self, number: int) -> None:
        """Watch the process instead; the directory was removed, usually because its session was stopped."""
        one = self._watched.pop(number)
        one.cancel = watch(one.who, one.ended)
        self._close_if_unused()

    def _look(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(self._look_every, self._look)
        self._look_at_all()

    def _look_at_all(self) -> None:
        for number, one in list(self._watched.items()):
            if _is_gone(one.who.pid):
                self._fire(number)

    def _fire(self, number: int) -> None:
        one = self._watched.get(number)
        if one is not None:
            self._forget(number)
            one.ended()

    def _forget(self, number: int) -> None:
        if self._watched.pop(number, None) is not None and self._notify is not None:
            self._notify.remove(number)
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._watched or self._notify is None:
            return
        asyncio.get_running_loop().remove_reader(self._notify.fd)
        self._notify.close()
        self._notify = None
        if self._next_look is not None:
            self._next_look.cancel()


def _is_gone(pid: int) -> bool:
    """Cheaper than comparing start times: a reused pid is noticed when the patrol looks at all sessions."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        pass  # not our child
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return True  # the pid belongs to another user's process by now
    return False


def reap(pid: int, wait: float = FIRST_TRY_S) -> None:
    """Reap a child of this process; retries until it has exited, as a shim writes its exit file just before that."""
    try:
        found, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another process started it
    if found == 0:
        asyncio.get_running_loop().call_later(wait, reap, pid, min(wait * 2, LAST_TRY_S))
