"""Keeps a city's secrets in files only its owner can read: the key of run tokens, the owner's token, run tokens."""

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from lamplighter.domain.access import KEY_BYTES
from lamplighter.kit.errors import Unavailable

KEY_FILE = "run.key"
OWNER_FILE = "owner.token"
_MODE = 0o600


def city_key(runtime: Path) -> bytes:
    """The key that run tokens are made with, created by the first process that needs it. Raises Unavailable."""
    path = runtime / KEY_FILE
    try:
        key = bytes.fromhex(_kept(path, lambda: secrets.token_hex(KEY_BYTES)))
    except ValueError:
        key = b""
    if len(key) < KEY_BYTES:
        raise Unavailable(
            f"{path} does not hold a key.",
            hint="Delete it while nothing runs: a new one is made, and tokens of runs under way are void.",
        )
    return key


def owner_token(runtime: Path) -> str:
    path = runtime / OWNER_FILE
    token = _kept(path, lambda: f"lot_{secrets.token_urlsafe(32)}")
    if len(token) < KEY_BYTES:
        raise Unavailable(f"{path} does not hold a token.", hint="Delete it; a new one is made.")
    return token


def hand_over(path: Path, token: str) -> None:
    """Write a token atomically to the file where the program that needs it reads it. May be repeated."""
    _put(path, token, over=True)


def _kept(path: Path, make: Callable[[], str]) -> str:
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    with contextlib.suppress(FileExistsError):
        _put(path, make(), over=False)
    return _read(path)


def _read(path: Path) -> str:
    """Raises Unavailable for a file that other users can read: its content is no secret any more."""
    try:
        with path.open(encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise Unavailable(f"{path} can be read by others.", hint=f"`chmod 600 {path}`, if nobody did.")
            return file.read().strip()
    except UnicodeDecodeError:
        return ""


def _put(path: Path, text: str, *, over: bool) -> None:
    """Raises FileExistsError if the file exists, unless `over`."""
    path.parent.mkdir(parents=True, exist_ok=True)
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
