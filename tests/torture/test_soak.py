"""A day of a busy city in a quarter of an hour, with a kill of the daemon every two hours."""

from pathlib import Path

import pytest
from soak import fast_town, soak


@pytest.mark.timeout(3600)
def test_soak_of_a_compressed_day(tmp_path: Path, counts: dict[str, object]) -> None:
    with fast_town(tmp_path / "town", 96) as town:
        soak(town, counts, hours=24, kills=12)
