"""Writes the files a program needs before it starts, readable only by their owner."""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lamplighter.domain.sessions.presets.merging import over, without
from lamplighter.domain.sessions.presets.model import Mirror, Place, SeedFile, Writing
from lamplighter.kit import json_text, log
from lamplighter.kit.errors import LampError

Merge = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


class SeedRefused(LampError):
    """The path leads out of its place, or the file is to be added to and is not a JSON object."""


def write_seeds(files: Iterable[SeedFile], places: Mapping[Place, Path], *, keep_unreadable: bool = False) -> None:
    """May be repeated. Raises SeedRefused for a path that leads out of its place, and for a file that is to be added
    to and cannot be parsed; with `keep_unreadable` such a file is left as it is and logged.
    """
    for seed in files:
        path = _inside(seed, places[seed.place].resolve())
        if seed.writing is Writing.REPLACE:
            _write(path, _on_base(seed, places[Place.HOME]))
        else:
            merge = over if seed.writing is Writing.ENTRY else _added
            _add(path, seed.content, merge, keep_unreadable=keep_unreadable)


def lay_mirrors(mirrors: Iterable[Mirror], files: Path, home: Path) -> None:
    """Make each mirror: links to all that is in the person's folder, except what the session's own files replace."""
    for mirror in mirrors:
        theirs, ours = home / mirror.home, files / mirror.files
        ours.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in mirror.shared:
            (theirs / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in theirs.iterdir() if theirs.is_dir() else ():
            link = ours / entry.name
            if entry.name not in mirror.own and not link.is_symlink():
                link.symlink_to(entry)


def note_entries(files: Iterable[SeedFile], places: Mapping[Place, Path], notes: Path) -> None:
    """Write down what has to be taken out again, before it is put in, so that a crash in between forgets nothing."""
    entries = [
        {"path": str(_inside(seed, places[seed.place].resolve())), "content": seed.content}
        for seed in files
        if seed.writing is Writing.ENTRY
    ]
    if entries:
        _write(notes, json.dumps(entries))


def take_out_entries(notes: Path) -> None:
    """Take our entries out of files that belong to others, and remove a file that held nothing else. May be repeated.

    An entry that another session has written over since is left to that session.
    """
    try:
        entries = json_text.parse(notes.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    for entry in entries:
        path = Path(entry["path"]).resolve()
        if not path.is_file():
            continue
        try:
            with _alone(path.parent):
                _take_out(path, json_text.parse(entry["content"]))
        except (OSError, SeedRefused) as error:
            log.get().warning("seed.not_taken_out", file=str(path), error=str(error))


def _take_out(path: Path, ours: Mapping[str, Any]) -> None:
    theirs = _object(path)
    left = without(theirs, ours)
    if left and left != theirs:
        _write(path, json.dumps(left, indent=2))
    elif not left:
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # it may have been made for this file; a folder that holds more stays


def _on_base(seed: SeedFile, home: Path) -> str:
    if not seed.base:
        return seed.content
    theirs = _object(home / seed.base, read=json_text.parse_with_comments)
    return json.dumps(over(theirs, json_text.parse(seed.content)), indent=2)


def _add(path: Path, content: str, merge: Merge, *, keep_unreadable: bool) -> None:
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
        merged = merge(theirs, json_text.parse(content))
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


def _object(path: Path, read: Callable[[str], Any] = json_text.parse) -> dict[str, Any]:
    try:
        found = read(path.read_text(encoding="utf-8"))
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
