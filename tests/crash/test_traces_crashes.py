"""A daemon killed around the reporting of runs as spans: none is lost, and what is sent twice is the same."""

from pathlib import Path

import pytest
from automation_watch import all_ended, look, wait_until
from test_automation_crashes import crash, define, start

from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.collector import collecting
from lamplighter.testing.processes import Children

EXEC = '[automation]\nexec = "true"\ngate = "cooldown"\ninterval = "1h"\n'


@pytest.fixture(params=["sqlite", "postgres"])
def on(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return found


@pytest.mark.parametrize("point", [CrashPoint.RUN_AFTER_START, CrashPoint.RUN_AFTER_END, CrashPoint.TRACES_AFTER_SEND])
def test_each_run_has_its_spans_once(
    point: CrashPoint, on: str, city: Path, environment: dict[str, str], processes: Children
) -> None:
    if on:
        with (city / "city.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[store]\nurl = "{on}"\n')
    define(city, "once", EXEC)
    with collecting() as collector:
        asks = environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        crash(processes, city, asks, point)
        sent = collector.spans()
        assert bool(sent) is (point is CrashPoint.TRACES_AFTER_SEND)
        start(processes, city, asks)
        wait_until(city, all_ended)
        (run,) = look(city, lambda tx: tx.runs.page())
        end = look(
            city, lambda tx: max(event.seq for event in tx.events.after(0) if event.type == "automation.completed")
        )
        wait_until(city, lambda tx: (tx.cities.traced() or 0) >= end)
        assert sorted(one.name for one in collector.latest().values()) == ["RUN once", "running"]
        told = [one for one in collector.spans() if one.name == "RUN once"]
        assert {one.attributes["cicd.pipeline.run.id"] for one in told} == {run.id}
        assert len(told) == 1 + bool(sent)
        assert len({(one.trace, one.span, one.begins, one.ends) for one in told}) == 1
