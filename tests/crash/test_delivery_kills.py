"""SIGKILL while deliveries come in: each distinct one fires exactly one run, on both databases."""

import json
import os
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from automation_watch import wait_until, write
from crew import JobPool
from delivery_load import FIRED, Sender, all_judged, automate, drill, runs_kept, titles_fired
from lamp_program import here

from lamplighter.store.tx import Tx
from lamplighter.testing.github_server import serving
from lamplighter.testing.processes import Children

COUNT = 100
WITHIN = 120


def furnish(city: Path, url: str) -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[api]\nport = 0\n\n[store]\nurl = "{url}"\n')


@pytest.fixture(params=["sqlite", "postgres"])
def on(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return found


@pytest.mark.timeout(900)
def test_repeated_and_reordered_deliveries_fire_once_each_over_two_kills(
    city: Path, on: str, processes: Children
) -> None:
    furnish(city, on)
    crew = JobPool.hired(processes)
    ids = drill(city, crew, COUNT)
    wait_until(city, all_judged, within=WITHIN)
    assert crew.stop("one") == 0
    assert Counter(titles_fired(city)) == Counter(ids)
    assert runs_kept(city) == COUNT


@pytest.mark.timeout(900)
def test_what_is_gathered_over_a_kill_fires_once_with_all_of_it(city: Path, on: str, processes: Children) -> None:
    furnish(city, on)
    crew, sender = JobPool.hired(processes), Sender(city)
    automate(city, 'gather = "3s"\ngather_most = "30s"\n')
    crew.live("one", city, "up")
    crew.up("one")
    for number in range(3):
        sender.send(f"before-{number}")
    crew.kill("one")
    crew.live("one", city, "up")
    crew.up("one")
    sender.send("after")

    def fired(tx: Tx) -> bool:
        return bool(tx.runs.page(limit=1)) and all_judged(tx)

    wait_until(city, fired, within=WITHIN)
    assert crew.stop("one") == 0
    told = [json.loads(line) for line in (city / FIRED).read_text().splitlines()]
    gathered = [one["payload"]["issue"]["title"] for line in told for one in line["events"]]
    assert Counter(gathered) == Counter(["before-0", "before-1", "before-2", "after"])
    assert len(told) <= 2, "one run; two if the kill took longer than it may be quiet"


@pytest.mark.timeout(120)
def test_a_running_city_asks_for_a_new_connection_at_once_and_a_killed_one_goes_on_where_it_was(
    city: Path, processes: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    gh = city / "bin/gh"
    gh.parent.mkdir()
    gh.write_text("#!/bin/sh\necho gh-token\n")
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    furnish(city, "")
    crew = JobPool.hired(processes)
    crew.live("one", city, "up")
    crew.up("one")
    with serving() as hub:
        asked = ("--provider", "github", "--poll", "--repo", "acme/web", "--api-url", hub.url)
        assert here("connection", "create", "gh", *asked, "--city", str(city)).code == 0
        wait_until(city, answered, within=WITHIN)
        crew.kill("one")
        hub.open("issues", "While it was dead")
        automate(city)
        write(city, due_now)
        crew.live("one", city, "up")
        crew.up("one")
        wait_until(city, lambda tx: bool(tx.runs.page(limit=1)) and all_judged(tx), within=WITHIN)
        assert crew.stop("one") == 0
    assert titles_fired(city) == ["While it was dead"]


def answered(tx: Tx) -> bool:
    return any("failures" in row.state and not row.problem for row in tx.polls.all())


def due_now(tx: Tx) -> None:
    (row,) = tx.polls.all()
    tx.polls.save(replace(row, next_at=row.next_at - timedelta(hours=1)))
