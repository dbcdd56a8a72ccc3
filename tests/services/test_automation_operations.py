"""Automations as operations: pages, conditions checked on the host, and what each asks of its actor."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Forbidden, of_run, owner
from lamplighter.kit.errors import UsageError
from lamplighter.services import table
from lamplighter.services.automations import operations, queries
from lamplighter.services.automations.firing import AutomationUnknown
from lamplighter.services.runs.logs import WATCH_RUN, WatchRun
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store
from lamplighter.store.url import open_store

ME = owner("ada")
MINE = [
    *(
        name
        for name in table.TABLE
        if name.startswith("automation.") and name not in {"automation.notes", "automation.cursor"}
    ),
    "city.pause",
    "city.simulate",
]
"""A run keeps the notes and the cursor of its own automation and of no other (tests/daemon)."""


@pytest.fixture
async def store(city: City) -> AsyncIterator[Store]:
    opened = open_store(city.place, CITY, Wakes())
    yield opened
    await opened.close()


def names(found: list[Any]) -> list[str]:
    return [one.scoped_name for one in found]


def test_the_list_comes_in_pages_in_order_of_names(city: City) -> None:
    for name in ("c", "a", "b"):
        city.add(name)
    city.add("a", rig="web")
    city.add("z", rig="web")
    first = city.do(queries.LIST, queries.ListAutomations(limit=2))
    second = city.do(queries.LIST, queries.ListAutomations(after=first[-1].scoped_name, limit=2))
    assert (names(first), names(second)) == (["a", "a:rig:web"], ["b", "c"])
    assert names(city.do(queries.LIST, queries.ListAutomations(rig="web", limit=1))) == ["a:rig:web"]
    assert names(city.do(queries.LIST, queries.ListAutomations(rig="web", after="a:rig:web"))) == ["z:rig:web"]


def test_a_configuration_in_use_is_found_beyond_the_first_page(city: City) -> None:
    from lamplighter.services.configurations import users_of

    for number in range(501):
        city.add(f"n{number:03}")
    city.add("z", agent={"prompt": "Go.", "configuration": "site"})
    assert city.read(users_of, "site") == ["z"]
    assert len(city.do(queries.LIST, queries.ListAutomations())) == 502


async def test_conditions_are_checked_on_the_host_and_each_answer_is_of_its_own_trigger(
    city: City, store: Store
) -> None:
    conditions = [{"id": "yes", "gate": "condition", "check": "yes"}, {"id": "no", "gate": "condition", "check": "no"}]
    city.add("asked", triggers=conditions)
    city.add("later", gate="schedule", cadence="daily", hour=3)
    city.add("other", gate="condition", check="other")
    here = city.operations(store, {"yes": 0, "no": 4, "other": 0})
    found = await here.do(queries.CHECK, queries.CheckAutomations(), ME, surface="api")
    assert {(one.scoped_name, one.trigger): one.due for one in found} == {
        ("asked", "yes"): True, ("asked", "no"): False, ("later", "schedule"): False, ("other", "condition"): True,
    }  # fmt: skip
    (reason,) = [one.reason for one in found if one.trigger == "no"]
    assert "exit code 4" in reason
    told = await here.do(queries.EXPLAIN, queries.ExplainAutomation("asked"), ME, surface="api")
    assert "exit code 4" in " ".join(told.sentences)


async def test_a_check_of_one_asks_no_other_condition(city: City, store: Store) -> None:
    city.add("asked", gate="condition", check="yes", rig="web")
    city.add("other", gate="condition", check="other")
    here = city.operations(store, {"yes": 0})
    (found,) = await here.do(queries.CHECK, queries.CheckAutomations("asked", "web"), ME, surface="api")
    assert (found.scoped_name, found.due) == ("asked:rig:web", True)
    with pytest.raises(AutomationUnknown):
        await here.do(queries.CHECK, queries.CheckAutomations("nobody"), ME, surface="api")


@pytest.mark.parametrize("name", MINE)
async def test_a_run_s_token_may_do_none_of_it(city: City, store: Store, name: str) -> None:
    city.add("sweep", agent={"prompt": "Light the lamps."})
    mine, operation = of_run(city.run_now("sweep").run), table.find(name)
    given = {"name": "sweep", "automation": "sweep", "toml": "x = 1", "exec": "true"}
    ask = operation.asked({key: given[key] for key in required(operation.request)})
    with pytest.raises(Forbidden):
        await city.operations(store).do(operation, ask, mine, surface="api")


def required(request: type[Any]) -> list[str]:
    from lamplighter.kit.shapes import schema_of

    found: list[str] = schema_of(request)["required"]
    return found


@pytest.mark.parametrize(("surface", "source", "enabled"), [("cli", "cli", True), ("api", "api", True),
                                                            ("tool", "agent", False)])  # fmt: skip
def test_what_is_created_tells_where_it_came_from_and_only_a_person_enables_what_an_agent_proposed(
    city: City, surface: str, source: str, enabled: bool  # noqa: FBT001
) -> None:  # fmt: skip
    body = {"name": "n", "exec": "true", "gate": "manual", "enabled": True}
    made = city.do(operations.CREATE, operations.CreateAutomation(body), surface=surface)
    assert (made.source, made.enabled, city.row("n").enabled) == (source, enabled, enabled)


def test_a_template_is_disabled_on_every_surface_and_takes_nothing_else(city: City) -> None:
    body = {"name": "mine", "rig": "web"}
    made = city.do(operations.CREATE, operations.CreateAutomation(body, "issue-triage"), surface="tool")
    assert (made.scoped_name, made.enabled, made.source) == ("mine:rig:web", False, "template:issue-triage")
    with pytest.raises(UsageError, match="`enabled` is none of them"):
        city.do(operations.CREATE, operations.CreateAutomation({"name": "b", "enabled": True}, "issue-triage"))


def test_a_run_by_hand_with_the_same_key_is_made_once(city: City) -> None:
    city.add("tidy", overlap="allow")
    ask = operations.RunAutomation("tidy", payload={"branch": "main"}, key="k")
    first, second = city.do(operations.RUN_AUTOMATION, ask), city.do(operations.RUN_AUTOMATION, ask)
    assert first.id == second.id
    assert (first.automation, first.trigger.kind) == ("tidy", "manual")


def test_a_pause_is_told_once(city: City) -> None:
    city.run(lambda tx: tx.cities.ensure("town", city.clock.now()))
    changed = [city.do(operations.PAUSE, operations.PauseCity()).changed for _ in range(2)]
    assert (changed, len(city.events("city.paused"))) == ([True, False], 1)


async def test_watching_a_run_shows_each_event_once_and_ends_with_the_run(city: City, store: Store) -> None:
    city.add("tidy")
    run = city.run_now("tidy").run
    stream: Any = await city.operations(store).do(WATCH_RUN, WatchRun(run), ME, surface="api")
    seen: list[str] = []

    async def watch() -> None:
        seen.extend([event.type async for event in stream])

    watching = asyncio.create_task(watch())
    await city.clock.sleepers()
    city.finish(run)
    city.advance(seconds=1)
    await watching
    assert seen == [event["type"] for event in city.shown(run)["events"]]
    assert len(seen) > 2
