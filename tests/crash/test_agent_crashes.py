"""A daemon killed at each named point of the agent pipeline: one session, one prompt, one end."""

from collections import Counter
from pathlib import Path

import pytest
from automation_watch import look, rows, wait_until
from pipeline_load import furnish, leftovers, quiet
from test_automation_crashes import crash, define, start

from lamplighter.kit.crash import CrashPoint
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
ONCE = '[automation]\ngate = "cooldown"\ninterval = "1h"\n\n[automation.agent]\nprompt = "Go."\npreset = "scripted"\n'


@pytest.fixture
def agents_city(city: Path) -> Path:
    furnish(city)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n[api]\nport = 0\n")
    return city


@pytest.mark.parametrize("point", POINTS)
def test_an_agent_run_is_started_once_and_ends_once(
    point: CrashPoint, agents_city: Path, environment: dict[str, str], processes: Children
) -> None:
    define(agents_city, "once", ONCE)
    crash(processes, agents_city, environment, point)
    start(processes, agents_city, environment)
    wait_until(agents_city, quiet)
    (run,) = look(agents_city, lambda tx: tx.runs.page())
    assert (run.state, run.summary) == ("succeeded", "Lit.")
    assert (agents_city / "prompts.log").read_text().split() == [run.id]
    events = Counter(event.type for event in look(agents_city, lambda tx: tx.runs.events(run.id)))
    assert (events["session_created"], events["prompt_sent"], events["completion"]) == (1, 1, 1)
    assert [row["status"] for row in rows(agents_city, "SELECT status FROM trigger_events")] == ["completed"]
    assert len(look(agents_city, lambda tx: tx.artifacts.of(run.id))) == 2
    assert leftovers(agents_city) == []
