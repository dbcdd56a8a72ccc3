"""A daemon killed twice in the middle of a bulk action: the next one goes on, and nothing is done twice."""

from collections import Counter
from pathlib import Path

import pytest
from automation_watch import look, rows, wait_until
from crew import JobPool
from lamp_program import here
from test_automation_crashes import define

from lamplighter.domain.runs.bulk import BulkState
from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children

FAILS = '[automation]\nexec = "echo $LAMP_RUN_ID >> done.log; test -e mended"\ngate = "manual"\noverlap = "allow"\n'
COUNT = 6
WITHIN = 120


@pytest.fixture(params=["sqlite", "postgres"])
def on(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return found


def lamp(city: Path, *arguments: str) -> object:
    done = here(*arguments, "--json", "--city", str(city))
    assert done.code == 0, done
    return done.json


@pytest.mark.timeout(900)
def test_a_bulk_action_killed_twice_retries_each_run_once(city: Path, on: str, processes: Children) -> None:
    if on:
        with (city / "city.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[store]\nurl = "{on}"\n')
    crew = JobPool.hired(processes)
    crew.live("one", city, "up")  # the first one makes the city in that database
    crew.up("one")
    assert crew.stop("one") == 0
    define(city, "nightly", FAILS)
    for _ in range(COUNT):
        here("automation", "run", "nightly", "--json", "--city", str(city))
    failed = {row["id"] for row in rows(city, "SELECT id FROM runs WHERE state = 'failed'")}
    assert len(failed) == COUNT
    (city / "mended").touch()
    lamp(city, "run", "retry", "--query", "state:failed since:1d")
    for point, passes in ((CrashPoint.BULK_AFTER_RUN, 1), (CrashPoint.BULK_BEFORE_RUN, 2)):
        crew.live("one", city, "up", point=f"{point.value}:{passes}")
        crew.crashed("one")
    (half,) = look(city, lambda tx: tx.bulk_actions.page(state=None, before=None, limit=10))
    assert (half.state, half.done) == (BulkState.WORKING, 4)
    crew.live("one", city, "up")
    wait_until(
        city,
        lambda tx: bool(tx.bulk_actions.page(state=BulkState.DONE, before=None, limit=1)) and not tx.runs.any_active(),
        within=WITHIN,
    )
    crew.up("one")
    assert crew.stop("one") == 0
    (done,) = look(city, lambda tx: tx.bulk_actions.page(state=None, before=None, limit=10))
    assert (done.state, done.done, done.refused, done.total) == (BulkState.DONE, COUNT, 0, COUNT)
    again = rows(city, "SELECT retry_of FROM runs WHERE retry_of IS NOT NULL")
    assert Counter(row["retry_of"] for row in again) == Counter(failed)
    assert set(Counter((city / "done.log").read_text().split()).values()) == {1}
    caused = rows(city, "SELECT object, bulk FROM audit WHERE operation = 'run.retry'")
    assert Counter((row["object"], row["bulk"]) for row in caused) == Counter((run, done.id) for run in failed)
