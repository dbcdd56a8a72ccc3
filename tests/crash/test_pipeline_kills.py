"""SIGKILL at random moments under a load of runs: one process on SQLite, four workers of two nodes on PostgreSQL.

The suite's share is small; `make torture DRILLS=kills` is the whole of it.
"""

from pathlib import Path

import pytest
from kill_storms import Storm, four_workers_on_postgres, one_process_on_sqlite

from lamplighter.testing.processes import Children

STORM = Storm(kills=45, runs=150)
LIMIT = 660


@pytest.mark.timeout(LIMIT)
def test_one_process_on_sqlite(city: Path, processes: Children) -> None:
    one_process_on_sqlite(city, processes, STORM, {})


@pytest.mark.timeout(LIMIT)
def test_four_workers_of_two_nodes_on_postgres(
    city: Path, tmp_path: Path, postgres_url: str, processes: Children
) -> None:
    four_workers_on_postgres(city, tmp_path / "barn", postgres_url, processes, STORM, {})
