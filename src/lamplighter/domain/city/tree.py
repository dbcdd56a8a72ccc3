"""Configuration files after their shape was checked: values and problems, each with its place in the files."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamplighter.kit.errors import Kind, LampError
from lamplighter.kit.records import record

KeyPath = tuple[str | int, ...]
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def _no_lines(_path: KeyPath) -> int | None:
    return None


@record
class Origin:
    """One layer: a file, the environment or a command line; `lines` finds the line of a key on demand."""

    layer: str
    file: str
    directory: Path = Path()
    lines: Callable[[KeyPath], int | None] = _no_lines


@record
class Place:
    """Where a value was set."""

    origin: Origin
    path: KeyPath = ()

    def __truediv__(self, step: str | int) -> "Place":
        return Place(self.origin, (*self.path, step))

    @property
    def line(self) -> int | None:
        return self.origin.lines(self.path)


@record
class Leaf:
    """A value and its place. A section's value is a Table, a list's is a list of Tables, named tables' is a dict of
    Tables; other values are plain.
    """

    value: Any
    place: Place


@record
class Table:
    """The keys of one section that are set."""

    section: type
    place: Place
    leaves: Mapping[str, Leaf] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        leaf = self.leaves.get(key)
        return default if leaf is None else leaf.value

    def at(self, key: str) -> Place:
        """The place of a key, or of the table when the key is not set."""
        leaf = self.leaves.get(key)
        return self.place if leaf is None else leaf.place

    def having(self, leaves: Mapping[str, Leaf]) -> "Table":
        """The same table with these keys added or replaced."""
        return Table(self.section, self.place, {**self.leaves, **leaves})

    def without(self, *keys: str) -> "Table":
        return Table(self.section, self.place, {name: leaf for name, leaf in self.leaves.items() if name not in keys})

    def tables(self, key: str) -> "list[Table]":
        """The rows of a list of tables; none when it is not set."""
        rows: list[Table] = self.get(key, [])
        return rows

    def named(self, key: str) -> "Mapping[str, Table]":
        rows: Mapping[str, Table] = self.get(key, {})
        return rows


@record
class Problem:
    """One problem, note or remark: where it is, and its message."""

    file: str
    key: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}: {self.key}: " if self.key else f"{self.file}: "
        said = f"{where}{self.message}" + (f" (line {self.line})" if self.line else "")
        # Values from a file may contain line breaks and control characters; one problem must stay one line.
        return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], said)


class ConfigInvalid(LampError):
    """The configuration cannot be used; every problem is listed."""

    kind = Kind.USAGE

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(
            "\n".join(str(problem) for problem in self.problems),
            hint="Mend the file, then look again with `lamp config check`.",
        )


@dataclass
class Findings:
    """Collected findings: problems make the configuration unusable, notes do so only in strict mode, remarks never."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)

    def wrong(self, place: Place, message: str, *, key: str | None = None) -> None:
        self.problems.append(problem_at(place, message, key=key))

    def about(self, place: Place) -> bool:
        """Whether a problem was already recorded for exactly this place."""
        key = spelled(place.path)
        return any(known.key == key and known.file == place.origin.file for known in self.problems)

    def remark(self, place: Place, message: str) -> None:
        self.remarks.append(problem_at(place, message))

    def note(self, place: Place, message: str, *, key: str | None = None) -> None:
        self.notes.append(problem_at(place, message, key=key))


def problem_at(place: Place, message: str, *, key: str | None = None) -> Problem:
    return Problem(place.origin.file, spelled(place.path) if key is None else key, message, place.line)


def spelled(path: KeyPath) -> str:
    """The path as text, such as `agents[0].pool.max`; names that TOML cannot write bare are quoted."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += ("." if out else "") + (step if _BARE.match(step) else f'"{step}"')
    return out
