"""Copies all rows of a city from one database to another, in one transaction of the other: whole, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import assert_never

from lamplighter.kit.errors import Conflict, LampError, NotFound
from lamplighter.store import engine
from lamplighter.store.engine import PROGRAM, CityTables, Counted, Digest, Table, shared_columns
from lamplighter.store.errors import StoreLost
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate

Digests = dict[str, Digest]
Tables = dict[str, tuple[Table, Table, tuple[str, ...]]]
"""Each table as both sides have it, with the columns to copy, in the order in which the target takes them."""


@dataclass(frozen=True)
class Progress:
    """`done` of `of` rows of a table have been copied."""

    table: str
    done: int
    of: int


Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Copied:
    """How many rows each table has, and a hash over all of them; `already` if they were there before.

    Without members and tokens where the organization has other cities in the target: theirs stay.
    """

    rows: dict[str, int]
    hashes: dict[str, str]
    already: bool = False

    @property
    def count(self) -> int:
        return sum(self.rows.values())


class OtherSchema(Conflict):
    def __init__(self, where: str, have: int) -> None:
        super().__init__(
            f"The database {where} has schema {have}; a copy is made from schema {PROGRAM} to schema {PROGRAM}.",
            hint="Use a program of one version for both; `lamp store migrate` brings the city's database up to date.",
        )


class TargetHolds(Conflict):
    def __init__(self, where: str, rows: int) -> None:
        super().__init__(
            f"The database {where} holds {rows} other rows of this city.",
            hint="`--replace` deletes those first; look at them before, or name another database.",
        )


class OtherOrganization(Conflict):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"In the database {where} the city is in another organization by now, and the one of the copy has other "
            "cities there.",
            hint="A city that left an organization comes back by an invitation only. Copy into another database.",
        )


class OtherCityInFile(Conflict):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"The file {where} holds another city, whose events have numbers of their own.",
            hint="Name a file that is not there yet.",
        )


class NotInStore(NotFound):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"The database {where} holds nothing of this city.", hint="Name the database that it used: `--from URL`."
        )


class SourceChanged(Conflict):
    def __init__(self, where: str, table: str) -> None:
        super().__init__(
            f"Rows of the table `{table}` changed in {where} during the copy, which was given up.",
            hint="Stop whoever works on the city (agents, workers, other commands), and repeat.",
        )


class CopyDiffers(LampError):
    def __init__(self, where: str, table: str) -> None:
        super().__init__(
            f"The rows of the table `{table}` are not the same in {where}; the copy was given up.",
            hint="This is a defect of the program: please report it. Nothing was changed.",
        )


def copy_city(source: Place, target: Place, city: str, *, replace: bool = False, tell: Tell) -> Copied:
    """Copy all rows of the city. May be repeated after an interruption, because nothing of it is there before the end.

    Its organization goes with it, and has the city for a home there. Where it is there already with other cities, its
    members and tokens stay as they are there. Raises OtherSchema, TargetHolds, OtherOrganization, OtherCityInFile,
    NotInStore, SourceChanged, StoreUnavailable.
    """
    with _opened(source) as read:
        _need_schema(read)
        _make(target)
        with _opened(target) as write:
            _need_schema(write)
            return _Copy(read, write, city, tell).carried_out(replace=replace)


def save_city(source: Place, target: SqliteUrl, city: str, *, tell: Tell) -> None:
    """Save one snapshot of the city in a new file, while others go on working on it. Raises as `copy_city` does.

    A SQLite file that holds no other city is saved page by page, anything else row by row.
    """
    with _opened(source) as read:
        _need_schema(read)
        if isinstance(source, SqliteUrl) and not read.has_others(city):
            engine.save_sqlite(source.path, target.path, lambda done, of: tell(Progress("pages", done, of)))
            return
        migrate(target)
        with _opened(target) as write:
            _Copy(read, write, city, tell).carried_out(replace=False, still=False)
    engine.into_one_file(target.path)


def digests_of(place: Place, city: str) -> dict[str, tuple[int, str]]:
    """For each table the number of rows of the city and a hash over them."""
    with _opened(place) as side:
        _need_schema(side)
        side.begin(read_only=True)
        found = _digests(side, {name: _copied(one) for name, one in side.tables().items()}, city)
        side.rollback()
        return {name: (one.count, one.hexadecimal()) for name, one in found.items()}


@dataclass(frozen=True)
class _Copy:
    source: CityTables
    target: CityTables
    city: str
    tell: Tell

    def carried_out(self, *, replace: bool, still: bool = True) -> Copied:
        """`still`: the source must not change meanwhile."""
        self.source.begin(read_only=True)
        self.target.begin(read_only=False)
        try:
            done = self._whole(replace=replace, still=still)
            self.target.commit()
        except BaseException:
            self.target.rollback()
            raise
        finally:
            self.source.rollback()
        return done

    def _whole(self, *, replace: bool, still: bool) -> Copied:
        tables = self._tables()
        if not self.source.count(tables["cities"][0], self.city):
            raise NotInStore(self.source.where)
        if isinstance(self.target, engine.SqliteTables) and self.target.has_others(self.city):
            raise OtherCityInFile(self.target.where)
        organization, before = self._organization_in(self.source), self._organization_in(self.target)
        if self.target.shares(organization, self.city):
            if before not in ("", organization):
                raise OtherOrganization(self.target.where)
            tables = {name: one for name, one in tables.items() if not one[1].is_of_organization}
        held = sum(self.target.count(there, self.city) for _, there, _ in tables.values())
        if held:
            both = self._both(tables)
            if both[0] == both[1]:
                return _told(both[0], already=True)
            if not replace:
                raise TargetHolds(self.target.where, held)
            self._delete(before)
        copied = self._copied(tables, organization)
        self._compare(tables, copied, still=still)
        self.target.go_on_counting(self.city)
        return _told(copied)

    def _organization_in(self, side: CityTables) -> str:
        """The id of the city's organization; empty if the city is not there."""
        return next((str(one) for (one,) in side.rows(side.organizations(), ("id",), self.city)), "")

    def _delete(self, organization: str) -> None:
        """Delete the city's rows in the target, and its organization with its people if it has no other city."""
        shared = self.target.shares(organization, self.city)
        for table in reversed(self.target.tables().values()):
            if not (shared and table.is_of_organization):
                self.target.delete(table, self.city)
        self.target.remove_without_cities(organization)

    def _tables(self) -> Tables:
        ours, theirs = self.source.tables(), self.target.tables()
        if ours.keys() != theirs.keys():
            raise CopyDiffers(self.target.where, min(ours.keys() ^ theirs.keys()))
        found = {}
        for name, there in theirs.items():
            columns = shared_columns(ours[name], there)
            if columns is None:
                raise CopyDiffers(self.target.where, name)
            found[name] = (ours[name], there, columns)
        return found

    def _copied(self, tables: Tables, organization: str) -> Digests:
        if not self.target.shares(organization, self.city):
            here, there = self.source.organizations(), self.target.organizations()
            home = there.columns.index("home_city_id")
            rows = [list(row) for row in self.source.rows(here, there.columns, self.city)]
            for row in rows:
                row[home] = self.city
            self.target.insert(there, there.columns, [tuple(row) for row in rows])
        return {name: self._copied_table(*one) for name, one in tables.items()}

    def _copied_table(self, here: Table, there: Table, columns: tuple[str, ...]) -> Digest:
        total, digest = self.source.count(here, self.city), Digest()

        def tell(done: int) -> None:
            self.tell(Progress(there.name, done, total))

        self.target.insert(there, columns, Counted(digest, tell)(self.source.rows(here, columns, self.city)))
        tell(digest.count)
        return digest

    def _compare(self, tables: Tables, copied: Digests, *, still: bool) -> None:
        there = _digests(self.target, {name: one[1:] for name, one in tables.items()}, self.city)
        for name, digest in copied.items():
            if there[name] != digest:
                raise CopyDiffers(self.target.where, name)
        if not still:
            return
        self.source.rollback()
        self.source.begin(read_only=True)
        for name, digest in self._both(tables)[0].items():
            if copied[name] != digest:
                raise SourceChanged(self.source.where, name)

    def _both(self, tables: Tables) -> tuple[Digests, Digests]:
        ours = {name: (here, columns) for name, (here, _, columns) in tables.items()}
        theirs = {name: (there, columns) for name, (_, there, columns) in tables.items()}
        return _digests(self.source, ours, self.city), _digests(self.target, theirs, self.city)


