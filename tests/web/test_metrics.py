"""The numbers for a monitoring program."""

import re
from pathlib import Path

import httpx2
import pytest
from served import Served

from lamplighter.services import measures

DEPLOY = Path(__file__).parents[2] / "deploy"


async def numbers(city: Served) -> dict[str, float]:
    found = await city.call("GET", "/metrics", headers=city.owner)
    assert (found.status_code, found.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = [line for line in found.text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"lamp_[a-z_]+(\{.*\})? [0-9.e+-]+", line) for line in lines), found.text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


async def test_runs_are_counted_by_what_became_of_them(city: Served) -> None:
    before = await numbers(city)
    assert before['lamp_runs{state="running"}'] == 2
    assert before['lamp_runs{state="queued"}'] == 0
    assert (await city.complete(city.of_run())).status_code == 200
    assert (await city.call("POST", f"/api/v1/runs/{city.other}/cancel", headers=city.owner)).status_code == 200
    after = await numbers(city)
    assert after['lamp_runs{state="running"}'] == 0
    assert sum(after[key] for key in after if key.startswith('lamp_runs_total{outcome="succeeded"')) == 1
    assert after["lamp_events_total"] > before["lamp_events_total"]
    again = await numbers(city)
    assert {key: again[key] for key in again if key.startswith("lamp_runs_total")} == {
        key: after[key] for key in after if key.startswith("lamp_runs_total")
    }


async def test_requests_are_timed_by_route_and_not_by_path(city: Served) -> None:
    for run in (city.run, "run_9"):
        await city.call("GET", f"/api/v1/runs/{run}", headers=city.owner)
    found = await numbers(city)
    labels = 'method="GET",route="/runs/{run}",status='
    text = (await city.call("GET", "/metrics", headers=city.owner)).text
    assert f'lamp_http_request_seconds_count{{{labels}"200"}} 1' in text
    assert f'lamp_http_request_seconds_count{{{labels}"404"}} 1' in text
    assert city.run not in text
    assert found["lamp_stream_clients"] == 0


async def test_open_streams_are_counted(city: Served) -> None:
    async with (
        httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=city.owner, timeout=180) as client,
        client.stream("GET", "/api/v1/events/tail?after=0") as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        assert (await numbers(city))["lamp_stream_clients"] == 1


async def test_only_those_who_may_read_are_told(city: Served) -> None:
    assert (await city.call("GET", "/metrics")).status_code == 401
    assert (await city.call("GET", "/metrics", headers=city.of_run())).status_code == 403


def test_reasons_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MOST_REASONS", 2)
    taking = measures.Measures(None)  # type: ignore[arg-type]  # nothing is read
    assert [taking._reason(one) for one in ("a", "b", "c", "a")] == ["a", "b", "other", "a"]


async def test_what_waits_for_a_person_and_the_agents_are_counted(city: Served) -> None:
    found = await numbers(city)
    assert found["lamp_inbox_open"] == 0
    assert found['lamp_agents{state="running"}'] == 0
    await city.complete(city.of_run(), outcome="needs_human", summary_markdown="Which lamp?")
    assert (await numbers(city))["lamp_inbox_open"] == 1


@pytest.mark.parametrize("name", ["prometheus-alerts.yml", "grafana-dashboard.json"])
async def test_dashboard_and_alerts_use_only_numbers_that_are_served(city: Served, name: str) -> None:
    text = (await city.call("GET", "/metrics", headers=city.owner)).text
    served = set(re.findall(r"^# TYPE (lamp_\w+)", text, re.MULTILINE))
    used = set(re.findall(r"\blamp_\w+", (DEPLOY / name).read_text(encoding="utf-8")))
    assert {re.sub(r"_(bucket|count|sum)$", "", one) for one in used} <= served
    assert len(used) > 5
