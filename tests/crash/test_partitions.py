"""A worker is cut off from the database for a while: what it had under way is done once, and it lives on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from automation_watch import wait_until
from database_trouble import bad, hold
from partitions import FAR, parted_town

from lamplighter.testing.cutting_proxy import Partition
from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.processes import Children


@pytest.fixture
def server() -> Iterator[Cluster]:
    with cluster() as started:
        yield started


def test_a_worker_that_is_cut_off_loses_nothing_and_does_nothing_twice(
    city: Path, tmp_path: Path, server: Cluster, processes: Children, environment: dict[str, str]
) -> None:
    with parted_town(city, tmp_path / "barn", server, processes, environment, alone=True) as (found, proxy):
        for how in Partition:
            for _ in range(4):
                found.fire()
            wait_until(city, lambda tx: any(run.node == FAR and not run.ended for run in tx.runs.page(limit=100)))
            proxy.part(how)
            found.fire()
            hold(2)
            proxy.heal()
        found.settle(within=180)
        assert bad(found.counts()) == {}
