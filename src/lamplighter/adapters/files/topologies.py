"""Locates topologies: local directories, or git repositories fetched to `.gc/topologies`, pinned by a lock file."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.digest import directory_digest
from lamplighter.adapters.files.fetch_failed import FetchFailed
from lamplighter.adapters.files.texts import Texts
from lamplighter.adapters.files.toml import load
from lamplighter.domain.city.limits import plain_name
from lamplighter.domain.city.paths import Remote, from_city, inside, remote
from lamplighter.domain.city.tree import Findings, Place, Problem, Table
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record

CACHE = ".gc/topologies"
LOCK = "topology.lock"


class Fetch(StrEnum):
    """When repositories are fetched: only those that are missing, always, or never."""

    MISSING = "missing"
    ALWAYS = "always"
    NEVER = "never"


@record
class Pin:
    """One line of the lock file: what was fetched."""

    source: str
    ref: str
    commit: str
    sha256: str


@dataclass
class Shelf:
    """Finds the directory of a topology, and fetches it if needed, each repository at most once."""

    root: Path
    named: Mapping[str, Table]
    fetch: Fetch
    env: Mapping[str, str]
    found: Findings
    texts: Texts
    _pins: dict[str, Pin] = field(default_factory=dict)
    _done: dict[str, Path | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pins = read_lock(self.root)

    def locate(self, reference: str, directory: Path, place: Place) -> Path | None:
        """The directory that `reference` in a file of `directory` refers to; None after reporting a problem."""
        if reference in self.named:
            return self._named(reference, self.named[reference])
        far = remote(reference)
        if far is not None:
            return self._fetched(f"_inc/{_slug(far)}", far, place)
        if reference.startswith("//"):
            return self.root / from_city(reference)
        return Path(directory, reference)

    def _named(self, name: str, row: Table) -> Path | None:
        if wrong := plain_name(name):
            self.found.wrong(row.place, wrong)
            return None
        if not row.get("source"):
            return None  # reported as missing when the city is built
        return self._fetched(name, Remote(row.get("source"), row.get("path", ""), row.get("ref", "")), row.at("source"))

    def _fetched(self, slot: str, wanted: Remote, place: Place) -> Path | None:
        if not inside(wanted.path):
            self.found.wrong(place, f"path `{wanted.path}` leaves the repository")
            return None
        if slot not in self._done:
            self._done[slot] = self._ensure(slot, wanted, place)
        kept = self._done[slot]
        return kept / wanted.path if kept is not None else None

    def _ensure(self, slot: str, wanted: Remote, place: Place) -> Path | None:
        target = self.root / CACHE / slot
        pin = self._pins.get(slot)
        pinned = pin if pin is not None and (pin.source, pin.ref) == (wanted.source, wanted.ref) else None
        here = self.texts.is_directory(target)
        if self.fetch is Fetch.NEVER or (self.fetch is Fetch.MISSING and here and pinned is not None):
            if not here:
                self.found.wrong(place, "is not fetched yet; `lamp start` and `lamp config check` fetch it")
            return target if here else None
        try:
            self._take(slot, wanted, None if self.fetch is Fetch.ALWAYS else pinned)
        except LampError as error:
            if not (here and isinstance(error, FetchFailed)):
                self.found.wrong(place, f"could not be fetched: {error.message}")
                return None
            self.found.note(place, f"could not be fetched, so the copy of before is used: {error.message}")
        return target

    def _take(self, slot: str, wanted: Remote, pinned: Pin | None) -> None:
        def accept(directory: Path, commit: str) -> None:
            sha256 = directory_digest(directory)
            if pinned is not None and pinned.sha256 != sha256:
                raise LampError(f"commit {commit[:12]} does not have the content that {LOCK} recorded for it")
            self._pins[slot] = Pin(wanted.source, wanted.ref, commit, sha256)

        ref = pinned.commit if pinned else wanted.ref
        from lamplighter.adapters.files.git import fetch_into  # imports asyncio; most cities fetch nothing

        fetch_into(self.root / CACHE / slot, wanted.source, ref, self.env, accept=accept)
        write_lock(self.root, self._pins)


def read_lock(root: Path) -> dict[str, Pin]:
    """The pins; an unreadable lock file pins nothing, and the next fetch writes it anew."""
    document = load(root / LOCK, LOCK)
    rows = {} if isinstance(document, Problem) else document.tree.get("topologies", {})
    pins = {}
    for name, row in rows.items() if isinstance(rows, dict) else ():
        values = [row.get(key) for key in ("source", "ref", "commit", "sha256")] if isinstance(row, dict) else [None]
        if all(isinstance(value, str) for value in values):
            pins[name] = Pin(*values)
    return pins


def write_lock(root: Path, pins: Mapping[str, Pin]) -> None:
    import tomlkit

    document = tomlkit.document()
    document.add(
        tomlkit.comment("Written by lamp: what each topology was fetched from. Keep it under version control.")
    )
    rows = tomlkit.table(is_super_table=True)
    for name, pin in sorted(pins.items()):
        row = tomlkit.table()
        row.update({"source": pin.source, "ref": pin.ref, "commit": pin.commit, "sha256": pin.sha256})
        rows.add(name, row)
    document.add("topologies", rows)
    write_atomically(root / LOCK, tomlkit.dumps(document).encode())


def altered(root: Path) -> list[str]:
    """Fetched topologies whose files are no longer what the lock file recorded."""
    kept = ((name, pin, root / CACHE / name) for name, pin in read_lock(root).items())
    return [name for name, pin, path in kept if path.is_dir() and directory_digest(path) != pin.sha256]


def _slug(far: Remote) -> str:
    """A readable directory name for a repository at a ref; a digest tells those of the same name apart."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", far.source.rstrip("/").removesuffix(".git").rpartition("/")[2]).strip("-")
    code = hashlib.sha256(f"{far.source}\0{far.ref}".encode()).hexdigest()[:12]
    return f"{stem or 'topology'}-{code}"
