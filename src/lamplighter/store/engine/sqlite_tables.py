"""The rows of a city in a SQLite file, table by table."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.store import errors
from lamplighter.store.engine.city_tables import ORGANIZATIONS, REMOVE_ORGANIZATION, Table, Values, in_order, of_cities
from lamplighter.store.engine.schema import READ_LEVEL, Level
from lamplighter.store.engine.sqlite_connection import BUSY_SECONDS, connect, fair_lock_of, told

TABLES = """
    SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid"""
REFERENCES = """
    SELECT m.name, f."table" FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f WHERE m.type = 'table'"""


class SqliteTables:
    """Foreign keys are not checked as rows are written: they come whole, from a database that has checked them."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._path = path
        self._raw = connect(path)
        self._raw.row_factory = None
        try:
            with told(path):
                self._raw.execute("PRAGMA foreign_keys = OFF")
            self._fair_lock = fair_lock_of(path)
        except BaseException:
            self._raw.close()
            raise

    def level(self) -> Level | None:
        with told(self._path):
            found = self._raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_level'").fetchone()
            row = None if found is None else self._raw.execute(READ_LEVEL).fetchone()
        return None if row is None else Level(*row)

    def tables(self) -> dict[str, Table]:
        every = self._every()
        refers: dict[str, set[str]] = {}
        for name, other in self._raw.execute(REFERENCES):
            refers.setdefault(name, set()).add(other)
        found = of_cities(every)
        return {name: every[name] for name in in_order(found, refers) if name in found}

    def organizations(self) -> Table:
        return self._every()[ORGANIZATIONS]

    def _every(self) -> dict[str, Table]:
        columns: dict[str, list[str]] = {}
        for name, column in self._raw.execute(TABLES):
            columns.setdefault(name, []).append(column)
        return {name: Table(name, tuple(found), frozenset()) for name, found in columns.items()}

    def has_others(self, city: str) -> bool:
        return self._raw.execute("SELECT 1 FROM cities WHERE id <> ? LIMIT 1", (city,)).fetchone() is not None

    def begin(self, *, read_only: bool) -> None:
        with told(self._path):
            if read_only:
                self._raw.execute("BEGIN")
                self._raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # takes the snapshot
                return
            if not self._fair_lock.enter(at_most=BUSY_SECONDS):
                raise errors.StoreBusy(self.where)
            self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        crash_point(CrashPoint.STORE_BEFORE_COMMIT)
        with told(self._path):
            self._raw.execute("COMMIT")
        crash_point(CrashPoint.STORE_AFTER_COMMIT)
        self._fair_lock.leave()

    def rollback(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")
        self._fair_lock.leave()

    def count(self, table: Table, city: str) -> int:
        sql = f"SELECT count(*) FROM {table.name} WHERE {table.which.format('?')}"
        with told(self._path):
            found: int = self._raw.execute(sql, (city,)).fetchone()[0]
        return found

    def rows(self, table: Table, columns: Sequence[str], city: str) -> Iterator[Values]:
        sql = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {table.which.format('?')}"
        with told(self._path):
            for row in self._raw.execute(sql, (city,)):  # noqa: UP028  `yield from` closes it, perhaps after the file
                yield row

    def insert(self, table: Table, columns: Sequence[str], rows: Iterable[Values]) -> None:
        marks = ", ".join("?" for _ in columns)
        with told(self._path):
            try:
                self._raw.executemany(f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", rows)
            except sqlite3.IntegrityError as error:
                raise errors.NotTaken(self.where, table.name, str(error)) from error

    def shares(self, organization: str, city: str) -> bool:
        sql = "SELECT 1 FROM cities WHERE organization_id = ? AND id <> ? LIMIT 1"
        with told(self._path):
            return self._raw.execute(sql, (organization, city)).fetchone() is not None

    def remove_without_cities(self, organization: str) -> None:
        with told(self._path):
            self._raw.execute(REMOVE_ORGANIZATION.format("?"), (organization, organization))

    def delete(self, table: Table, city: str) -> None:
        with told(self._path):
            self._raw.execute(f"DELETE FROM {table.name} WHERE {table.which.format('?')}", (city,))

    def go_on_counting(self, _city: str) -> None:
        """Nothing to do: SQLite goes on after the highest number that is there."""

    def close(self) -> None:
        self._raw.close()
        self._fair_lock.close()
