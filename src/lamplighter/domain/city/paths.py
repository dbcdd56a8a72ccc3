"""Reads paths of the configuration: `//x` starts at the city's directory, others at their file; absolute ones stay."""

import posixpath
import re
from pathlib import Path

from lamplighter.kit.records import record

BEADS_DIR = ".beads"  # where `bd` keeps its store
UNUSED_BEADS_DIR = (
    f"there is a {BEADS_DIR} directory, but [beads] is not set, so beads are kept in the city's own store: set "
    'provider to "bd" to use the directory, or to "store" to leave it aside'
)
_REMOTE = re.compile(r"(?:[a-z][a-z0-9+.-]*://|[^/\s@]+@[^/\s:]+:)", re.IGNORECASE)


@record
class Remote:
    """A topology in a git repository: `<git-url>//<subdir>#<ref>`."""

    source: str
    path: str = ""
    ref: str = ""


def from_city(value: str) -> str:
    """`value` without the leading `//` that means the city's directory; other paths are returned as they are."""
    return value[2:].lstrip("/") if value.startswith("//") else value


def resolved(value: str, directory: Path, root: Path) -> str:
    """A path written in a file of `directory`: relative to the city if it lies inside the city, else absolute."""
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
    """Whether a relative path stays inside the directory it starts from."""
    normal = posixpath.normpath(path) if path else "."
    return not normal.startswith(("/", "../")) and normal != ".."
