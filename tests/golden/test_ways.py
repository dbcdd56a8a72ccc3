"""Four ways through the city, each with every event that it leaves on the bus and every event of its run, in order."""

import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import golden_files
import pytest
from golden_city import FINALISED, GoldenCity, a_city, running
from lamp_program import until

CLOCKED = (sys.executable, str(Path(__file__).with_name("clocked_lamp.py")))


@pytest.mark.timeout(600)
def test_the_four_ways_leave_the_events_on_record(tmp_path: Path) -> None:
    ahead = tmp_path / "ahead"
    ahead.write_text("0")
    ways = {}
    with a_city(tmp_path) as city:
        city.env["CLOCK_AHEAD_FILE"] = str(ahead)
        with running(city, "up", program=CLOCKED):
            city.started("mayor")
            city.started("web/coder-1")
            ways["agent-dies-and-is-started-again"] = agent_dies(city)
            ways["agent-run-fired-to-finalised"] = agent_run(city)
            ways["city-toml-edited-to-reloaded"] = city_toml_edited(city)
            ways["cron-slot-to-exec-run-ended"] = cron_slot(city, ahead)
    golden_files.check("ways", ways)


def cron_slot(city: GoldenCity, ahead: Path) -> dict[str, Any]:
    """The daemon's clock is moved to the slot; an event, which is left out, makes the scheduler look at it."""
    before = city.last_seq()
    city.json("automation", "create", "minutely", "--exec", "echo swept", "--cron", "* * * * *")
    due = datetime.fromisoformat(city.json("automation", "show", "minutely")["triggers"][0]["next_due_at"])
    ahead.write_text(str(max((due - datetime.now(due.tzinfo)).total_seconds(), 0) + 0.01))
    city.json("event", "emit", "test.clock_moved")
    until(lambda: "automation.completed" in bus_types(city, before))
    run = next(event["run"] for event in city.bus(before) if event["type"] == "automation.fired")
    return way(city, before, run=run)


def agent_dies(city: GoldenCity) -> dict[str, Any]:
    row, before = city.agent("mayor"), city.last_seq()
    os.kill(row["pid"], signal.SIGKILL)
    city.started("mayor", after=row["session_id"])
    return way(city, before)


def agent_run(city: GoldenCity) -> dict[str, Any]:
    """Finalised when its session is let go and what is left of its worktree is on record."""
    before = city.last_seq()
    run = city.fired("light", until_events=FINALISED)
    until(lambda: "automation.completed" in bus_types(city, before))
    return way(city, before, run=run)


def city_toml_edited(city: GoldenCity) -> dict[str, Any]:
    """Once wrong, once right."""
    before, config = city.last_seq(), city.root / "city.toml"
    right = config.read_text()
    config.write_text(right.replace("[[agents]]", "[[agnets]]"))
    until(lambda: "config.rejected" in bus_types(city, before))
    config.write_text(right.replace('name = "deputy"', 'name = "sheriff"'))
    until(lambda: "config.reloaded" in bus_types(city, before))
    return way(city, before)


def bus_types(city: GoldenCity, after: int) -> list[str]:
    return [event["type"] for event in city.bus(after)]


def way(city: GoldenCity, after: int, *, run: str | None = None) -> dict[str, Any]:
    """What stands on the bus after that number, without the test's own events."""
    events = [event for event in city.bus(after) if not event["type"].startswith("test.")]
    found: dict[str, Any] = {"bus": [on_the_bus(event) for event in events]}
    if run is not None:
        shown = city.json("run", "show", run)
        found["run"] = [of_the_run(event) for event in shown["events"]]
        found["state"], found["reason"] = shown["state"], shown["reason"]
    masked: dict[str, Any] = city.masked(found)
    return masked


def on_the_bus(event: dict[str, Any]) -> dict[str, Any]:
    payload = event["payload"]
    shown = {key: event[key] for key in ("type", "subject", "actor", "message", "run")}
    return shown | {"payload": sorted(payload) if isinstance(payload, dict) else payload}


def of_the_run(event: dict[str, Any]) -> dict[str, Any]:
    shown = {key: event[key] for key in ("type", "from", "to", "actor")}
    return shown | {"data": sorted(event["data"]) if event["data"] else None}
