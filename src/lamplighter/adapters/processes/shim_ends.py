"""Noticing that shims have ended, any number of them, by one descriptor."""

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
    """A shim writes its program's exit status into its session's directory, last of all: the system tells of that file.

    A shim that is killed writes none. So all of them are looked at every few seconds, which costs a system call each.
    Where there is no inotify, or it has no more watches, each shim is watched by itself.
    """

    def __init__(self, exit_file: str, *, look_every: float = LOOK_S) -> None:
        self._exit_file = exit_file
        self._look_every = look_every
        self._notify: Inotify | None = None
        self._watched: dict[int, _One] = {}
        self._next_look: asyncio.TimerHandle | None = None

    def watch(self, home: Path, who: Identity, ended: Ended) -> Cancel:
        """Call `ended` once, from the running loop, when the shim has ended or if it already has."""
        number = self._add(home)
        if number is None:
            return watch(who, ended)
        one = self._watched[number] = _One(who, ended, lambda: self._forget(number))
        if (home / self._exit_file).exists() or not may_live(who):
            self._forget(number)
            return asyncio.get_running_loop().call_soon(ended).cancel
        return lambda: one.cancel()  # noqa: PLW0108  it is another one once the directory is gone

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
        """It was removed, as a rule because its session was stopped: the process tells the rest."""
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
    """Cheaper than a look at its start time, for which the patrol's look at all sessions is good enough."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        pass  # not our child
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return True  # another user's by now
    return False


def reap(pid: int, wait: float = FIRST_TRY_S) -> None:
    """Collect a child of ours that has ended, or is about to: it tells of its end a moment before."""
    try:
        found, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another process started it
    if found == 0:
        asyncio.get_running_loop().call_later(wait, reap, pid, min(wait * 2, LAST_TRY_S))
