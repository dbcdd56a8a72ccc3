"""What tests share: one PostgreSQL server a session, a fresh database a test, a clock and ids that can be foretold."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamplighter.kit.ids import IdSource
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.postgres import Cluster, cluster

_SERVER = pytest.StashKey[tuple[ExitStack, dict[str, str]]]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the controller of a parallel run: its one server serves every worker."""
    if _SERVER not in node.config.stash:
        node.config.stash[_SERVER] = _started()
    node.workerinput["postgres"] = node.config.stash[_SERVER][1]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SERVER in config.stash:
        config.stash[_SERVER][0].close()


def _started() -> tuple[ExitStack, dict[str, str]]:
    """The server, or why there is none; tests that need it fail with that."""
    stack = ExitStack()
    try:
        server = stack.enter_context(cluster())
    except (RuntimeError, OSError) as error:
        return stack, {"problem": str(error)}
    return stack, {"home": str(server.home), "user": server.user}


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Cluster:
    """The session's server; without workers it is started by the first test that asks for it."""
    config = request.config
    if hasattr(config, "workerinput"):
        found: dict[str, str] = config.workerinput["postgres"]
    else:
        config.stash[_SERVER] = _started()
        found = config.stash[_SERVER][1]
    if "problem" in found:
        pytest.fail(found["problem"])
    return Cluster(Path(found["home"]), found["user"])


@pytest.fixture(scope="session")
def postgres_template(postgres: Cluster, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated database that nobody connects to, so that it can be copied."""
    name = f"template_{worker_id}"
    migrate(PostgresUrl(postgres.database(name), tmp_path_factory.mktemp("template")))
    return name


@pytest.fixture
def postgres_url(postgres: Cluster, postgres_template: str) -> Iterator[str]:
    """A fresh migrated database."""
    url = postgres.database(template=postgres_template)
    yield url
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A city's `.gc`."""
    path = tmp_path / ".gc"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def sqlite_place(runtime: Path) -> SqliteUrl:
    place = SqliteUrl(runtime / "lamp.db", runtime)
    migrate(place)
    return place


@pytest.fixture
def postgres_place(postgres_url: str, runtime: Path) -> PostgresUrl:
    return PostgresUrl(postgres_url, runtime)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """A fresh migrated store, on each database in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ids(fake_clock: FakeClock) -> IdSource:
    return IdSource(fake_clock, random.Random(5267).randbytes)
