"""Two hours of a busy city in half a minute, with its daemon killed in between; `make torture` does a whole day."""

from pathlib import Path

import pytest
from soak import fast_town, soak


@pytest.mark.timeout(600)
def test_two_compressed_hours_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    with fast_town(tmp_path / "town", 300) as town:
        soak(town, {}, hours=2, kills=2)
