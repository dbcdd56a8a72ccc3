"""Calls to the tmux server of one city, each with a time limit."""

import asyncio
import hashlib
import os
import shlex
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.sessions.model import SessionName
from lamplighter.ports.sessions import ProviderUnavailable

CALL_LIMIT = timedelta(seconds=30)
_SOCKET_PATH_BYTES = 100  # the system takes 108 on Linux, 104 on macOS
_ABSENT = ("no server running", "error connecting to", "can't find session", "can't find pane", "can't find window",
           "no current target", "no such session", "lost server", "server exited unexpectedly")  # fmt: skip

# Set before the first session: a pane whose program ends at once must still be there to be looked at.
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


class TmuxAbsent(Exception):
    """The server, session or pane that was asked about is not there."""


@dataclass(frozen=True)
class TmuxClient:
    """`env` is the server's own environment; sessions get theirs from elsewhere, so it holds no secrets."""

    socket: Path
    env: dict[str, str]

    async def call(self, *words: str, stdin: bytes = b"") -> str:
        """Raises TmuxAbsent, or ProviderUnavailable where tmux is missing, hangs or refuses."""
        return await asyncio.to_thread(self._call, words, stdin)

    async def new_session(self, name: str, *words: str) -> str:
        """Create a session, the server too where none runs; what `-P -F` in `words` asks for."""
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Once for each server: a global option makes it go over all of its sessions.
        first = ("if-shell", "-F", "#{@lamp_server}", "", _SET_SERVER_OPTIONS)
        return await self.call("start-server", ";", *first, ";", "new-session", "-d", "-s", name, *words)

    def _call(self, words: tuple[str, ...], stdin: bytes) -> str:
        """By the standard library's own children, on a thread, not by the loop's.

        uvloop forks the whole process for each, which takes four times as long, and its children inherit the ends of
        their own pipes a second time: a server that a call starts would keep them, and the answer would never end.
        """
        command = ["tmux", "-u", "-S", str(self.socket), "-f", os.devnull, *words]
        try:
            done = subprocess.run(
                command, env=self.env, start_new_session=True, input=stdin, capture_output=True, check=False,
                timeout=CALL_LIMIT.total_seconds(),
            )  # fmt: skip
        except FileNotFoundError:
            raise ProviderUnavailable(
                "tmux is not installed.", hint='Install it, or set provider = "subprocess" in [session] of city.toml.'
            ) from None
        except subprocess.TimeoutExpired:
            raise ProviderUnavailable(
                f"tmux did not answer within {CALL_LIMIT.total_seconds():g} s.",
                hint=f"Its server at {self.socket} hangs; look at it, or end it.",
            ) from None
        if done.returncode:
            _raise(done.stderr.decode(errors="replace").strip(), words)
        return done.stdout.decode(errors="replace")


def socket_path(state_dir: Path, city: str, runtime_dir: Path) -> Path:
    """Inside the city where the path is short enough for a socket, else in `runtime_dir`, one for each city."""
    near = state_dir / "tmux.sock"
    if len(os.fsencode(near)) <= _SOCKET_PATH_BYTES:
        return near
    digest = hashlib.sha256(f"{state_dir}\0{city}".encode()).hexdigest()[:16]
    return runtime_dir / f"lamp-{os.getuid()}" / f"{digest}.sock"


def session_word(name: SessionName) -> str:
    """The name as tmux takes it: `.` and `:` part its targets, so all but letters, digits and dashes are coded."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign == "-") else f"_{ord(sign):x}_" for sign in name)


def _raise(message: str, words: tuple[str, ...]) -> None:
    if any(sign in message for sign in _ABSENT):
        raise TmuxAbsent(message)
    raise ProviderUnavailable(f"tmux {words[0]} failed: {message or 'no reason given'}.")
