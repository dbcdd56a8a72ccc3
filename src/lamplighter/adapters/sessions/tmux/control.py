"""A line: a lasting connection to a tmux server that carries commands, and their answers in the same order.

A call by a child process costs many times what the server needs for its answer. In control mode tmux reads commands
from a file and answers each with a block, but only for a client that is attached to a session. So the line has a small
session of its own (see holders.py), which it kills when it is closed.
"""

import asyncio
import os
import socket
import subprocess
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from lamplighter.adapters.sessions.tmux.words import line_of
from lamplighter.kit.limits import TimeLimit

_CLOSE_LIMIT_S = 5.0
_OURS = b"1"  # the flag of a block that answers a command from this line


class LineLost(Exception):
    """The line ended before the answer came: it is unknown whether the command was carried out."""


@dataclass
class Refused(Exception):
    """The server refused a command; it carried out neither that one nor those after it."""

    message: str


@dataclass
class _Asked:
    mark: bytes
    answer: asyncio.Future[str]
    lines: list[bytes] = field(default_factory=list)
    complaint: bytes | None = None


class Line(asyncio.Protocol):
    """One open line. `ask` may be called concurrently; a cancelled caller only loses its answer."""

    def __init__(self, process: "subprocess.Popen[bytes]", holder: str) -> None:
        self._process = process
        self._holder = holder
        self._gone = asyncio.Event()
        self._closing = False
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Asked] = deque()
        self._rest = b""
        self._block: tuple[bytes, list[bytes]] | None = None
        self._marks = os.urandom(6).hex()
        self._count = 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._closing

    async def ask(self, words: Sequence[str]) -> str:
        """Returns what the commands print. Raises Refused, or LineLost."""
        if self._transport is None or self._closing:
            raise LineLost
        self._count += 1
        # A command that fails cancels the rest of its line, so the end mark is printed by a line of its own.
        mark = f"{self._marks}-{self._count}"
        asked = _Asked(mark.encode(), asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._transport.write(line_of(words) + b"\n" + line_of(("display-message", "-p", mark)) + b"\n")
        return await asked.answer

    async def close(self) -> None:
        """Kill the line's session and wait for its client process, which is killed too if it does not end in time.

        Whoever closes the connection first leaves a client that may wait for ever for its last words to be read.
        """
        self._closing = True
        within = _CLOSE_LIMIT_S
        if self._transport is not None:
            self._transport.write(line_of(("kill-session", "-t", f"={self._holder}")) + b"\n")
            try:
                async with TimeLimit(_CLOSE_LIMIT_S):
                    await self._gone.wait()
            except TimeoutError:
                within = 0.0
        if self._transport is not None:
            self._transport.close()
            self.connection_lost(None)
        await asyncio.to_thread(self._collect, within)

    # ── what asyncio calls ────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(line)

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._gone.set()
        while self._waiting:
            asked = self._waiting.popleft()
            if not asked.answer.done():
                asked.answer.set_exception(LineLost())

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _hear(self, line: bytes) -> None:
        if self._block is None:
            word, _, tail = line.partition(b" ")
            if word == b"%begin":
                self._block = (tail, [])
            return  # anything else outside a block is a notification
        name, found = self._block
        if line in (b"%end " + name, b"%error " + name):
            self._block = None
            if name.rpartition(b" ")[2] == _OURS and self._waiting:
                self._take(found, failed=line.startswith(b"%error"))
        else:
            found.append(line)

    def _take(self, found: list[bytes], *, failed: bool) -> None:
        asked = self._waiting[0]
        if found == [asked.mark]:
            self._waiting.popleft()
            _settle(asked)
        elif failed:
            asked.complaint = b" ".join(found)
        else:
            asked.lines += found

    def _collect(self, within: float) -> None:
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _settle(asked: _Asked) -> None:
    if asked.answer.done():  # the caller was cancelled
        return
    if asked.complaint is not None:
        asked.answer.set_exception(Refused(_text([asked.complaint]).strip()))
    else:
        asked.answer.set_result(_text(asked.lines))


def _text(lines: Iterable[bytes]) -> str:
    return b"".join(line + b"\n" for line in lines).decode(errors="replace")


async def open_line(command: Sequence[str], env: dict[str, str], holder: str) -> Line:
    """`command` starts a control client and `holder`, the session it attaches to. Raises OSError when it cannot."""
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.to_thread(_spawn, command, env, theirs)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    line = Line(process, holder)
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: line, sock=ours)
    except BaseException:
        ours.close()
        await line.close()
        raise
    return line


def _spawn(command: Sequence[str], env: dict[str, str], end: socket.socket) -> "subprocess.Popen[bytes]":
    fd = end.fileno()
    return subprocess.Popen(command, env=env, start_new_session=True, stdin=fd, stdout=fd, stderr=subprocess.DEVNULL)
