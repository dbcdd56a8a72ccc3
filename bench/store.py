"""Acknowledged transactions a second with 1, 8 and 64 callers, beside the bare driver on the same machine, in turns.

A transaction inserts one bead. The driver's figure is one connection that runs the same function between BEGIN and
COMMIT, one fsync a transaction; ours includes handing over to the database thread and back.
"""

import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lamplighter.domain.beads.model import NewBead
from lamplighter.kit import aio
from lamplighter.store.engine.sqlite_connection import SqliteDb, connect
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate, open_store
from lamplighter.testing.postgres import cluster

CALLERS = (1, 8, 64)
REPEATS = 5
SECONDS = 0.8
SLICES, SLICE = 40, 25
NOW = datetime.now(UTC)
BEAD = NewBead("bench")
NUMBERS = itertools.count()
CITY = "cty_bench"


def insert(tx: Tx) -> None:
    bead = f"b-{next(NUMBERS)}"
    tx.beads.insert(bead, BEAD, root=bead, run=None, now=NOW)


async def throughput(place: Place, callers: int) -> float:
    store = open_store(place, CITY, Wakes())
    until = time.perf_counter() + SECONDS
    done = 0

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await store.transact(insert)
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    rate = done / (time.perf_counter() - began)
    await store.close()
    return rate


async def latencies(place: Place, driver: Callable[[], None]) -> tuple[float, float]:
    """Seconds for one transaction, the driver's and ours: medians over many short slices taken in turns.

    Machines are shared and their disks uneven, so the two must see the same weather.
    """
    store = open_store(place, CITY, Wakes())
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(SLICES):
        for _ in range(SLICE):
            began = time.perf_counter()
            driver()
            theirs.append(time.perf_counter() - began)
        for _ in range(SLICE):
            began = time.perf_counter()
            await store.transact(insert)
            ours.append(time.perf_counter() - began)
    await store.close()
    return statistics.median(theirs), statistics.median(ours)


def sqlite_driver(path: Path) -> Callable[[], None]:
    connection = connect(path)
    tx = Tx(SqliteDb(connection), CITY)

    def once() -> None:
        connection.execute("BEGIN IMMEDIATE")
        insert(tx)
        connection.execute("COMMIT")

    return once


def postgres_driver(url: str) -> Callable[[], None]:
    from lamplighter.store.engine.postgres_connection import PostgresDb
    from lamplighter.store.engine.postgres_connection import connect as connect_postgres

    connection = connect_postgres(url)
    tx = Tx(PostgresDb(connection), CITY)

    def once() -> None:
        connection.execute("BEGIN")
        insert(tx)
        connection.execute("COMMIT")

    return once


def timed(once: Callable[[], None]) -> float:
    done, began = 0, time.perf_counter()
    while time.perf_counter() < began + SECONDS:
        once()
        done += 1
    return done / (time.perf_counter() - began)


def measure(name: str, place: Place, driver: Callable[[], None]) -> None:
    rates: dict[str, list[float]] = {"driver": [], **{str(count): [] for count in CALLERS}}
    for _ in range(REPEATS):
        rates["driver"].append(timed(driver))
        for count in CALLERS:
            rates[str(count)].append(aio.run(throughput(place, count)))
    theirs, ours = aio.run(latencies(place, driver))
    overhead = ours / theirs - 1
    gain = statistics.median(o / d for d, o in zip(rates["driver"], rates["64"], strict=True))
    goals = {"one caller adds at most 30 %": overhead <= 0.30}
    if name == "sqlite":
        goals["64 callers reach 5x one fsync each"] = gain >= 5
    print(
        json.dumps(
            {
                "bench": "store",
                "store": name,
                "transactions_per_second": {key: round(statistics.median(values)) for key, values in rates.items()},
                "one_transaction_us": {"driver": round(theirs * 1e6), "transact": round(ours * 1e6)},
                "added_by_transact_for_one_caller": round(overhead, 3),
                "64_callers_over_driver": round(gain, 1),
                "goals": goals,
            }
        ),
        flush=True,
    )


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as directory:
        path = Path(directory) / "lamp.db"
        place = SqliteUrl(path, Path(directory))
        migrate(place)
        measure("sqlite", place, sqlite_driver(path))
        with cluster() as server:
            url = server.database()
            shared = PostgresUrl(url, Path(directory))
            migrate(shared)
            measure("postgres", shared, postgres_driver(url))


if __name__ == "__main__":
    main()
