"""A city's rows are copied whole, there and back, whatever tables there are, and never beside what is there already."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamplighter.domain.events import EventFilter, NewEvent
from lamplighter.store import copying
from lamplighter.store.cities import organization_of
from lamplighter.store.copying import Progress, copy_city, digests_of
from lamplighter.store.engine import PostgresTables, SqliteTables
from lamplighter.store.engine.city_tables import Table, in_order
from lamplighter.store.organizations import OrganizationRow
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate, open_direct

CITY, TWIN = "cty_1", "cty_2"
ROWS = 30
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CHECKED = re.compile(r"(\w+) TEXT[^,]*? CHECK \(\1 IN \('(\w+)'")
"""A column that takes only some values, and the first of them."""
CREATED = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
COLUMNS = "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid"
FOREIGN = 'SELECT "from" FROM pragma_foreign_key_list(?)'


def silent(_progress: Progress) -> None:
    return


def fill(place: SqliteUrl, city: str, *, rows: int = ROWS, offset: int = 0) -> None:
    """Rows in every table that knows cities, with a value in every column; beads have their parents after them."""
    open_direct(place, city).transact(lambda tx: tx.cities.ensure("town", AT))
    side = SqliteTables(place.path)
    try:
        raw = side._raw
        side.begin(read_only=False)
        for name, table in side.tables().items():
            if name == "cities":
                continue
            columns = raw.execute(COLUMNS, (name,)).fetchall()
            linked = {one for (one,) in raw.execute(FOREIGN, (name,))}
            chosen = dict(CHECKED.findall(raw.execute(CREATED, (name,)).fetchone()[0])) | {"city_id": city}
            chosen |= {"organization_id": organization_of(city)}
            one_each = [key for key, _, in_key in columns if in_key] == ["city_id"]  # a table with one row for a city
            numbers = range(1 if one_each else rows)
            made = [tuple(value(name, one, n + offset, chosen, linked) for one in columns) for n in numbers]
            if name == "beads":
                place_of_parent = table.columns.index("parent_id")
                made[-1] = tuple(None if at == place_of_parent else one for at, one in enumerate(made[-1]))
            side.insert(table, table.columns, made)
        side.commit()
    finally:
        side.close()


def value(table: str, column: tuple[str, str, int], n: int, chosen: dict[str, str], linked: set[str]) -> Any:
    name, kind, in_key = column
    if name in chosen:
        return chosen[name]
    if name == "parent_id":
        return f"k{n + 1}"
    if name == "seq":
        return n + 1
    if kind == "TEXT":
        own = f"{chosen['city_id']}-{n}" if table == "owners" else f"k{n}"
        return own if in_key or name in linked else f"{name} {n} Ünï\n\t\\N 🏮"
    return n / 7 if kind == "REAL" else n * 1000 if n % 3 else n


def of(place: Place, city: str = CITY) -> dict[str, tuple[int, str]]:
    return digests_of(place, city)


@pytest.fixture
def back(tmp_path: Path, runtime: Path) -> SqliteUrl:
    return SqliteUrl(tmp_path / "elsewhere" / "back.db", runtime)


def test_there_and_back_every_row_of_every_table_is_the_same(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl, back: SqliteUrl
) -> None:
    fill(sqlite_place, CITY)
    fill(sqlite_place, TWIN, offset=1000)
    told: list[Progress] = []
    there = copy_city(sqlite_place, postgres_place, CITY, tell=told.append)
    again = copy_city(postgres_place, back, CITY, tell=silent)
    assert of(sqlite_place) == of(postgres_place) == of(back)
    assert there == again
    assert all(count == ROWS for name, (count, _) in of(back).items() if name not in {"cities", "start_gates"})
    assert {one.table: (one.done, one.of) for one in told} == {name: (n, n) for name, n in there.rows.items()}
    assert back.path.stat().st_mode & 0o777 == 0o600
    assert sum(count for count, _ in of(postgres_place, TWIN).values()) == 0


@pytest.mark.parametrize("direction", ["to postgres", "to sqlite"])
def test_a_copy_that_breaks_off_leaves_nothing_and_is_repeated(
    direction: str, sqlite_place: SqliteUrl, postgres_place: PostgresUrl, back: SqliteUrl
) -> None:
    fill(sqlite_place, CITY)
    source: Place = sqlite_place
    target: Place = postgres_place
    if direction == "to sqlite":
        copy_city(sqlite_place, postgres_place, CITY, tell=silent)
        source, target = postgres_place, back

    def break_off(progress: Progress) -> None:
        if progress.table == "sessions":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_city(source, target, CITY, tell=break_off)
    assert sum(count for count, _ in of(target).values()) == 0
    assert not copy_city(source, target, CITY, tell=silent).already
    assert of(source) == of(target)


KILLED = """
import sys
from pathlib import Path
from lamplighter.kit import crash
from lamplighter.store.copying import copy_city
from lamplighter.store.url import parse_store_url
runtime = Path(sys.argv[1])
crash.arm(sys.argv[4])
copy_city(parse_store_url(sys.argv[2], runtime), parse_store_url(sys.argv[3], runtime), "cty_1", tell=lambda _: None)
"""


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
@pytest.mark.parametrize("direction", ["to postgres", "to sqlite"])
def test_killed_at_its_end_and_repeated_it_is_the_same(
    point: str, direction: str, sqlite_place: SqliteUrl, postgres_place: PostgresUrl, back: SqliteUrl
) -> None:
    fill(sqlite_place, CITY)
    source, target = (f"sqlite:{sqlite_place.path}", postgres_place.url)
    places: tuple[Place, Place] = (sqlite_place, postgres_place)
    if direction == "to sqlite":
        copy_city(sqlite_place, postgres_place, CITY, tell=silent)
        source, target, places = postgres_place.url, f"sqlite:{back.path}", (postgres_place, back)
    asked = [sys.executable, "-c", KILLED, str(sqlite_place.runtime), source, target, point]
    assert subprocess.run(asked, check=False, timeout=180).returncode == -9
    done = copy_city(*places, CITY, tell=silent)
    assert done.already == (point == "store.after_commit")
    assert of(places[0]) == of(places[1])


def test_a_target_with_other_rows_of_the_city_is_refused_and_replaced_only_when_told(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl
) -> None:
    fill(sqlite_place, CITY)
    copy_city(sqlite_place, postgres_place, CITY, tell=silent)
    assert copy_city(sqlite_place, postgres_place, CITY, tell=silent).already
    store = open_direct(postgres_place, CITY)
    store.transact(lambda tx: tx.events.append(NewEvent("town.changed", AT, "me")))
    store.close()
    before = of(postgres_place)
    with pytest.raises(copying.TargetHolds) as refused:
        copy_city(sqlite_place, postgres_place, CITY, tell=silent)
    assert "--replace" in refused.value.hint
    assert of(postgres_place) == before
    assert not copy_city(sqlite_place, postgres_place, CITY, replace=True, tell=silent).already
    assert of(postgres_place) == of(sqlite_place)


def test_other_cities_of_the_target_stay_as_they_are(sqlite_place: SqliteUrl, postgres_place: PostgresUrl) -> None:
    fill(sqlite_place, CITY)
    fill(sqlite_place, TWIN, offset=1000)
    for city in (CITY, TWIN):
        copy_city(sqlite_place, postgres_place, city, tell=silent)
    before = of(postgres_place, TWIN)
    store = open_direct(postgres_place, CITY)
    store.transact(lambda tx: tx.cities.ensure("other name", AT))
    store.close()
    copy_city(sqlite_place, postgres_place, CITY, replace=True, tell=silent)
    assert of(postgres_place, TWIN) == before == of(sqlite_place, TWIN)


def test_a_file_that_holds_another_city_is_refused(sqlite_place: SqliteUrl, back: SqliteUrl) -> None:
    fill(sqlite_place, CITY)
    back.path.parent.mkdir()
    migrate(back)
    fill(back, TWIN)
    with pytest.raises(copying.OtherCityInFile):
        copy_city(sqlite_place, back, CITY, tell=silent)


def test_another_schema_and_a_city_that_is_not_there_are_refused(
    sqlite_place: SqliteUrl, postgres: Any, runtime: Path
) -> None:
    elsewhere = PostgresUrl(postgres.database(), runtime)
    migrate(elsewhere)
    with pytest.raises(copying.NotInStore):
        copy_city(sqlite_place, elsewhere, CITY, tell=silent)
    fill(sqlite_place, CITY)
    with psycopg.connect(elsewhere.url, autocommit=True) as connection:
        connection.execute("UPDATE schema_level SET version = version + 1")
    with pytest.raises(copying.OtherSchema):
        copy_city(sqlite_place, elsewhere, CITY, tell=silent)
    with pytest.raises(copying.OtherSchema):
        copy_city(elsewhere, sqlite_place, CITY, tell=silent)


def test_rows_that_change_during_the_copy_are_not_left_behind(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl
) -> None:
    fill(sqlite_place, CITY)
    store = open_direct(sqlite_place, CITY)

    def write(progress: Progress) -> None:
        if progress.table == "sessions":
            store.transact(lambda tx: tx.events.append(NewEvent("town.changed", AT, "me")))

    with pytest.raises(copying.SourceChanged):
        copy_city(sqlite_place, postgres_place, CITY, tell=write)
    store.close()
    assert sum(count for count, _ in of(postgres_place).values()) == 0


def test_numbers_go_on_after_those_that_were_copied(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl, back: SqliteUrl
) -> None:
    fill(sqlite_place, CITY)
    copy_city(sqlite_place, postgres_place, CITY, tell=silent)
    store = open_direct(postgres_place, CITY)
    store.transact(lambda tx: tx.events.append(NewEvent("town.moved", AT, "me")))
    store.close()
    copy_city(postgres_place, back, CITY, tell=silent)  # numbers what nobody has numbered yet
    store = open_direct(back, CITY)
    seen = store.read(lambda tx: tx.events.latest(EventFilter(type="town.*"), limit=10))
    store.close()
    assert [event.seq for event in seen] == [ROWS + 1]


def test_text_that_postgresql_cannot_hold_is_told_with_its_table(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl
) -> None:
    fill(sqlite_place, CITY)
    side = SqliteTables(sqlite_place.path)
    side._raw.execute("UPDATE beads SET title = 'a' || char(0) || 'b' WHERE id = 'k3'")
    side.close()
    with pytest.raises(Exception, match="did not take a row of the table `beads`"):
        copy_city(sqlite_place, postgres_place, CITY, tell=silent)
    assert sum(count for count, _ in of(postgres_place).values()) == 0


def test_both_databases_have_the_same_tables_and_columns(sqlite_place: SqliteUrl, postgres_place: PostgresUrl) -> None:
    def seen(side: Any) -> dict[str, set[str]]:
        tables: Callable[[], dict[str, Table]] = side.tables
        found = {name: set(one.columns) - one.made for name, one in tables().items()}
        side.close()
        return found

    assert seen(SqliteTables(sqlite_place.path)) == seen(PostgresTables(postgres_place.url))


def test_tables_come_after_those_they_refer_to() -> None:
    assert in_order(["c", "a", "b"], {"a": {"b"}, "b": {"c", "b"}}) == ["c", "b", "a"]


def share(place: SqliteUrl) -> None:
    """Let both cities be in the organization of the first."""
    store = open_direct(place, TWIN)
    store.transact(lambda tx: tx.organizations.move(TWIN, organization_of(CITY)))
    store.transact(lambda tx: tx.organizations.end(organization_of(TWIN)))
    store.close()


def test_cities_of_one_organization_are_together_again_where_both_are_copied_to(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl
) -> None:
    """The second one takes the members and tokens that the organization has there by then."""
    fill(sqlite_place, CITY)
    fill(sqlite_place, TWIN, offset=1000)
    share(sqlite_place)
    copy_city(sqlite_place, postgres_place, CITY, tell=silent)
    first = open_direct(postgres_place, CITY)
    first.transact(lambda tx: tx.members.remove("k1"))
    assert not {"members", "tokens"} & set(copy_city(sqlite_place, postgres_place, TWIN, tell=silent).rows)
    assert copy_city(sqlite_place, postgres_place, TWIN, tell=silent).already
    second = open_direct(postgres_place, TWIN)
    assert [one.id for one in second.read(lambda tx: tx.organizations.cities())] == [CITY, TWIN]
    assert [one.read(lambda tx: tx.organizations.is_home()) for one in (first, second)] == [True, False]
    names = [one.name for one in second.read(lambda tx: tx.members.all())]
    assert len(names) == ROWS - 1
    assert "k1" not in names
    for store in (first, second):
        store.close()


def test_a_city_that_is_copied_away_alone_is_the_home_of_its_organization_there(
    sqlite_place: SqliteUrl, back: SqliteUrl
) -> None:
    fill(sqlite_place, CITY)
    fill(sqlite_place, TWIN, offset=1000)
    share(sqlite_place)
    copy_city(sqlite_place, back, TWIN, tell=silent)
    store = open_direct(back, TWIN)
    assert store.read(lambda tx: tx.organizations.is_home())
    assert len(store.read(lambda tx: tx.members.all())) == ROWS
    store.close()


def test_a_city_that_was_put_out_of_an_organization_does_not_come_back_by_a_copy(
    sqlite_place: SqliteUrl, postgres_place: PostgresUrl
) -> None:
    fill(sqlite_place, CITY)
    fill(sqlite_place, TWIN, offset=1000)
    share(sqlite_place)
    for city in (CITY, TWIN):
        copy_city(sqlite_place, postgres_place, city, tell=silent)
    store = open_direct(postgres_place, TWIN)
    own = OrganizationRow("org_own", "own", AT, TWIN)
    store.transact(lambda tx: (tx.organizations.add(own), tx.organizations.move(TWIN, own.id)))
    before = of(postgres_place, TWIN)
    with pytest.raises(copying.OtherOrganization):
        copy_city(sqlite_place, postgres_place, TWIN, replace=True, tell=silent)
    assert of(postgres_place, TWIN) == before
    store.close()
