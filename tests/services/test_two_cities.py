"""Two cities in one database: whatever is asked of one, the other is neither seen nor touched."""

import inspect
from typing import Any, cast

import pytest
from automation_city import City
from two_cities_story import CALLS, Call, Known, told

from lamplighter.kit.ids import IdSource
from lamplighter.store.cities import organization_of
from lamplighter.store.engine.db import Db
from lamplighter.store.tx import REPOSITORIES, DirectStore, Tx
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, open_direct
from lamplighter.testing.clock import FakeClock

OTHER, OURS = "cty_1", "cty_2"
"""The other comes first, by name and in the order of rows: a statement that forgets its city finds that one."""
PARENTS = (
    "organizations",
    "cities",
    "automations",
    "beads",
    "runs",
    "sessions",
    "members",
    "deliveries",
    "bulk_actions",
)
"""What the rows of other tables refer to."""
OF_ORGANIZATIONS = ("organizations", "members", "tokens")
"""The tables whose rows are those of an organization, which here has one city."""


class Done(Exception):
    """Ends a transaction without a trace; what it was to tell goes with it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def test_every_method_of_every_repository_is_called_here() -> None:
    tx = Tx(cast("Db", None), "x")
    methods = set()
    for name in REPOSITORIES:
        kind = type(getattr(tx, name))
        found = inspect.getmembers(kind, inspect.isfunction)
        methods |= {f"{name}.{method}" for method, _ in found if not method.startswith("_")}
    assert methods == set(CALLS)


def test_a_city_neither_sees_nor_touches_another_in_the_same_database(
    place: Place, fake_clock: FakeClock, ids: IdSource
) -> None:
    """Our city has all that the other has, under the same ids; all goes as if it were alone."""
    first, ours = open_direct(place, OTHER), open_direct(place, OURS)
    try:
        first.transact(lambda tx: tx.cities.ensure("other", fake_clock.now()))
        known = told(City(place, first, fake_clock, ids))
        tables = first.transact(_tables, postgres=isinstance(place, PostgresUrl))
        first.transact(_copy, tables, OTHER, OURS)
        first.transact(_older, tables)
        beside = {name: _asked(ours, call, known, tables) for name, call in CALLS.items()}
        first.transact(_remove, tables, OTHER)
        alone = {name: _asked(ours, call, known, {}) for name, call in CALLS.items()}
        assert [name for name in CALLS if alone[name][0] != beside[name][0]] == [], "they see the other"
        untouched = beside["cities.find"][1]
        assert [name for name in CALLS if beside[name][1] != untouched] == [], "they touch the other"
    finally:
        first.close()
        ours.close()


def test_a_city_that_has_nothing_sees_nothing_of_another(
    sqlite_place: SqliteUrl, fake_clock: FakeClock, ids: IdSource
) -> None:
    """On one database: the statements are the same on both, and what fails costs a server much."""
    first, ours = open_direct(sqlite_place, OTHER), open_direct(sqlite_place, OURS)
    try:
        first.transact(lambda tx: tx.cities.ensure("other", fake_clock.now()))
        known = told(City(sqlite_place, first, fake_clock, ids))
        beside = {name: _asked(ours, call, known, {}) for name, call in CALLS.items()}
        first.transact(_remove, first.transact(_tables, postgres=False), OTHER)
        alone = {name: _asked(ours, call, known, {}) for name, call in CALLS.items()}
        assert [name for name in CALLS if alone[name] != beside[name]] == []
    finally:
        first.close()
        ours.close()


def _asked(store: DirectStore, call: Call, known: Known, tables: dict[str, list[str]]) -> tuple[Any, Any]:
    """The answer, and what the other city has in these tables by then; nothing of it is kept."""

    def ask(tx: Tx) -> None:
        answer = call(tx, known)
        raise Done((answer, _dump(tx, tables, OTHER)))

    with pytest.raises(Exception) as raised:  # noqa: PT011  a city without anything has no answer for some
        store.transact(ask)
    return raised.value.value if isinstance(raised.value, Done) else (type(raised.value).__name__, {})


def _tables(tx: Tx, *, postgres: bool) -> dict[str, list[str]]:
    """The tables that belong to cities, those that others refer to first, each with its columns."""
    if postgres:
        found = tx.db.rows(
            """SELECT c.table_name AS name, string_agg(c.column_name, ' ' ORDER BY c.ordinal_position) AS columns
            FROM information_schema.columns AS c WHERE c.table_schema = 'public' AND c.is_generated = 'NEVER'
            GROUP BY c.table_name""",
            {},
        )
    else:
        found = tx.db.rows(
            """SELECT m.name AS name, (SELECT group_concat(name, ' ') FROM pragma_table_info(m.name)) AS columns
            FROM sqlite_master AS m WHERE m.type = 'table'""",
            {},
        )
    tables = {row["name"]: row["columns"].split() for row in found}
    order = [*PARENTS, *sorted(tables.keys() - set(PARENTS))]
    return {
        name: tables[name]
        for name in order
        if {"city_id", "organization_id"} & set(tables[name]) or name in {"cities", "organizations"}
    }


def _copy(tx: Tx, tables: dict[str, list[str]], source: str, target: str) -> None:
    for table, columns in tables.items():
        kept = [one for one in columns if not (table == "events" and one == "id")]
        values = ", ".join(_copied(table, column) for column in kept)
        tx.db.execute(
            f"INSERT INTO {table} ({', '.join(kept)}) SELECT {values} FROM {table} WHERE {_owner(table)} = :source",
            {"source": _key(table, source), "target": target, "organization": organization_of(target)},
        )


def _older(tx: Tx, tables: dict[str, list[str]]) -> None:
    """The other has had it all a moment longer: what is found there can be told apart."""
    for table, columns in tables.items():
        older = ", ".join(f"{column} = {column} - 1" for column in columns if column.endswith("_at"))
        if older:
            tx.db.execute(f"UPDATE {table} SET {older} WHERE {_owner(table)} = :other", {"other": _key(table, OTHER)})


def _owner(table: str) -> str:
    if table in {"cities", "organizations"}:
        return "id"
    return "organization_id" if table in OF_ORGANIZATIONS else "city_id"


def _key(table: str, city: str) -> str:
    """What stands in the column by which a row of the table belongs to the city."""
    return organization_of(city) if table in OF_ORGANIZATIONS else city


def _copied(table: str, column: str) -> str:
    match table, column:
        case ("organizations", "id") | (_, "organization_id"):
            return ":organization"
        case ("cities", "id") | (_, "home_city_id" | "city_id"):
            return ":target"
        case "owners", "id":
            return "id || 'b'"
        case "events", "seq":
            return "seq + 1000"
        case _:
            return column


def _remove(tx: Tx, tables: dict[str, list[str]], city: str) -> None:
    for table in reversed(tables):
        tx.db.execute(f"DELETE FROM {table} WHERE {_owner(table)} = :city", {"city": _key(table, city)})


def _dump(tx: Tx, tables: dict[str, list[str]], city: str) -> dict[str, list[str]]:
    return {table: _rows(tx, table, columns, city) for table, columns in tables.items()}


def _rows(tx: Tx, table: str, columns: list[str], city: str) -> list[str]:
    rows = tx.db.rows(f"SELECT * FROM {table} WHERE {_owner(table)} = :wanted", {"wanted": _key(table, city)})
    return sorted(repr([row[column] for column in columns]) for row in rows)
