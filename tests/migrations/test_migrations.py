"""Migrations on both databases: forward only, the same from anywhere, refused by a program that is too old."""

import asyncio
import contextlib
import json
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamplighter.domain.delivery.outbox import REQUIRED, ItemKind, malformed
from lamplighter.kit.masking import MASK
from lamplighter.store.engine import migrate as migrate_module
from lamplighter.store.engine import postgres_migrate
from lamplighter.store.engine.migration_files import migrations
from lamplighter.store.engine.postgres_migrate import migrate_postgres
from lamplighter.store.engine.schema import PROGRAM, Migration
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreBusy, StoreNewer, StoreOld, StoreUnavailable
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate, open_direct, open_store
from lamplighter.testing.contracts.store import CITY, appended, say
from lamplighter.testing.postgres import Cluster
from lamplighter.testing.processes import children

SHIPPED = [one.version for one in migrations("sqlite")]
MIGRATE = """
import json, sys
from pathlib import Path
from lamplighter.store.url import migrate, parse_store_url
print(json.dumps([entry.version for entry in migrate(parse_store_url(sys.argv[1], Path(sys.argv[2])))]), flush=True)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Place]:
    """A database without a schema."""
    if request.param == "sqlite":
        yield SqliteUrl(runtime / "lamp.db", runtime)
        return
    server: Cluster = request.getfixturevalue("postgres")
    url = server.database()
    yield PostgresUrl(url, runtime)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def fresh_sqlite(runtime: Path) -> SqliteUrl:
    place = SqliteUrl(runtime / "fresh.db", runtime)
    migrate(place)
    return place


def execute(place: Place, sql: str) -> list[Any]:
    if isinstance(place, SqliteUrl):
        with closing(sqlite3.connect(place.path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(place.url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def schema(place: Place) -> list[Any]:
    """Everything that makes up the schema, in a form that can be compared."""
    if isinstance(place, SqliteUrl):
        rows = execute(place, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
        return [(*row[:3], re.sub(r"\s+", " ", row[3] or "")) for row in rows]
    columns = execute(
        place,
        "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
        "FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
    )
    indexes = execute(place, "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")
    limits = execute(
        place,
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace "
        "ORDER BY 1",
    )
    return [columns, indexes, limits]


def level(place: Place) -> list[Any]:
    return [tuple(row) for row in execute(place, "SELECT version, oldest FROM schema_level")]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_program_knows_the_last_migration_and_none_is_missing(dialect: str) -> None:
    versions = [migration.version for migration in migrations(dialect)]
    assert versions == sorted(set(versions))
    assert (versions[0], versions[-1]) == (1, PROGRAM)
    assert all(migration.oldest <= migration.version for migration in migrations(dialect))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_migration_lets_older_programs_in_again(dialect: str) -> None:
    oldest = [one.oldest for one in migrations(dialect) if one.version > 3]  # the third one did, before any release
    assert oldest == sorted(oldest)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_program_that_would_give_up_what_is_in_the_outbox_is_not_let_in(dialect: str) -> None:
    """The one before knows no item that names several deliveries, and none that opens a thread."""
    assert set(REQUIRED) >= {ItemKind.PROCESS_DELIVERY, ItemKind.SLACK_OPEN}
    assert malformed(ItemKind.PROCESS_DELIVERY, {"deliveries": ["dlv_1", "dlv_2"]}) == ""
    assert next(one.oldest for one in migrations(dialect) if one.version == 27) == 27


def test_both_databases_have_the_same_migrations() -> None:
    assert [entry[:3] for entry in migrations("sqlite")] == [entry[:3] for entry in migrations("postgres")]


def test_both_databases_have_the_same_tables_and_columns(runtime: Path, postgres_place: PostgresUrl) -> None:
    sqlite = SqliteUrl(runtime / "lamp.db", runtime)
    migrate(sqlite)
    ours = {
        (table, column)
        for (table,) in execute(sqlite, "SELECT name FROM sqlite_master WHERE type = 'table'")
        if not table.startswith("sqlite_")
        for _, column, *_ in execute(sqlite, f"PRAGMA table_info({table})")
    }
    theirs = {
        (row[0], row[1])
        for row in execute(
            postgres_place,
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
        )
    }
    assert theirs - ours == {("events", "id")}  # the place before its number is known
    assert ours - theirs == set()


def test_a_schema_reached_step_by_step_equals_a_fresh_one(empty: Place, request: pytest.FixtureRequest) -> None:
    fresh: Place = request.getfixturevalue("fresh_sqlite" if isinstance(empty, SqliteUrl) else "postgres_place")
    for version in SHIPPED:
        if isinstance(empty, SqliteUrl):
            migrate_module.migrate_sqlite(empty.path, to=version)
        else:
            migrate_postgres(empty.url, to=version)
    assert schema(empty) == schema(fresh)
    assert level(empty) == level(fresh)


def test_migrating_again_changes_nothing_and_keeps_the_data(place: Place) -> None:
    store = open_direct(place, CITY)
    store.transact(say, "kept")
    store.close()
    before = schema(place)
    assert migrate(place) == []
    assert schema(place) == before
    store = open_direct(place, CITY)
    assert store.read(appended) == 1
    store.close()


def test_several_processes_that_migrate_at_once_apply_each_step_once(empty: Place) -> None:
    url = empty.url if isinstance(empty, PostgresUrl) else ""
    with children() as processes:
        started = [processes.start(sys.executable, "-c", MIGRATE, url, str(empty.runtime)) for _ in range(6)]
        applied = [json.loads(child.line()) for child in started]
    assert sorted(applied) == [[]] * 5 + [SHIPPED]
    assert level(empty) == [(PROGRAM, migrations("sqlite")[-1].oldest)]


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Migration(1, "bad", 1, "-- oldest: 1\nCREATE TABLE half (n INTEGER);\nCREATE TABLE half (n INTEGER);\n")
    for module in (migrate_module, postgres_migrate):
        monkeypatch.setattr(module, "migrations", lambda _dialect: [bad])
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.DuplicateTable)):
        migrate(empty)
    monkeypatch.undo()
    assert [entry.version for entry in migrate(empty)] == SHIPPED


def test_a_database_without_a_schema_is_told_how_to_get_one(empty: Place) -> None:
    if isinstance(empty, SqliteUrl):
        empty.path.touch()
    with pytest.raises(StoreOld, match="schema 0") as told:
        _events(empty)
    assert "lamp store migrate" in told.value.hint


def upgrade(place: Place, *, version: int, oldest: int) -> None:
    """What the migration of a later program would leave."""
    execute(place, f"UPDATE schema_level SET version = {version}, oldest = {oldest}")
    if isinstance(place, SqliteUrl):
        execute(place, f"PRAGMA user_version = {version}")


def test_an_older_program_refuses_at_open(place: Place) -> None:
    upgrade(place, version=PROGRAM + 7, oldest=PROGRAM + 3)
    with pytest.raises(StoreNewer, match=f"schema {PROGRAM + 7}"):
        _events(place)
    with pytest.raises(StoreNewer):
        migrate(place)
    assert execute(place, "SELECT count(*) FROM events")[0][0] == 0


async def test_an_older_program_refuses_while_running(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamplighter.store.engine.postgres_connection.CHECK_SECONDS", 0.0)
    store = open_store(place, CITY, Wakes())
    try:
        await store.transact(say, "before")
        upgrade(place, version=PROGRAM + 1, oldest=PROGRAM + 1)
        outcomes = await asyncio.gather(*(store.transact(say, "no") for _ in range(20)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreNewer}
        with pytest.raises(StoreNewer):
            await store.read(appended)
    finally:
        await store.close()
    assert execute(place, "SELECT count(*) FROM events")[0][0] == 1


async def test_a_newer_schema_that_still_serves_us_is_worked_on(place: Place) -> None:
    upgrade(place, version=PROGRAM + 1, oldest=PROGRAM)
    assert migrate(place) == []
    store = open_store(place, CITY, Wakes())
    try:
        assert await store.transact(say, "yes") == "yes"
    finally:
        await store.close()


def test_a_newer_database_is_told_without_its_password(postgres_place: PostgresUrl) -> None:
    upgrade(postgres_place, version=PROGRAM + 7, oldest=PROGRAM + 3)
    with pytest.raises(StoreNewer) as told:
        migrate_postgres(postgres_place.url + "&password=hush")
    assert "hush" not in told.value.message
    assert MASK in told.value.message


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(runtime: Path) -> None:
    place = SqliteUrl(runtime / "lamp.db", runtime)
    migrate(place)
    assert place.path.stat().st_mode & 0o777 == 0o600
    place.path.chmod(0o660)
    migrate(place)
    assert place.path.stat().st_mode & 0o777 == 0o660


def test_a_directory_that_is_not_there_is_told(runtime: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be made"):
        migrate(SqliteUrl(runtime / "missing" / "lamp.db", runtime))


def test_a_role_without_rights_is_told(postgres_place: PostgresUrl) -> None:
    execute(postgres_place, "CREATE ROLE guest LOGIN")
    try:
        guest = PostgresUrl(re.sub("user=[a-z]+", "user=guest", postgres_place.url), postgres_place.runtime)
        with pytest.raises(StoreUnavailable, match="does not let this user"):
            _events(guest)
    finally:
        execute(postgres_place, "DROP ROLE guest")


def _events(place: Place) -> int:
    store = open_direct(place, CITY)
    try:
        return store.read(appended)
    finally:
        store.close()


def test_a_migration_beside_programs_at_work_is_tried_again(empty: Place) -> None:
    """They take their locks in another order: one of both loses, and both come through in the end."""
    if isinstance(empty, SqliteUrl):
        migrate_module.migrate_sqlite(empty.path, to=PROGRAM)  # one writer at a time: nothing can be taken in turns
        return
    migrate_postgres(empty.url, to=6)
    applied: list[Migration] = []
    migrating = threading.Thread(target=lambda: applied.extend(migrate_postgres(empty.url)))
    with psycopg.connect(empty.url) as work:
        work.execute("LOCK TABLE runs IN ROW EXCLUSIVE MODE")
        migrating.start()
        with psycopg.connect(empty.url, autocommit=True) as watch:
            for _ in range(200):
                if watch.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                    break
                time.sleep(0.05)
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            work.execute("LOCK TABLE run_events IN ROW EXCLUSIVE MODE")
        work.rollback()
    migrating.join(30)
    assert [migration.version for migration in applied] == [one for one in SHIPPED if one >= 7]


def test_who_waits_for_a_run_where_they_may_overlap_waits_no_longer(empty: Place) -> None:
    """Of the earlier schema: nobody tells of the end of a run there any more."""
    if isinstance(empty, SqliteUrl):
        migrate_module.migrate_sqlite(empty.path, to=6)
    else:
        migrate_postgres(empty.url, to=6)
    for name, overlap in {"a": "allow", "b": "queue"}.items():
        execute(
            empty,
            f"""INSERT INTO automations (id, city_id, scoped_name, name, source, definition, enabled, armed_at,
                created_at, created_by, updated_at)
            VALUES ('{name}', 'c', '{name}', '{name}', 'api', '{{"overlap": "{overlap}"}}', 1, 0, 0, 'x', 0)""",
        )
        for number, held in enumerate(("'run_1'", "'blocked'")):
            execute(
                empty,
                f"""INSERT INTO triggers (city_id, automation_id, id, kind, position, armed, registered_at, held_by)
                VALUES ('c', '{name}', 't{number}', 'cron', 0, 1, 0, {held})""",
            )
    migrate(empty)
    rows = execute(empty, "SELECT automation_id, held_by FROM triggers ORDER BY automation_id, id")
    assert [tuple(row) for row in rows] == [("a", None), ("a", "blocked"), ("b", "run_1"), ("b", "blocked")]


def test_a_migration_does_not_wait_for_a_lock_for_ever(
    postgres_place: PostgresUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrate, "TRIES", 2)
    monkeypatch.setattr(postgres_migrate, "LOCK_SECONDS", 0.05)
    with psycopg.connect(postgres_place.url) as busy:
        busy.execute("LOCK TABLE schema_level IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy):
            migrate_postgres(postgres_place.url)
    assert migrate_postgres(postgres_place.url) == []


def test_each_city_gets_an_organization_of_its_own_with_the_members_it_had(empty: Place) -> None:
    """Before, all cities of a database named one organization, and members were those of a city."""
    if isinstance(empty, SqliteUrl):
        migrate_module.migrate_sqlite(empty.path, to=27)
    else:
        migrate_postgres(empty.url, to=27)
    execute(empty, "INSERT INTO organizations VALUES ('org_local', 'local', 5)")
    for city in ("north", "south"):
        execute(
            empty,
            "INSERT INTO cities (id, organization_id, name, created_at) "
            f"VALUES ('cty_{city}', 'org_local', '{city}', 7)",
        )
        execute(empty, f"INSERT INTO members VALUES ('cty_{city}', 'ann', 'admin', 1, 'ada')")
        execute(
            empty,
            f"INSERT INTO tokens VALUES ('cty_{city}', 'tok_1', 'ann', 'ci', 'hash {city}', 'last', '[]', 2, 'ada', "
            "NULL, 3, NULL)",
        )
    execute(empty, "INSERT INTO members VALUES ('cty_south', 'sue', 'owner', 1, 'ada')")
    migrate(empty)
    organizations = execute(empty, "SELECT id, name, created_at, home_city_id FROM organizations ORDER BY id")
    assert [tuple(row) for row in organizations] == [
        ("org_north", "north", 7, "cty_north"), ("org_south", "south", 7, "cty_south"),
    ]  # fmt: skip
    store = open_direct(empty, "cty_south")
    assert [(one.name, one.role.value) for one in store.read(lambda tx: tx.members.all())] == [
        ("ann", "admin"), ("sue", "owner"),
    ]  # fmt: skip
    held = store.read(lambda tx: tx.tokens.by_hash("hash south"))
    assert held is not None
    assert (held.token.id, held.token.member, held.role.value) == ("tok_1", "ann", "admin")
    assert store.read(lambda tx: tx.tokens.by_hash("hash north")) is None
    store.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_program_that_would_write_members_of_one_city_is_not_let_in(dialect: str) -> None:
    assert next(one.oldest for one in migrations(dialect) if one.version == 28) == 28
