"""Keeps a city's secrets in files only its owner can read: the key of run tokens, the owner's token, run tokens."""

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from lamplighter.domain.tokens import KEY_BYTES, run_of_token
from lamplighter.kit.errors import Unavailable

KEY_FILE = "run.key"
OWNER_FILE = "owner.token"
_MODE = 0o600


def city_key(runtime: Path) -> bytes:
    """The key that run tokens are made with, created by the first process that needs it. Raises Unavailable."""
    path = runtime / KEY_FILE
    try:
        key = bytes.fromhex(kept(path, lambda: secrets.token_hex(KEY_BYTES)))
    except ValueError:
        key = b""
    if len(key) < KEY_BYTES:
        raise Unavailable(
            f"{path} does not hold a key.",
            hint="Delete it while nothing runs: a new one is made, and tokens of runs under way are void.",
        )
    return key


def ensure_owner_token(runtime: Path) -> list[Path]:
    """Make the owner's token if there is none; returns what was made. One that is there is not looked at."""
    path = runtime / OWNER_FILE
    if path.exists():
        return []
    with contextlib.suppress(FileExistsError):
        put(path, _new_owner_token(), over=False)
        return [path]
    return []


def owner_token(runtime: Path) -> str:
    """Made at `lamp init`; here again if it is gone. Raises Unavailable."""
    path = runtime / OWNER_FILE
    token = kept(path, _new_owner_token)
    if len(token) < KEY_BYTES:
        raise Unavailable(f"{path} does not hold a token.", hint="Delete it; a new one is made.")
    return token


def _new_owner_token() -> str:
    return f"lot_{secrets.token_urlsafe(32)}"


def hand_over(path: Path, token: str) -> None:
    """Write a token atomically to the file where the program that needs it reads it. May be repeated."""
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, token, over=True)


def kept(path: Path, make: Callable[[], str]) -> str:
    """What the file holds; it is made by the first process that needs it.

    Raises Unavailable if its directory is gone: one made anew would look like a city of its own.
    """
    with contextlib.suppress(FileNotFoundError):
        return read_private(path)
    try:
        put(path, make(), over=False)
    except FileExistsError:
        return read_private(path)
    except FileNotFoundError as error:
        raise Unavailable(f"{path.parent} was deleted or moved away.", hint="Put it back.") from error
    return read_private(path)


def read_private(path: Path) -> str:
    """Raises Unavailable for a file that other users can read: its content is no secret any more."""
    try:
        with path.open(encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise Unavailable(f"{path} can be read by others.", hint=f"`chmod 600 {path}`, if nobody did.")
            return file.read().strip()
    except UnicodeDecodeError:
        return ""


def put(path: Path, text: str, *, over: bool) -> None:
    """Raises FileExistsError if the file exists, unless `over`, and FileNotFoundError without its directory."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fchmod(file.fileno(), _MODE)
            os.fsync(file.fileno())
        if over:
            Path(name).replace(path)
        else:
            os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def run_shown(runtime: Path, file: Path) -> str | None:
    """The run whose token of this city is in that file; None if it cannot be read or is wrong."""
    try:
        return run_of_token(city_key(runtime), file.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError):
        return None
