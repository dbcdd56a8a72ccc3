"""PostgreSQL goes and comes under a city with a controller and two workers."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from database_trouble import Town, bad, hold, town

from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.processes import children

RESTARTS = 20
TERMINATED = 200
EVERY = 0.7
MOST = 400


@pytest.fixture
def environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}


@pytest.fixture
def server() -> Iterator[Cluster]:
    with cluster() as started:
        yield started


@pytest.fixture
def busy(tmp_path: Path, server: Cluster, environment: dict[str, str]) -> Iterator[Town]:
    city = tmp_path / "town"
    subprocess.run([sys.executable, "-m", "lamplighter", "init", str(city)], check=True, env=environment)
    with children() as processes, town(city, server, processes, environment, workers=2) as found:
        yield found


def finish(found: Town, counts: dict[str, object]) -> None:
    found.settle(within=600)
    seen = found.counts()
    counts.update(seen)
    assert bad(seen) == {}


def test_database_restarts(busy: Town, server: Cluster, counts: dict[str, object]) -> None:
    with busy.under_load(EVERY):
        for n in range(RESTARTS):
            server.restart("immediate" if n % 2 else "fast")
            hold(2)
    counts["restarts"] = RESTARTS
    finish(busy, counts)


def test_database_connections_terminated(busy: Town, counts: dict[str, object]) -> None:
    ended = 0
    with busy.under_load(EVERY):
        for n in range(TERMINATED):
            if ended >= TERMINATED:
                break
            ended += busy.terminate(None if n % 10 == 9 else 1)
            hold(0.5)
    counts["terminated"] = ended
    finish(busy, counts)


def test_database_paused_read_only_and_full(busy: Town, server: Cluster, counts: dict[str, object]) -> None:
    with busy.under_load(EVERY):
        hold(3)
        server.signal_all(signal.SIGSTOP)
        hold(20)
        server.signal_all(signal.SIGCONT)
        hold(3)
        _read_only(server, "on")
        hold(12)
        _read_only(server, "off")
        hold(3)
        with ExitStack() as stack:
            taken = _take_all(stack, server)
            busy.terminate(5, by=taken[0])
            taken += _take_all(stack, server)  # those that fell free, as far as the city was not quicker
            hold(12)
        hold(3)
    counts["connections_taken"] = len(taken)
    finish(busy, counts)


def _read_only(server: Cluster, word: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}".encode())
        connection.execute("SELECT pg_reload_conf()")


def _take_all(stack: ExitStack, server: Cluster) -> list[psycopg.Connection]:
    """Every connection the server still gives."""
    taken: list[psycopg.Connection] = []
    while len(taken) < MOST:
        try:
            taken.append(stack.enter_context(psycopg.connect(server.url("postgres"), autocommit=True)))
        except psycopg.OperationalError:
            return taken
    raise AssertionError("the server gives connections without end")
