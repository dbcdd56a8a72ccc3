"""Calls the tmux server of one city, with a time limit: over an open line (see control.py), or one process per call."""

import asyncio
import contextlib
import os
import shlex
import subprocess
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.sessions.tmux import holders
from lamplighter.adapters.sessions.tmux.control import Line, LineLost, Refused, open_line
from lamplighter.adapters.sessions.tmux.words import THEN, arguments_of
from lamplighter.kit import log
from lamplighter.kit.descriptors import limited
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.sessions import ProviderUnavailable

CALL_LIMIT = timedelta(seconds=30)
_NEXT_LINE_AFTER_S = 10.0  # the pause after a line could not be opened
_ABSENT = ("no server running", "error connecting to", "can't find session", "can't find pane", "can't find window",
           "no current target", "no such session", "lost server", "server exited unexpectedly")  # fmt: skip

# Set before the first session: a pane whose program ends at once must still exist to be looked at.
_SERVER_OPTIONS = (
    ("remain-on-exit", "on"),
    ("remain-on-exit-format", ""),
    ("history-limit", "50000"),
    ("window-size", "latest"),
    ("default-terminal", "screen-256color"),
    ("mouse", "on"),
)
_SET_SERVER_OPTIONS = " ; ".join(
    f"set-option -g {key} {shlex.quote(value)}" for key, value in (*_SERVER_OPTIONS, ("@lamp_server", "1"))
)
# Only once for each server: setting a global option makes it go through all of its sessions.
_PREPARE = ("start-server", THEN, "if-shell", "-F", "#{@lamp_server}", "", _SET_SERVER_OPTIONS, THEN)


class TmuxAbsent(Exception):
    """The server, session or pane that was asked about is not there."""


