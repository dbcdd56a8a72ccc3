"""The disk of a PostgreSQL server is full for a while under a city with a controller and two workers.

As root the disk is a small one of its own, which is really full. Where none can be mounted, the server raises the same
errors by other means, and the drill's line says so: a trigger that refuses every row with the error of a full disk, and
a server that is ended as it ends itself when there is no room for its log.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from database_trouble import Town, bad, hold, town
from pipeline_load import EXEC
from small_disk import SmallDisk, small_disk

from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.processes import children

TIMES = 3
FULL_SECONDS = 15.0
EVERY = 0.7
# Its output is kept with the run. Short rows alone find room in what the database has already, and no trouble comes.
WORDY = {"exec": f"head -c 4000 /dev/urandom | base64; {EXEC['exec']}"}
TABLES = ("events", "runs", "run_events", "outbox", "beads", "sessions", "trigger_events")


class OnSmallDisk(Cluster):
    """Its databases live on the small disk; the rest of the server, its log of changes included, does not."""

    def database(self, name: str | None = None, *, template: str = "template0") -> str:
        url = super().database(name, template=template)
        made = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{made}" SET TABLESPACE small'.encode())
        return url


class Drill:
    """A busy city, and how its database is made full and given room again."""

    def __init__(self, found: Town, way: str, fill: Callable[[], object], free: Callable[[], object]) -> None:
        self.town = found
        self.way = way
        self.fill = fill
        self.free = free

    def told(self) -> str:
        """All that status says of problems, in one line."""
        command = [sys.executable, "-m", "lamplighter", "--city", str(self.town.city), "status", "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            return done.stderr
        return " ".join(json.loads(done.stdout)["controller"]["problems"].values())


@pytest.fixture
def environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def busy(stack: ExitStack, tmp_path: Path, server: Cluster, environment: dict[str, str]) -> Town:
    city = tmp_path / "town"
    subprocess.run([sys.executable, "-m", "lamplighter", "init", str(city)], check=True, env=environment)
    processes = stack.enter_context(children())
    return stack.enter_context(town(city, server, processes, environment, workers=2))


@pytest.fixture
def full_tables(stack: ExitStack, tmp_path: Path, environment: dict[str, str]) -> Drill:
    """There is no room for rows; the server itself goes on."""
    disk = stack.enter_context(small_disk(96))
    server = stack.enter_context(cluster())
    if disk is None:
        found = busy(stack, tmp_path, server, environment)
        return Drill(found, "a trigger", lambda: _refuse_rows(found), lambda: _accept_rows(found))
    home = disk.root / "tables"
    home.mkdir(mode=0o700)
    server.own(home)
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{home}'".encode())
    found = busy(stack, tmp_path, OnSmallDisk(server.home, server.user), environment)
    return Drill(found, "a full disk", disk.fill, disk.free)


@pytest.fixture
def full_server(stack: ExitStack, tmp_path: Path, environment: dict[str, str]) -> Drill:
    """There is no room for the server's log of changes either: it ends itself, and recovers once there is."""
    disk = stack.enter_context(small_disk(400))
    if disk is None:
        server = stack.enter_context(cluster())
        found = busy(stack, tmp_path, server, environment)
        return Drill(found, "an ended server", lambda: server.stop("immediate"), server.start)
    server = stack.enter_context(cluster(disk.root))
    found = busy(stack, tmp_path, server, environment)
    return Drill(found, "a full disk", lambda: _use_up(disk, server), lambda: _recover(disk, server))


def run_drill(drill: Drill, counts: dict[str, object]) -> None:
    counts["way"] = drill.way
    drill.town.command = WORDY
    told = []
    with drill.town.under_load(EVERY):
        for _ in range(TIMES):
            hold(3)
            drill.fill()
            hold(FULL_SECONDS)
            told.append(drill.told())
            drill.free()
            hold(5)
    counts["told"] = max(told)[:200]
    drill.town.settle(within=600)
    seen = drill.town.counts()
    counts.update(seen)
    assert bad(seen) == {}
    assert any(told), "a controller that has nothing to write meets no trouble, but not three times"
    for _ in range(60):  # what failed in the last half minute is told
        counts["problems_left"] = left = drill.told()
        if not left:
            break
        hold(1)
    assert left == ""


def test_database_disk_full_for_rows(full_tables: Drill, counts: dict[str, object]) -> None:
    run_drill(full_tables, counts)
    assert "is full" in str(counts["told"])


def test_database_disk_full_for_the_whole_server(full_server: Drill, counts: dict[str, object]) -> None:
    run_drill(full_server, counts)


def _use_up(disk: SmallDisk, server: Cluster) -> None:
    """Fill the disk, and have the server need room for its log, until it is gone or has tried often enough."""
    disk.fill()
    for _ in range(20):
        try:
            with psycopg.connect(server.url("postgres"), autocommit=True, connect_timeout=5) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS filler (text text)")
                connection.execute("INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 100)")
                connection.execute("SELECT pg_switch_wal()")
        except psycopg.Error:
            pass
        disk.fill()


def _recover(disk: SmallDisk, server: Cluster) -> None:
    disk.free()
    if not server.runs():
        server.start()


def _refuse_rows(found: Town) -> None:
    with psycopg.connect(_url(found), autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        for table in TABLES:
            connection.execute(
                f"CREATE OR REPLACE TRIGGER no_room BEFORE INSERT OR UPDATE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION no_room()".encode()
            )


def _accept_rows(found: Town) -> None:
    with psycopg.connect(_url(found), autocommit=True) as connection:
        for table in TABLES:
            connection.execute(f"DROP TRIGGER IF EXISTS no_room ON {table}".encode())


def _url(found: Town) -> str:
    line = next(line for line in (found.city / "city.toml").read_text().splitlines() if line.startswith("url = "))
    return line.removeprefix('url = "').removesuffix('"')
