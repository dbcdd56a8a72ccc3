"""One worker is cut off from its database again and again, while it and all others are at work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from database_trouble import bad, hold
from drill_city import environment
from partitions import far_runs, parted_town

from lamplighter.testing.cutting_proxy import Partition
from lamplighter.testing.postgres import Cluster, cluster
from lamplighter.testing.processes import Children

TIMES = 20
FOR_S = 6
EVERY = 0.4


@pytest.fixture
def server() -> Iterator[Cluster]:
    with cluster() as started:
        yield started


def test_partition_of_one_worker(
    city: Path, tmp_path: Path, server: Cluster, processes: Children, counts: dict[str, object]
) -> None:
    with parted_town(city, tmp_path / "barn", server, processes, environment()) as (found, proxy):
        with found.under_load(EVERY):
            for number in range(TIMES):
                hold(FOR_S)
                proxy.part(Partition.SILENT if number % 2 else Partition.CUT)
                hold(FOR_S)
                proxy.heal()
        counts |= {"partitions": TIMES, "seconds_each": FOR_S}
        found.settle(within=600)
        seen = found.counts()
        counts |= seen | {"runs_of_the_worker": far_runs(city)}
        assert bad(seen) == {}
        assert far_runs(city) > 0
