"""A city with a worker of another node that can be cut off from the database, and from nothing else."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from automation_watch import rows
from database_trouble import AGENT, PROVIDER, Town
from workers import checkout, on_postgres, start

from lamplighter.testing.cutting_proxy import CuttingProxy, cutting_proxy
from lamplighter.testing.postgres import Cluster
from lamplighter.testing.processes import Children

FAR = "barn"


@contextmanager
def parted_town(
    city: Path,
    barn: Path,
    server: Cluster,
    processes: Children,
    environment: dict[str, str],
    *,
    alone: bool = False,
) -> Iterator[tuple[Town, CuttingProxy]]:
    """A controller that starts nothing, a worker beside it unless `alone`, and one in `barn` behind the proxy."""
    (city / "agent.sh").write_text(AGENT, encoding="utf-8")
    on_postgres(city, server.database(), PROVIDER)
    checkout(city, barn)
    with (
        tempfile.TemporaryDirectory(prefix="lamp-cut-", dir="/tmp") as home,  # a socket's path must be short
        cutting_proxy(Path(home), server.home) as proxy,
    ):
        settings = barn / "city.toml"
        settings.write_text(settings.read_text().replace(str(server.home), home))
        members = [
            start(processes, environment | {"LAMP_WORKERS_EXECUTE": "0"}, city, "up"),
            *([] if alone else [start(processes, environment, city, "worker")]),
            start(processes, environment, barn, "worker", "--name", FAR),
        ]
        found = Town(city, server, members, barn)
        try:
            yield found, proxy
        finally:
            found.close()


def far_runs(city: Path) -> int:
    """How many runs the worker behind the proxy has held."""
    (row,) = rows(city, f"SELECT count(*) AS n FROM runs WHERE node = '{FAR}'")
    return int(row["n"])
