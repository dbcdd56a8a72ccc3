"""A PostgreSQL server that is restarted under a city: every run ends well, once, and no process dies of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from database_trouble import bad, town

from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.processes import Children


@pytest.fixture
def server() -> Iterator[Cluster]:
    """Its own: the one of the other tests must not be restarted."""
    with cluster() as started:
        yield started


def test_restarts_and_lost_connections_cost_no_run_no_completion_and_no_process(
    city: Path, server: Cluster, processes: Children, environment: dict[str, str]
) -> None:
    with town(city, server, processes, environment, workers=1) as found:
        for trouble in (lambda: server.restart("fast"), found.terminate, lambda: server.restart("immediate")):
            found.fire()
            found.fire()
            trouble()
        found.settle(within=180)
        assert bad(found.counts()) == {}
