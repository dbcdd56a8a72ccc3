"""How paths in the configuration are read: `//x` from the city's directory, absolute ones kept, others by file."""

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

_REMOTE = re.compile(r"(?:[a-z][a-z0-9+.-]*://|[^/\s@]+@[^/\s:]+:)", re.IGNORECASE)


@dataclass(frozen=True)
class Remote:
    """A topology in a git repository: `<git-url>//<subdir>#<ref>`."""

    source: str
    path: str = ""
    ref: str = ""


def from_city(value: str) -> str:
    """A path that is relative to the city already."""
    return value[2:].lstrip("/") if value.startswith("//") else value


def resolved(value: str, directory: Path, root: Path) -> str:
    """A path written in a file of `directory`, relative to the city where it lies inside, else absolute."""
    if value.startswith("/") or not value:
        return from_city(value)
    full = posixpath.normpath(posixpath.join(directory.as_posix(), value))
    base = root.as_posix().rstrip("/") + "/"
    return full.removeprefix(base)


def remote(reference: str) -> Remote | None:
    """The parts of a reference into a git repository, or None for a local directory."""
    begin = _REMOTE.match(reference)
    if begin is None:
        return None
    body, _, ref = reference.partition("#")
    split = body.find("//", begin.end())
    if split < 0:
        return Remote(body, "", ref)
    return Remote(body[:split], body[split + 2 :].strip("/"), ref)


def inside(path: str) -> bool:
    """Whether a relative path stays below where it starts."""
    normal = posixpath.normpath(path) if path else "."
    return not normal.startswith(("/", "../")) and normal != ".."
