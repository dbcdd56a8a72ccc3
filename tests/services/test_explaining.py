"""Why runs and agents are as they are, in sentences; and that each sentence is true of what is on record."""

from datetime import UTC, datetime, timedelta

from automation_city import City

from lamplighter.services.agents.explaining import sentences_of as of_agent
from lamplighter.services.agents.views import AgentDetail, StartView
from lamplighter.services.automations import editing
from lamplighter.services.runs.explaining import EXPLAIN, ExplainRun

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def why(city: City, run: str) -> str:
    return "\n".join(city.do(EXPLAIN, ExplainRun(run)).sentences)


def test_a_run_tells_what_set_it_off_and_what_it_waits_for(city: City) -> None:
    city.add("nightly")
    run = str(city.run_now("nightly").run)
    told = why(city, run)
    assert "It was started by hand" in told
    assert "No worker has taken it up yet" in told
    city.advance(minutes=5)
    assert "it has waited for 5 min" in why(city, run)
    city.run(editing.pause, ctx=city.context)
    assert "It waits: the city is paused; `lamp resume` lets it go on." in why(city, run)
    city.run(editing.resume, ctx=city.context)
    city.start(run)
    assert "paused" not in why(city, run)
    city.finish(run, "failed")
    told = why(city, run)
    assert "It has failed" in told
    assert "No worker" not in told


def test_an_agent_tells_how_it_is_and_what_comes_next() -> None:
    quarantined = AgentDetail(
        "archivist", state="quarantined", reason="it died 5 times", starts_in_window=5, exit_status=4,
        quarantined_until=NOW + timedelta(minutes=40),
        starts=(StartView(None, NOW - timedelta(minutes=2), "crash recovery", "no such file", True, None, None, None),),
    )  # fmt: skip
    assert of_agent(quarantined, NOW) == [
        "It is quarantined: it died 5 times.",
        "Its program ended with status 4.",
        "It could not be started: no such file (crash recovery).",
        "5 recent starts count towards its quarantine.",
        "The patrol starts it again in 40 min, or as soon as its crashes are cleared.",
    ]
    running = AgentDetail("mayor", state="running", since=NOW - timedelta(hours=3), attached=True)
    assert of_agent(running, NOW) == [
        "It has been running for 3 h.",
        "Somebody is attached to it, so the patrol leaves it alone.",
        "The patrol leaves it alone as long as its program lives and city.toml does not change it.",
    ]
