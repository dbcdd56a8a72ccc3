"""What tests share: one PostgreSQL server a session, a fresh database a test, a clock and ids that can be foretold."""

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest

from lamplighter.app import contexts
from lamplighter.kit.ids import IdSource
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, migrate
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.reused_databases import emptied, state_of

_SERVER = pytest.StashKey[tuple[ExitStack, dict[str, str]]]()
FEWEST_EXAMPLES = 20
IN_BRIEF = bool(os.environ.get("TESTS_IN_BRIEF"))
"""Set by tools/run_tests.py for every interpreter but the first, on which the whole suite has run already."""

# A busy machine is slow to make examples, and to try them: that is no defect.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


def pytest_configure() -> None:
    """Commands without a city's name would be about a context that is in use."""
    if contexts.read(os.environ).current is not None:
        pytest.exit("A context is in use; `lamp context use local` first.", returncode=4)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In brief: without what needs a PostgreSQL server, whose answers are the same for every interpreter, and with a
    tenth of the examples of each property.
    """
    if not IN_BRIEF:
        return
    for item in items:
        _try_fewer_examples(item)
    left = [item for item in items if _needs_postgres(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not _needs_postgres(item)]


def _try_fewer_examples(item: pytest.Item) -> None:
    function, machine = getattr(item, "obj", None), getattr(item, "cls", None)
    function = getattr(function, "__func__", function)  # a method takes no attributes
    for holder, name in ((function, "_hypothesis_internal_use_settings"), (machine, "settings")):
        chosen = getattr(holder, name, None)
        if isinstance(chosen, hypothesis.settings) and chosen.max_examples > FEWEST_EXAMPLES:
            fewer = max(chosen.max_examples // 10, FEWEST_EXAMPLES)
            setattr(holder, name, hypothesis.settings(chosen, max_examples=fewer))


def _needs_postgres(item: pytest.Item) -> bool:
    called = getattr(item, "callspec", None)
    chosen = () if called is None else called.params.values()
    return "postgres" in getattr(item, "fixturenames", ()) or "postgres" in [
        one for one in chosen if isinstance(one, str)
    ]


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


@pytest.fixture(scope="session")
def empty_databases() -> list[str]:
    """Databases that earlier tests used, emptied."""
    return []


@pytest.fixture
def postgres_url(postgres: Cluster, postgres_template: str, empty_databases: list[str]) -> Iterator[str]:
    """A migrated database without rows: one that another test has left as it was, or a new one."""
    url = empty_databases.pop() if empty_databases else postgres.database(template=postgres_template)
    state = state_of(url)
    yield url
    if emptied(url, state):
        empty_databases.append(url)
        return
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
