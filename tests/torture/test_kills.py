"""Three hundred kills under a load of a thousand runs: one process on SQLite, four workers on PostgreSQL."""

from pathlib import Path

import pytest
from kill_storms import Storm, four_workers_on_postgres, one_process_on_sqlite

from lamplighter.testing.processes import Children

STORM = Storm(kills=300, runs=1000)


@pytest.mark.timeout(3600)
def test_kills_of_one_process_on_sqlite(city: Path, processes: Children, counts: dict[str, object]) -> None:
    one_process_on_sqlite(city, processes, STORM, counts)


@pytest.mark.timeout(3600)
def test_kills_of_four_workers_on_postgres(
    city: Path, tmp_path: Path, postgres_url: str, processes: Children, counts: dict[str, object]
) -> None:
    four_workers_on_postgres(city, tmp_path / "barn", postgres_url, processes, STORM, counts)
