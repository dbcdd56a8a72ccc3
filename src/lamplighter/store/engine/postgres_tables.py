"""The rows of a city in a PostgreSQL database, table by table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.masking import masked
from lamplighter.store import errors
from lamplighter.store.engine.city_tables import ORGANIZATIONS, REMOVE_ORGANIZATION, Table, Values, in_order, of_cities
from lamplighter.store.engine.numbering import NUMBER_LOCK, number_committed
from lamplighter.store.engine.postgres_connection import BY_INDEX, COSTS, LOCK_MILLIS, PostgresDb, connect, told
from lamplighter.store.engine.schema import READ_LEVEL, Level

TABLES = """
    SELECT c.table_name, c.column_name, c.is_identity = 'YES' FROM information_schema.columns AS c
    JOIN information_schema.tables AS t USING (table_schema, table_name)
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
    ORDER BY c.table_name, c.ordinal_position"""
REFERENCES = """
    SELECT one.relname, other.relname,
           ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = one.oid AND attnum = ANY (k.conkey))
    FROM pg_constraint AS k JOIN pg_class AS one ON one.oid = k.conrelid
    JOIN pg_class AS other ON other.oid = k.confrelid
    WHERE k.contype = 'f' AND one.relnamespace = current_schema()::regnamespace"""
KEYS = """
    SELECT ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = ANY (i.indkey))
    FROM pg_index AS i WHERE i.indisprimary AND i.indrelid = %s::regclass"""
HAS_SCHEMA = "SELECT to_regclass('schema_level') IS NOT NULL"
EVENTS_GO_ON = """
    SELECT setval('events_seq', copied.seq) FROM (SELECT max(seq) AS seq FROM events WHERE city_id = %s) AS copied
    WHERE copied.seq > (SELECT last_value FROM events_seq)"""
RUN_EVENTS_GO_ON = """
    SELECT setval('run_events_number', copied.number + 1000000)
    FROM (SELECT max(number) AS number FROM run_events WHERE city_id = %s) AS copied
    WHERE copied.number >= (SELECT last_value FROM run_events_number)"""
"""Far ahead, because processes of other cities take numbers at the same time: they never get one twice."""
AT_ONCE = 2000


class PostgresTables:
    def __init__(self, url: str) -> None:
        self.where = masked(url)
        self._url = url
        settings = f"SET lock_timeout = {LOCK_MILLIS}; {COSTS}; {BY_INDEX}"
        self._raw: psycopg.Connection[Any] = connect(url, settings=settings)

    def level(self) -> Level | None:
        with told(self._url):
            if not self._asked(HAS_SCHEMA)[0][0]:
                return None
            found = self._asked(READ_LEVEL)
        return Level(*found[0]) if found else None

    def tables(self) -> dict[str, Table]:
        every = self._every()
        refers: dict[str, set[str]] = {}
        for name, other, _ in self._asked(REFERENCES):
            refers.setdefault(name, set()).add(other)
        found = of_cities(every)
        return {name: every[name] for name in in_order(found, refers) if name in found}

    def organizations(self) -> Table:
        return self._every()[ORGANIZATIONS]

    def _every(self) -> dict[str, Table]:
        columns: dict[str, list[str]] = {}
        made: dict[str, set[str]] = {}
        with told(self._url):
            for name, column, identity in self._asked(TABLES):
                columns.setdefault(name, []).append(column)
                if identity:
                    made.setdefault(name, set()).add(column)
        return {name: Table(name, tuple(found), frozenset(made.get(name, ()))) for name, found in columns.items()}

    def has_others(self, city: str) -> bool:
        with told(self._url):
            return bool(self._asked("SELECT 1 FROM cities WHERE id <> %s LIMIT 1", (city,)))

    def begin(self, *, read_only: bool) -> None:
        with told(self._url):
            if read_only:
                self._number()
            self._do("BEGIN READ ONLY, ISOLATION LEVEL REPEATABLE READ" if read_only else "BEGIN")

    def _number(self) -> None:
        """Number the events that no process has numbered yet."""
        left = 1
        while left:
            with self._raw.transaction():
                left = number_committed(PostgresDb(self._raw))

    def commit(self) -> None:
        crash_point(CrashPoint.STORE_BEFORE_COMMIT)
        with told(self._url):
            self._do("COMMIT")
        crash_point(CrashPoint.STORE_AFTER_COMMIT)

    def rollback(self) -> None:
        if not self._raw.closed:
            self._do("ROLLBACK")

    def count(self, table: Table, city: str) -> int:
        with told(self._url):
            sql = f"SELECT count(*) FROM {table.name} WHERE {table.which.format('%s')}"
            found: int = self._asked(sql, (city,))[0][0]
        return found

    def rows(self, table: Table, columns: Sequence[str], city: str) -> Iterator[Values]:
        """Events committed since the last numbering get the next numbers, as they would have."""
        order = " ORDER BY seq NULLS LAST, id" if table.name == "events" else ""
        sql = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {table.which.format('%s')}{order}"
        with told(self._url), self._raw.cursor(name="of_city", row_factory=tuple_row) as cursor:
            cursor.itersize = AT_ONCE
            cursor.execute(sql.encode(), (city,))
            yield from cursor if table.name != "events" else _numbered(cursor, columns.index("seq"))

    def insert(self, table: Table, columns: Sequence[str], rows: Iterable[Values]) -> None:
        own = self._own_references(table)
        places = [columns.index(name) for name in own]
        key = self._key(table) if own else ()
        waiting: list[Values] = []

        def without_references() -> Iterator[Values]:
            for row in rows:
                values = list(row)
                if any(row[place] is not None for place in places):
                    waiting.append((*(row[place] for place in places), *(row[columns.index(name)] for name in key)))
                    for place in places:
                        values[place] = None
                yield tuple(values)

        sql = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"
        try:
            with told(self._url), self._raw.cursor() as cursor, cursor.copy(sql.encode()) as copy:
                for row in without_references() if own else rows:
                    copy.write_row(row)
        except (psycopg.errors.IntegrityError, psycopg.DataError) as error:
            raise errors.NotTaken(self.where, table.name, " ".join(str(error).split())) from error
        if waiting:
            sets, names = ", ".join(f"{name} = %s" for name in own), " AND ".join(f"{name} = %s" for name in key)
            with told(self._url), self._raw.cursor() as cursor:
                cursor.executemany(f"UPDATE {table.name} SET {sets} WHERE {names}".encode(), waiting)

    def shares(self, organization: str, city: str) -> bool:
        with told(self._url):
            sql = "SELECT 1 FROM cities WHERE organization_id = %s AND id <> %s LIMIT 1"
            return bool(self._asked(sql, (organization, city)))

    def remove_without_cities(self, organization: str) -> None:
        with told(self._url):
            self._do(REMOVE_ORGANIZATION.format("%s"), (organization, organization))

    def _own_references(self, table: Table) -> list[str]:
        """The columns by which a row refers to another of the same table, besides those of its key."""
        key = set(self._key(table))
        found = [names for name, other, names in self._asked(REFERENCES) if name == other == table.name]
        return sorted({name for names in found for name in names} - key)

    def _key(self, table: Table) -> tuple[str, ...]:
        return tuple(self._asked(KEYS, (table.name,))[0][0])

    def delete(self, table: Table, city: str) -> None:
        with told(self._url):
            for name in self._own_references(table):
                self._do(f"UPDATE {table.name} SET {name} = NULL WHERE {table.which.format('%s')}", (city,))
            self._do(f"DELETE FROM {table.name} WHERE {table.which.format('%s')}", (city,))

    def go_on_counting(self, city: str) -> None:
        with told(self._url):
            self._do(NUMBER_LOCK)  # whoever numbers events holds it
            self._do(EVENTS_GO_ON, (city,))
            self._do(RUN_EVENTS_GO_ON, (city,))

    def close(self) -> None:
        self._raw.close()

    def _do(self, sql: str, params: Values | None = None) -> None:
        self._raw.execute(sql.encode(), params)

    def _asked(self, sql: str, params: Values | None = None) -> list[Values]:
        with self._raw.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(sql.encode(), params).fetchall()


def _numbered(rows: Iterable[Values], place: int) -> Iterator[Values]:
    last = 0
    for row in rows:
        last = last + 1 if row[place] is None else row[place]
        yield (*row[:place], last, *row[place + 1 :])
