"""The machine's clock is moved forward and back under a running city, by seconds and by days."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from drill_city import Town, environment, wait_for

CLOCKED = Path(__file__).parent.parent / "golden" / "clocked_lamp.py"
HOUR, DAY = 3600, 24 * 3600
MOVES = (3 * HOUR, -DAY, 60, -60, 7 * HOUR, -HOUR, -10, DAY, -2 * DAY, 30, -7 * DAY, 90)
OFTEN = "exec = 'echo fired >> often'\ngate = 'cooldown'\ninterval = '2s'\n"
SLOTS = """exec = '''echo $(sed -n 's/.*"slot": *"\\([^"]*\\)".*/\\1/p' "$LAMP_TRIGGER_FILE") >> slots'''
gate = 'cron'
schedule = '* * * * *'
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    made = Town(tmp_path / "town")
    yield made
    made.close()


def test_a_clock_that_is_moved_again_and_again(town: Town, tmp_path: Path, counts: dict[str, object]) -> None:
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    town.configure('[daemon]\npatrol_interval = "2s"\n')
    town.automate("often", OFTEN)
    town.automate("slots", SLOTS)
    with (town.root / "log").open("ab") as log:
        town.daemon = subprocess.Popen(
            [sys.executable, str(CLOCKED), "up", "--city", str(town.root)],
            env=environment() | {"CLOCK_AHEAD_FILE": str(ahead)}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    wait_for("it did not come up", lambda: town.status().get("running") is True, seconds=60)
    slowest, now_ahead = 0.0, 0
    for move in MOVES:
        now_ahead += move
        ahead.write_text(str(now_ahead))
        before = len(town.lines("often"))
        more = wait_for(f"silent after {move}", lambda b=before: len(town.lines("often")) >= b + 3, seconds=90)
        slowest = max(slowest, more)
    assert town.daemon.poll() is None
    town.close()
    slots = Counter(town.lines("slots"))
    told = json.loads(town.lamp("event", "list", "--type", "controller.clock_set_back", "--json").stdout)
    states = Counter(run["state"] for run in town.runs())
    runs = Counter(run["automation"] for run in town.runs())
    counts.update(
        moves=len(MOVES), fired=len(town.lines("often")), slowest_s=slowest, slots=len(slots),
        doubled=sum(count > 1 for count in slots.values()), told=len(told), states=dict(states), runs=dict(runs),
    )  # fmt: skip
    assert max(slots.values()) == 1
    assert runs == {"often": len(town.lines("often")), "slots": len(slots)}
    assert len(told) == sum(move < -5 for move in MOVES)
    assert not set(states) & {"queued", "enriching", "ready", "running"}