def _digests(side: CityTables, tables: dict[str, tuple[Table, tuple[str, ...]]], city: str) -> Digests:
    found: Digests = {}
    for name, (table, columns) in tables.items():
        digest = found[name] = Digest()
        for row in side.rows(table, columns, city):
            digest.add(row)
    return found


def _copied(table: Table) -> tuple[Table, tuple[str, ...]]:
    return table, tuple(sorted(set(table.columns) - table.made))


def _told(digests: Digests, *, already: bool = False) -> Copied:
    rows = {name: one.count for name, one in digests.items()}
    return Copied(rows, {name: one.hexadecimal() for name, one in digests.items()}, already)


def _make(target: Place) -> None:
    """Make the target's schema if it has none."""
    if isinstance(target, SqliteUrl) and not target.path.exists():
        target.path.parent.mkdir(parents=True, exist_ok=True)
        migrate(target)
        return
    with _opened(target) as side:
        level = side.level()
    if level is None:
        migrate(target)


def _need_schema(side: CityTables) -> None:
    level = side.level()
    if level is None:
        raise StoreLost(side.where, "There is nothing in the database")
    if level.version != PROGRAM:
        raise OtherSchema(side.where, level.version)


@contextmanager
def _opened(place: Place) -> Iterator[CityTables]:
    with ExitStack() as stack:
        side: CityTables
        match place:
            case SqliteUrl(path):
                side = engine.SqliteTables(path)
            case PostgresUrl(url):
                side = engine.PostgresTables(url)
            case _:
                assert_never(place)
        stack.callback(side.close)
        yield side
