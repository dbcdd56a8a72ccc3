"""A daemon killed at each named point of the agent pipeline, and at random: one session, one prompt, one end."""

import random
from collections import Counter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from automation_watch import all_ended, look, rows, wait_until
from test_automation_crashes import crash, define, start

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.sessions.processes.table import all_processes
from lamplighter.domain.acts import Act
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.crash import CrashPoint
from lamplighter.kit.ids import IdSource
from lamplighter.services import automations, firing
from lamplighter.services.rules import Rules
from lamplighter.store.place import open_direct, parse_place
from lamplighter.store.tx import Tx
from lamplighter.testing.processes import Children

POINTS = (
    CrashPoint.RUN_AFTER_ENRICHED,
    CrashPoint.RUN_BEFORE_SESSION,
    CrashPoint.SESSION_BEFORE_LAUNCH,
    CrashPoint.SESSION_AFTER_LAUNCH,
    CrashPoint.RUN_AFTER_SESSION,
    CrashPoint.RUN_AFTER_PROMPT,
    CrashPoint.COMPLETE_AFTER_COMMIT,
    CrashPoint.ARTIFACT_AFTER_WRITE,
    CrashPoint.SESSION_BEFORE_STOP,
)
KILLS = 60
RUNS = 180
LIVES = Path(__file__).with_name("daemon_lives.py")

# It reports over HTTP, and again until it is answered: the daemon may be dead just then, and comes back on its port.
AGENT = """
echo "$LAMP_RUN_ID" >> "$LAMP_CITY/prompts.log"
n=0
until curl -sf -o /dev/null --noproxy '*' -X POST "$LAMP_API_URL/api/v1/runs/$LAMP_RUN_ID/complete" \\
  -H "Authorization: Bearer $(cat "$LAMP_RUN_TOKEN_FILE")" \\
  -d '{"completion_id": "done", "outcome": "succeeded", "summary_markdown": "Lit."}'
do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
echo "$LAMP_RUN_ID" >> "$LAMP_CITY/answers.log"
"""
CITY = """
[providers.scripted]
command = "sh"
args = ["agent.sh"]

[api]
port = 0
"""
ONCE = '[automation]\ngate = "cooldown"\ninterval = "1h"\n\n[automation.agent]\nprompt = "Go."\npreset = "scripted"\n'


@pytest.fixture
def agents_city(city: Path) -> Path:
    (city / "agent.sh").write_text(AGENT, encoding="utf-8")
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(CITY)
    return city


def settled(tx: Tx) -> bool:
    """All has ended, and nothing that was to follow waits any more, save what is not due."""
    left = tx.db.row(
        "SELECT 1 AS found FROM outbox WHERE state IN ('pending', 'claimed') AND kind <> 'stop_session'", {}
    )
    open_sessions = tx.db.row("SELECT 1 AS found FROM sessions WHERE ended_at IS NULL", {})
    return all_ended(tx) and left is None and open_sessions is None


@pytest.mark.parametrize("point", POINTS)
def test_an_agent_run_is_started_once_and_ends_once(
    point: CrashPoint, agents_city: Path, environment: dict[str, str], processes: Children
) -> None:
    define(agents_city, "once", ONCE)
    crash(processes, agents_city, environment, point)
    start(processes, agents_city, environment)
    wait_until(agents_city, settled)
    (run,) = look(agents_city, lambda tx: tx.runs.page())
    assert (run.run.state, run.run.summary) == ("succeeded", "Lit.")
    assert (agents_city / "prompts.log").read_text().split() == [run.run.id]
    events = Counter(event.type for event in look(agents_city, lambda tx: tx.runs.events(run.run.id)))
    assert (events["session_created"], events["prompt_sent"], events["completion"]) == (1, 1, 1)
    assert [row["status"] for row in rows(agents_city, "SELECT status FROM trigger_events")] == ["completed"]
    assert len(look(agents_city, lambda tx: tx.artifacts.of(run.run.id))) == 2
    assert leftovers(agents_city) == []


def leftovers(city: Path) -> list[int]:
    mark = f"LAMP_CITY={city}".encode()
    found = []
    for pid in all_processes():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environ.split(b"\0") and b"LAMP_RUN_ID=" in environ:
            found.append(pid)
    return found


def fire(city: Path, count: int, first: int) -> None:
    """Manual runs of as many automations, so that none waits for another."""
    paths = CityPaths(city)
    clock = SystemClock()
    ids, rules = IdSource(clock), Rules(ZoneInfo("UTC"))
    store = open_direct(parse_place("", paths.runtime), paths.city_id())
    try:
        for number in range(first, first + count):
            body = {"name": f"load{number}", "gate": "manual", "agent": {"prompt": "Go.", "preset": "scripted"}}
            act = Act("load", clock.now())
            store.transact(automations.create, body, rules=rules, ids=ids, act=act)
            store.transact(firing.run_by_hand, firing.ByHand(f"load{number}"), rules=rules, ids=ids, act=act)
    finally:
        store.close()


@pytest.mark.timeout(300)
def test_killed_again_and_again_every_agent_run_ends_and_none_is_prompted_twice(
    agents_city: Path, processes: Children
) -> None:
    chance = random.Random(5268)
    daemon = processes.script(LIVES, str(agents_city))
    for kill in range(KILLS):
        daemon.say("live")
        assert daemon.line() == "lit"
        fire(agents_city, RUNS // KILLS, kill * (RUNS // KILLS))
        goal = look(agents_city, lambda tx: tx.events.head()) + chance.randrange(4)
        wait_until(agents_city, lambda tx, goal=goal: tx.events.head() >= goal or all_ended(tx))
        daemon.say("kill")
        assert daemon.line() == "dead"
    daemon.say("live")
    assert daemon.line() == "lit"
    wait_until(agents_city, settled)
    daemon.say("stop")
    assert daemon.line() == "0"
    states = rows(agents_city, "SELECT state, count(*) AS count FROM runs GROUP BY state")
    assert states == [{"state": "succeeded", "count": RUNS}]
    prompts = Counter((agents_city / "prompts.log").read_text().split())
    assert (len(prompts), set(prompts.values())) == (RUNS, {1})
    sessions = rows(agents_city, "SELECT run_id, count(*) AS count FROM sessions GROUP BY run_id")
    assert {row["count"] for row in sessions} == {1}
    assert {row["status"] for row in rows(agents_city, "SELECT DISTINCT status FROM trigger_events")} == {"completed"}
    assert leftovers(agents_city) == []
