"""What commands answer with `--json` beside the city's process: agents, sessions, runs, and the process itself."""

from pathlib import Path

import golden_files
import pytest
from golden_city import FINALISED, WAITING, GoldenCity, a_city, running
from lamp_program import told_its_name, until


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
    city.record("node list")
    city.record("login list")
    city.record("login check")
    city.record("open", "--print")


def speak_to_agents(city: GoldenCity) -> None:
    until(lambda: "ready" in city.json("agent", "peek", "mayor")["output"])
    city.record("agent peek", "mayor")
    city.record("agent question", "mayor")
    city.record("agent answer", "mayor", "y", "--question", "Shall I?")
    city.record("agent attach", "mayor")
    city.record("agent let-go", "mayor")
    city.record("agent nudge", "mayor", "light", "the lamps")
    until(lambda: "heard light the lamps" in city.json("agent", "logs", "mayor")["output"])
    city.record("agent logs", "mayor")
    city.record("session show", "gc-town-mayor")
    city.record("session logs", "gc-town-mayor")
    city.keep("session subscribe", city.call("session", "subscribe", "gc-town-mayor", "--to", "team"))
    city.record("session unsubscribe", "gc-town-mayor", "--to", "team")
    city.record("session subscriptions")
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
    city.record("run follow", lit)
    city.record("run diff", lit)
    city.record("run apply", lit)
    city.record("run apply", lit, case="again")
    again = city.fired("light", until_events=FINALISED)
    city.release(again)
    city.record("run discard", again)
    completed = city.fired("wait", until_events=WAITING)
    city.record("run show", completed, case="running")
    words = ("--outcome", "needs_human", "--summary", "Which lamp?", "--citation", "lamp.txt")
    city.record("run complete", completed, *words)
    city.record("run complete", completed, *words, case="again")
    canceled = city.fired("wait", until_events=WAITING)
    city.record("run cancel", canceled)
    city.release(canceled)
    city.record("run list")
    city.record("worktree list")
    city.record("worktree clean")
    city.record("automation history", "light")
    city.record("pause")
    city.record("status", case="paused")
    city.record("resume")
    ask_and_answer(city)
    decide_about_plans(city)
    take_and_give(city)


def ask_and_answer(city: GoldenCity) -> None:
    asking = city.fired("wait", until_events=WAITING)
    words = ("--question", "Which lamp?", "--choice", "left", "--without-answer", "It stays dark.")
    city.record("run ask", asking, *words)
    city.release(asking)
    made = city.record("run answer", asking, "The left one.")
    city.record("session send", made["id"], "And the right one.")
    city.json("run", "cancel", made["id"])
    left = next(item for item in city.json("inbox", "list") if item["kind"] == "needs_human")
    city.record("inbox answer", left["id"], "Both.")
    city.json("run", "cancel", city.json("run", "show", left["runs"][0])["continued_by"])


def decide_about_plans(city: GoldenCity) -> None:
    words = ("--prompt", "Light the lamps.", "--preset", "claude", "--mode", "full_access", "--approve", "plan")
    city.json("automation", "create", "planned", "--manual", *words)

    def waits(run: str) -> str:
        """The inbox item of its plan, once that is there and its program has ended."""
        until(lambda: city.json("run", "show", run)["reason"] == "plan")
        city.release(run)
        found: str = until(lambda: [one["id"] for one in city.json("inbox", "list") if run in one["runs"]])[0]
        return found

    def ended(run: str) -> None:
        until(lambda: city.json("run", "show", run)["ended_at"])
        city.release(run)

    first = city.json("automation", "run", "planned")["id"]
    city.record("inbox show", waits(first), case="of-a-plan")
    second = city.record("run amend", first, "The left one first.")["id"]
    waits(second)
    ended(city.record("run approve", second, "--text", "Mind the curtains.")["id"])
    third = city.json("automation", "run", "planned")["id"]
    city.record("inbox amend", waits(third), "The right one first.")
    fourth = city.json("run", "show", third)["continued_by"]
    city.record("inbox approve", waits(fourth))
    ended(city.json("run", "show", fourth)["continued_by"])
    for command in ("run reject", "inbox reject"):
        run = city.json("automation", "run", "planned")["id"]
        item = waits(run)
        city.record(command, run if command.startswith("run") else item, "--reason", "Too dear.")


def take_and_give(city: GoldenCity) -> None:
    run = city.fired("wait", until_events=WAITING)
    until(lambda: told_its_name(city.root / ".gc" / "lamp.db", run))
    city.record("run take", run)
    city.record("run give", run, "Go on.")
    until(lambda: city.json("run", "show", run)["session_id"])
    city.json("run", "cancel", run)
    city.release(run)
    words = ("--preset", "claude", "--id", "begun-by-hand", "--directory", str(city.root))
    adopted = city.record("session adopt", "Light the other lamp.", *words)["id"]
    until(lambda: city.json("run", "show", adopted)["ended_at"])
    city.release(adopted)


def control_the_process(city: GoldenCity) -> None:
    city.record("restart", by_program=True)
    city.record("daemon restart", by_program=True)
    city.record("daemon stop", by_program=True)
    city.record("daemon start", by_program=True)
    city.record("daemon start", by_program=True, case="again")
    city.record("daemon logs", "-n", "1")
    (line,) = city.commands["daemon-logs"]["out"]["lines"]
    city.commands["daemon-logs"]["out"]["lines"] = [f"<line> {type(line).__name__}"]
    city.record("stop", by_program=True)
