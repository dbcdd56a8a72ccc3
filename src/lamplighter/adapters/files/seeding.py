"""Writes the files a program needs before it starts, readable only by their owner."""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lamplighter.domain.sessions.presets.model import Place, SeedFile, Writing
from lamplighter.kit import json_text, log
from lamplighter.kit.errors import LampError


class SeedRefused(LampError):
    """The path leads out of its place, or the file is to be added to and is not a JSON object."""


def write_seeds(files: Iterable[SeedFile], places: Mapping[Place, Path], *, keep_unreadable: bool = False) -> None:
    """May be repeated. Raises SeedRefused for a path that leads out of its place, and for a file that is to be added
    to and cannot be parsed; with `keep_unreadable` such a file is left as it is and logged.
    """
    for seed in files:
        path = _inside(seed, places[seed.place].resolve())
        if seed.writing is Writing.REPLACE:
            _write(path, seed.content)
        else:
            _add(path, seed.content, keep_unreadable=keep_unreadable)


def _add(path: Path, content: str, *, keep_unreadable: bool) -> None:
    """Agents that start side by side, also in other processes, add to the same file one after another."""
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(path.parent):
        try:
            theirs = _object(path)
        except SeedRefused as error:
            if not keep_unreadable:
                raise
            log.get().warning("seed.left_out", file=str(path), error=error.message)
            return
        merged = _added(theirs, json_text.parse(content))
        if merged != theirs or not path.exists():
            _write(path, json.dumps(merged, indent=2))


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One writer at a time among threads and processes, by a lock on the directory itself, which leaves no file."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _inside(seed: SeedFile, root: Path) -> Path:
    """Links may lead out of a home, where they are its owner's (dotfiles kept elsewhere), but out of no other place:
    a repository could use one to direct a write outside itself.
    """
    path = Path(os.path.normpath(root / seed.path))
    reached = path if seed.place is Place.HOME else path.resolve()
    if root not in reached.parents:
        raise SeedRefused(f"{seed.path} leads out of {root}.")
    return path


def _added(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Existing values stay; tables are merged key by key, and lists get the missing items."""
    merged = dict(theirs)
    for key, value in ours.items():
        known = theirs.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = _added(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            merged[key] = [*known, *(one for one in value if one not in known)]
        else:
            merged.setdefault(key, value)
    return merged


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json_text.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SeedRefused(f"{path} cannot be read: {error.strerror}.", hint="Mend or remove it.") from error
    except ValueError as error:
        raise SeedRefused(f"{path} is not JSON: {error}.", hint="Mend or remove it.") from error
    if not isinstance(found, dict):
        raise SeedRefused(f"{path} is not a JSON object.", hint="Mend or remove it.")
    return found


def _write(path: Path, content: str) -> None:
    """Write a new file and rename it into place, so that a concurrent reader sees the old or the new content."""
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, new = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
