"""A thousand deliveries, a third of all repeated and out of order, with kills in between: one run each."""

from collections import Counter
from pathlib import Path

import pytest
from automation_watch import wait_until
from crew import JobPool
from delivery_load import all_judged, drill, runs_kept, titles_fired
from drill_city import Town

from lamplighter.testing.processes import children

COUNT = 1000
KILLS = 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_thousand_deliveries_fire_once_each_over_kills(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, counts: dict[str, object]
) -> None:
    town = Town(tmp_path / "town")
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    town.configure(f'[store]\nurl = "{url}"\n')
    with children() as started:
        crew = JobPool.hired(started)
        ids = drill(town.root, crew, COUNT, kills=KILLS)
        wait_until(town.root, all_judged, within=600)
        assert crew.stop("one") == 0
    fired = Counter(titles_fired(town.root))
    counts |= {"deliveries": COUNT, "kills": KILLS, "fired": sum(fired.values()), "twice": max(fired.values()) - 1}
    counts["runs"] = runs_kept(town.root)
    assert fired == Counter(ids)
    assert counts["runs"] == COUNT
