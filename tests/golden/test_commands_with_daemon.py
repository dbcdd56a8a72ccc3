"""What commands answer with `--json` beside the city's process: agents, sessions, runs, and the process itself."""

from pathlib import Path

import golden_files
import pytest
from golden_city import FINALISED, WAITING, GoldenCity, a_city, running, until


@pytest.mark.timeout(600)
def test_commands_answer_as_on_record_beside_a_daemon(tmp_path: Path) -> None:
    with a_city(tmp_path) as city:
        city.json("automation", "list")
        city.commands.clear()
        with running(city, "up") as said:
            city.keep("up", said)
            city.started("mayor")
            city.started("web/coder-1")
            look_at_the_city(city)
            speak_to_agents(city)
            replace_sessions(city)
            run_automations(city)
            control_the_process(city)
        with running(city, "daemon", "run") as said:
            city.keep("daemon run", said)
    golden_files.check("commands_with_daemon", city.commands)


def look_at_the_city(city: GoldenCity) -> None:
    until(lambda: city.json("daemon", "status")["last_tick_at"])
    city.record("status")
    city.record("daemon status")
    city.record("doctor")
    city.record("agent list")
    city.record("agent list", "--rig", "web", "--state", "running", case="of-a-rig")
    city.record("session list")


def speak_to_agents(city: GoldenCity) -> None:
    until(lambda: "ready" in city.json("agent", "peek", "mayor")["output"])
    city.record("agent peek", "mayor")
    city.record("agent attach", "mayor")
    city.record("agent nudge", "mayor", "light", "the lamps")
    until(lambda: "heard light the lamps" in city.json("agent", "logs", "mayor")["output"])
    city.record("agent logs", "mayor")
    city.record("session show", "gc-town-mayor")
    city.record("session logs", "gc-town-mayor")
    city.record("mail send", "mayor", "Come home.", "--notify", case="notified")
    city.record("agent unquarantine", "mayor")


def replace_sessions(city: GoldenCity) -> None:
    """Each of the ways to end a session; the next is asked for when the new session is on record."""
    session = city.started("mayor")
    city.record("agent drain", "mayor")
    city.record("agent drain-check", "mayor")
    city.record("agent undrain", "mayor")
    city.record("agent drain-check", "mayor", case="no")
    city.json("agent", "drain", "mayor")
    city.record("agent drain-ack", "mayor")
    session = city.started("mayor", after=session)
    city.record("agent request-restart", "mayor", "--no-wait")
    session = city.started("mayor", after=session)
    city.record("agent restart", "mayor")
    session = city.started("mayor", after=session)
    city.record("agent kill", "mayor")
    session = city.started("mayor", after=session)
    city.record("agent suspend", "mayor")
    until(lambda: city.agent("mayor")["pid"] is None)
    city.record("agent resume", "mayor")
    city.started("mayor", after=session)
    city.record("agent show", "mayor", "--limit", "20")
    city.record("session list", "--all", "--agent", "mayor", case="of-an-agent")
    city.record("session show", session, case="ended")


def run_automations(city: GoldenCity) -> None:
    city.record("automation run", "sweep", "--wait")
    lit = city.fired("light", until_events=FINALISED)
    city.release(lit)
    city.record("run show", lit, case="of-an-agent")
    city.record("run logs", lit, case="of-an-agent")
    city.record("run watch", lit)
    completed = city.fired("wait", until_events=WAITING)
    city.record("run show", completed, case="running")
    words = ("--outcome", "needs_human", "--summary", "Which lamp?", "--citation", "lamp.txt")
    city.record("run complete", completed, *words)
    city.record("run complete", completed, *words, case="again")
    canceled = city.fired("wait", until_events=WAITING)
    city.record("run cancel", canceled)
    city.release(canceled)
    city.record("run list")
    city.record("automation history", "light")
    city.record("pause")
    city.record("status", case="paused")
    city.record("resume")


def control_the_process(city: GoldenCity) -> None:
    city.record("restart", by_program=True)
    city.record("daemon stop", by_program=True)
    city.record("daemon start", by_program=True)
    city.record("daemon start", by_program=True, case="again")
    city.record("daemon logs", "-n", "1")
    (line,) = city.commands["daemon-logs"]["out"]["lines"]
    city.commands["daemon-logs"]["out"]["lines"] = [f"<line> {type(line).__name__}"]
    city.record("stop", by_program=True)