class TmuxClient:
    """`env` is the server's own environment; sessions get theirs from elsewhere, so it holds no secrets.

    Without `keep_line` every call is a process: for a short command, opening a line costs more than it saves.
    """

    def __init__(self, socket: Path, env: dict[str, str]) -> None:
        self.socket = socket
        self.env = env
        self._keeps = False
        self._line: Line | None = None
        self._holder = ""
        self._opening: asyncio.Task[Line | None] | None = None
        self._not_before = 0.0

    def keep_line(self) -> None:
        """From now on keep a line open while a server runs."""
        self._keeps = True

    async def call(self, *words: str, stdin: bytes = b"") -> str:
        """Raises TmuxAbsent, or ProviderUnavailable if tmux is missing, hangs or refuses. Commands may run twice."""
        if not stdin:
            try:
                return await self.call_once(*words)
            except LineLost:
                pass
        return await asyncio.to_thread(self._call, words, stdin)

    async def call_once(self, *words: str) -> str:
        """For commands that must not run twice: raises LineLost when it is unknown whether they ran."""
        line = self._line
        if line is not None and line.is_open:
            return await self._ask(line, words)
        answer = await asyncio.to_thread(self._call, words, b"")
        if self._keeps:
            self._line_soon()  # a server runs, so later calls can use a line
        return answer

    async def new_session(self, name: str, *words: str) -> str:
        """Create a session, and the server if none runs; returns what `words` print. Raises as `call_once` does."""
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._keeps:
            await asyncio.shield(self._line_soon())
        return await self.call_once(*_PREPARE, "new-session", "-d", "-s", name, *words)

    async def sweep(self, own: str = "") -> None:
        """End the lines that processes left when they were killed, and `own`, a session that this one left.

        Raises ProviderUnavailable.
        """
        with contextlib.suppress(TmuxAbsent):
            left = holders.left(await self.call("list-sessions", "-F", "#{session_name}"), own)
            if left:
                told = await self.call("list-clients", "-F", holders.CLIENTS)
                await asyncio.to_thread(holders.end_clients, told, left)
            for holder in left:
                with contextlib.suppress(TmuxAbsent):
                    await self.call("kill-session", "-t", f"={holder}")

    async def close(self) -> None:
        self._keeps = False
        if self._opening is not None:
            await asyncio.wait({self._opening})
        if self._line is not None:
            await self._line.close()

    # ── the line ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _line_soon(self) -> "asyncio.Task[Line | None]":
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
            self._opening.add_done_callback(self._is_opened)
        return self._opening

    def _is_opened(self, _opening: object) -> None:
        self._opening = None

    async def _opened(self) -> Line | None:
        now = asyncio.get_running_loop().time()
        if (self._line is not None and self._line.is_open) or now < self._not_before:
            return self._line
        if self._line is not None:
            await self._line.close()
        self._line = None
        line: Line | None = None
        try:
            holder = holders.new()
            line = await open_line(self._line_command(holder), self.env, holder)
            await self._ask(line, ("display-message", "-p", ""))
        except (OSError, LineLost, TmuxAbsent, ProviderUnavailable) as error:
            self._not_before = now + _NEXT_LINE_AFTER_S
            log.get().warning("tmux.no_line", error=str(error) or type(error).__name__)
            if line is not None:
                await line.close()
        else:
            self._line = line
            left, self._holder = self._holder, holder
            await self._sweep_soon(left)
        return self._line

    async def _sweep_soon(self, own: str) -> None:
        """What cannot be swept now is swept at the next `sweep`."""
        try:
            await self.sweep(own)
        except ProviderUnavailable as error:
            log.get().warning("tmux.lines_left", error=error.message)

    def _line_command(self, holder: str) -> list[str]:
        opening = (
            *_PREPARE, "new-session", "-s", holder, "-x", "20", "-y", "5", "-f", "no-output,ignore-size",
            "/bin/sh", "-c", "exit 0",
        )  # fmt: skip
        return self._command(opening, "-C")

    async def _ask(self, line: Line, words: tuple[str, ...]) -> str:
        try:
            async with TimeLimit(CALL_LIMIT.total_seconds()):
                return await line.ask(words)
        except Refused as refused:
            raise _told(refused.message, words) from None
        except TimeoutError:
            await line.close()
            raise self._hangs() from None

    # ── a process for a call ──────────────────────────────────────────────────────────────────────────────────────

    def _command(self, words: tuple[str, ...], *flags: str) -> list[str]:
        command = ["tmux", "-u", *flags, "-S", str(self.socket), "-f", os.devnull, *arguments_of(words)]
        return limited(command)  # it may start the server, whose limit all its programs inherit

    def _call(self, words: tuple[str, ...], stdin: bytes) -> str:
        """Does not use processes/child.py, which at its limit ends all the call started: that may be the server."""
        try:
            done = subprocess.run(
                self._command(words), env=self.env, start_new_session=True, input=stdin, capture_output=True,
                check=False, timeout=CALL_LIMIT.total_seconds(),
            )  # fmt: skip
        except FileNotFoundError:
            raise ProviderUnavailable(
                "tmux is not installed.", hint='Install it, or set provider = "subprocess" in [session] of city.toml.'
            ) from None
        except OSError as error:
            raise ProviderUnavailable(f"tmux cannot be run: {error.strerror or error}.", hint="Try again.") from error
        except subprocess.TimeoutExpired:
            raise self._hangs() from None
        if done.returncode:
            raise _told(done.stderr.decode(errors="replace").strip(), words)
        return done.stdout.decode(errors="replace")

    def _hangs(self) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"tmux did not answer within {CALL_LIMIT.total_seconds():g} s.",
            hint=f"Its server at {self.socket} hangs; look at it, or end it.",
        )


def _told(message: str, words: tuple[str, ...]) -> Exception:
    if any(sign in message for sign in _ABSENT):
        return TmuxAbsent(message)
    return ProviderUnavailable(f"tmux {words[0]} failed: {message or 'no reason given'}.")
