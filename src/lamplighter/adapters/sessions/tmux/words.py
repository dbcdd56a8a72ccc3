"""Encodes words of tmux commands, as arguments of a process or as lines of text, and names sessions and sockets."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.sessions.model import SessionName

THEN = ";"  # separates two commands of one call; no word of a command can be just this
_SOCKET_PATH_BYTES = 100  # the system allows 108 on Linux, 104 on macOS


def arguments_of(words: Iterable[str]) -> list[str]:
    """Escape a `;` at the end of a word, which would end the command."""
    return [word[:-1] + "\\;" if word.endswith(";") and word != THEN else word for word in words]


def line_of(words: Sequence[str]) -> bytes:
    """Quote every word, so that nothing in it is expanded and it cannot end the line."""
    return os.fsencode(" ".join(THEN if word == THEN else _quoted(word) for word in words))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'").replace("\n", "'\"\\n\"'") + "'"


def session_word(name: "SessionName") -> str:
    """The name for tmux, whose targets use `.` and `:`: all but ASCII letters, digits and dashes are encoded."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign == "-") else f"_{ord(sign):x}_" for sign in name)


def socket_path(state_dir: Path, city: str, runtime_dir: Path) -> Path:
    """Inside the city if that path is short enough for a socket, else in `runtime_dir`, one for each city."""
    near = state_dir / "tmux.sock"
    if len(os.fsencode(near)) <= _SOCKET_PATH_BYTES:
        return near
    import hashlib  # as slow to load as all the rest of a short command about a stopped city

    digest = hashlib.sha256(f"{state_dir}\0{city}".encode()).hexdigest()[:16]
    return runtime_dir / f"lamp-{os.getuid()}" / f"{digest}.sock"
