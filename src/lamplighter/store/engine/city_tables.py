"""The rows of one city table by table, whatever they mean: for copies of a whole city from one database to another.

Which tables and columns there are is asked of the database, so that a migration needs no line here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from lamplighter.store.engine.schema import Level

Values = tuple[Any, ...]
ORGANIZATIONS = "organizations"
OF_CITY = "city_id = {}"
OF_ITSELF = "id = {}"
OF_ITS_ORGANIZATION = "id = (SELECT organization_id FROM cities WHERE id = {})"
OF_ITS_PEOPLE = f"organization_{OF_ITS_ORGANIZATION}"
REMOVE_ORGANIZATION = """
    DELETE FROM organizations WHERE id = {0} AND NOT EXISTS (SELECT 1 FROM cities WHERE organization_id = {0})"""
_WIDTH = 16


class Table(NamedTuple):
    """`which` is the condition that chooses the rows of a city, with the mark of its one parameter left open."""

    name: str
    columns: tuple[str, ...]
    made: frozenset[str]
    """The columns whose values the database makes itself, which are never copied."""

    @property
    def which(self) -> str:
        if self.name == ORGANIZATIONS:
            return OF_ITS_ORGANIZATION
        if self.name == "cities":
            return OF_ITSELF
        return OF_ITS_PEOPLE if self.is_of_organization else OF_CITY

    @property
    def is_of_organization(self) -> bool:
        """Whether its rows are those of an organization, which other cities may share."""
        return "organization_id" in self.columns and self.name != "cities"


def of_cities(every: Mapping[str, Table]) -> set[str]:
    """The names of those with rows of cities and of their organizations."""
    return {"cities"} | {name for name, one in every.items() if "city_id" in one.columns or one.is_of_organization}


class CityTables(Protocol):
    """One database, with one transaction at a time."""

    where: str

    def level(self) -> Level | None:
        """The schema of the database; None if it has none."""
        ...

    def tables(self) -> dict[str, Table]:
        """The tables with rows of cities and of their organizations, each after those it refers to; without
        `organizations`.
        """
        ...

    def organizations(self) -> Table: ...

    def has_others(self, city: str) -> bool:
        """Whether the database also holds another city."""
        ...

    def begin(self, *, read_only: bool) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def count(self, table: Table, city: str) -> int: ...

    def rows(self, table: Table, columns: Sequence[str], city: str) -> Iterator[Values]: ...

    def insert(self, table: Table, columns: Sequence[str], rows: Iterable[Values]) -> None: ...

    def shares(self, organization: str, city: str) -> bool:
        """Whether the database has other cities of that organization."""
        ...

    def remove_without_cities(self, organization: str) -> None: ...

    def delete(self, table: Table, city: str) -> None: ...

    def go_on_counting(self, city: str) -> None:
        """Let the database's own counters go on after the numbers that were copied."""
        ...

    def close(self) -> None: ...


@dataclass
class Digest:
    """How many rows a table has and a hash over all of them, in whatever order they come."""

    count: int = 0
    total: int = 0

    def add(self, row: Values) -> None:
        self.count += 1
        told = repr(row).encode(errors="surrogatepass")
        self.total = (self.total + int.from_bytes(blake2b(told, digest_size=_WIDTH).digest())) % (1 << 8 * _WIDTH)

    def hexadecimal(self) -> str:
        return f"{self.total:0{2 * _WIDTH}x}"


@dataclass(frozen=True)
class Counted:
    """Passes rows on and counts them into a digest; `tell` is called every so many rows."""

    digest: Digest
    tell: Callable[[int], None]
    every: int = field(default=2000)

    def __call__(self, rows: Iterable[Values]) -> Iterator[Values]:
        for row in rows:
            self.digest.add(row)
            if self.digest.count % self.every == 0:
                self.tell(self.digest.count)
            yield row


def shared_columns(source: Table, target: Table) -> tuple[str, ...] | None:
    """The columns to copy, in one order for both; None if one side has a column that the other lacks."""
    ours, theirs = set(source.columns) - source.made, set(target.columns) - target.made
    return tuple(sorted(ours)) if ours == theirs else None


def in_order(names: Iterable[str], refers: Mapping[str, set[str]]) -> list[str]:
    """The names, each after those it refers to; a reference to itself does not count."""
    found: list[str] = []

    def place(name: str) -> None:
        if name in found:
            return
        for other in sorted(refers.get(name, set()) - {name}):
            place(other)
        found.append(name)

    for name in sorted(names):
        place(name)
    return found
