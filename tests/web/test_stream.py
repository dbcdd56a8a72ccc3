"""The stream: topics for pages, events for programs."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from served import Served

from lamplighter.domain.events import Event
from lamplighter.kit.limits import TimeLimit
from lamplighter.web.stream import EVERYTHING, MOST_TOPICS, Listener, Signals, topics_of

PATIENCE = 120.0


async def parts(answer: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    """The messages of a stream, each by its fields."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line and not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
        elif not line and fields:
            yield fields
            fields = {}


def emit(city: Served, event_type: str, **more: Any) -> None:
    city.opened.store.transact(lambda tx: tx.events.append(city.opened.context().event(event_type, **more)))


async def test_a_change_is_told_as_topics(city: Served) -> None:
    async with (
        httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=PATIENCE) as client,
        client.stream("GET", "/api/v1/stream", headers=city.owner) as answer,
        TimeLimit(PATIENCE),
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = parts(answer)
        assert (await anext(told))["event"] == "hello"
        done = await city.complete(city.of_run())
        assert done.status_code == 200
        topics: set[str] = set()
        while f"run:{city.run}" not in topics:
            message = await anext(told)
            assert message["event"] == "changed"
            topics |= set(json.loads(message["data"])["topics"])
        assert {"events", "runs", "automations", "automation:light"} <= topics


async def test_programs_get_events_from_a_cursor_with_nothing_lost(city: Served) -> None:
    for number in range(3):
        emit(city, "deploy.finished", payload={"n": number})
    first = next(event for event in city.events() if event.type == "deploy.finished")
    async with (
        httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=PATIENCE) as client,
        client.stream("GET", f"/api/v1/stream?content=events&after={first.seq}", headers=city.owner) as answer,
        TimeLimit(PATIENCE),
    ):
        told = parts(answer)
        assert await anext(told) == {"retry": "2000"}
        found = [await anext(told) for _ in range(2)]
        emit(city, "deploy.finished", payload={"n": 3})
        found.append(await anext(told))
    assert [json.loads(one["data"])["payload"]["n"] for one in found] == [1, 2, 3]
    assert [int(one["id"]) > first.seq for one in found] == [True] * 3
    assert {one["event"] for one in found} == {"deploy.finished"}


async def test_what_the_browser_remembers_counts_before_the_address(city: Served) -> None:
    for number in range(2):
        emit(city, "deploy.finished", payload={"n": number})
    *_, before, _last = [event.seq for event in city.events()]
    async with (
        httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=PATIENCE) as client,
        client.stream(
            "GET", "/api/v1/stream?content=events&after=0", headers={**city.owner, "Last-Event-ID": str(before)}
        ) as answer,
        TimeLimit(PATIENCE),
    ):
        told = parts(answer)
        await anext(told)
        assert int((await anext(told))["id"]) == before + 1


@pytest.mark.parametrize("query", ["content=everything", "content=events&after=x", "content=events&after=-1"])
async def test_a_wrong_question_is_told(city: Served, query: str) -> None:
    assert (await city.call("GET", f"/api/v1/stream?{query}", headers=city.owner)).status_code == 400


async def test_it_needs_a_right(city: Served) -> None:
    assert (await city.call("GET", "/api/v1/stream")).status_code == 401
    assert (await city.call("GET", "/api/v1/stream", headers=city.of_run())).status_code == 403


def test_topics_name_what_an_event_is_about() -> None:
    def about(event_type: str, subject: str | None = None, run: str | None = None) -> set[str]:
        return topics_of(Event(1, event_type, None, "ada", subject, None, None, run))  # type: ignore[arg-type]

    assert about("deploy.finished", "web") == {"events"}
    assert about("agent.crashed", "mayor") == {"events", "agents", "inbox", "agent:mayor"}
    fired = about("automation.fired", "light", "run_1")
    assert fired == {"events", "automations", "runs", "inbox", "automation:light", "run:run_1"}


def test_a_page_that_does_not_listen_costs_no_more_than_a_set() -> None:
    listener = Listener()
    for number in range(10_000):
        listener.tell({f"run:{number}"})
        assert len(listener.waiting) <= MOST_TOPICS
    assert listener.take() == {EVERYTHING} or EVERYTHING in listener.waiting
    assert listener.take() == set()


async def test_nothing_listens_to_the_store_while_no_page_is_open(city: Served) -> None:
    signals = Signals(city.operations.host, city.operations.stopping)
    before = len(asyncio.all_tasks())
    one, other = signals.join(), signals.join()
    during = len(asyncio.all_tasks())
    signals.leave(one)
    assert len(asyncio.all_tasks()) == during
    signals.leave(other)
    ended = [task for task in asyncio.all_tasks() if task.get_name().startswith("signals")]
    assert len(ended) == during - before
    assert all(task.cancelling() for task in ended)
