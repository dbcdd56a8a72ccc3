"""What a run's token may ask of the services themselves, on a real store: nothing but the end of its own run."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Actor, Forbidden, Role, of_run, owner
from lamplighter.domain.runs.completion import Completion, parse
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.kit.records import changed
from lamplighter.services import configurations
from lamplighter.services.automations.operations import CREATE, CreateAutomation
from lamplighter.services.automations.queries import LIST, ListAutomations
from lamplighter.services.operation import Operation, judged
from lamplighter.services.runs.operations import COMPLETE_RUN
from lamplighter.services.runs.queries import SHOW_RUN, ShowRun
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import open_store

DEFINITION = {"name": "n", "exec": "true", "gate": "manual"}
OF_READING = Actor("reader", Role.MEMBER)


@pytest.fixture
async def store(city: City) -> AsyncIterator[Store]:
    opened = open_store(city.place, CITY, Wakes())
    yield opened
    await opened.close()


@pytest.fixture
def two(city: City) -> tuple[str, str]:
    """Two runs of an agent."""
    city.add("sweep", agent={"prompt": "Light the lamps."}, overlap="allow")
    return city.run_now("sweep").run, city.run_now("sweep").run


def completion_of(run: str) -> Completion:
    return parse({"run_id": run, "completion_id": completion_id(run), "outcome": "succeeded"})


def as_it_was(city: City, run: str) -> None:
    assert not city.get(run).ended
    assert not {"completion", "late_completion"} & {event.type for event in city.read(lambda tx: tx.runs.events(run))}


@pytest.mark.parametrize("actor", [of_run, lambda run: owner("agent", run), lambda _: OF_READING])
async def test_nobody_completes_a_run_that_is_not_his(
    city: City, store: Store, two: tuple[str, str], actor: Callable[[str], Actor]
) -> None:
    mine, other = two
    with pytest.raises(Forbidden):
        await city.operations(store).do(COMPLETE_RUN, completion_of(other), actor(mine), surface="api")
    with pytest.raises(Forbidden):
        city.run(judged, COMPLETE_RUN, completion_of(other), changed(city.context, actor=actor(mine)))
    as_it_was(city, other)


async def test_a_run_s_token_reads_no_run(city: City, store: Store, two: tuple[str, str]) -> None:
    operations = city.operations(store)
    with pytest.raises(Forbidden):
        await operations.do(SHOW_RUN, ShowRun(two[0]), of_run(two[0]), surface="api")
    assert (await operations.do(SHOW_RUN, ShowRun(two[0]), OF_READING, surface="api")).id == two[0]


async def test_a_run_s_token_neither_sees_nor_makes_automations(city: City, store: Store, two: tuple[str, str]) -> None:
    operations, mine = city.operations(store), of_run(two[0])
    refused: list[tuple[Operation[Any, Any], Any, Actor]] = [
        (LIST, ListAutomations(), mine),
        (CREATE, CreateAutomation(DEFINITION), mine),
        (CREATE, CreateAutomation(DEFINITION), OF_READING),
    ]
    for operation, ask, actor in refused:
        with pytest.raises(Forbidden):
            await operations.do(operation, ask, actor, surface="tool")
    assert [one.scoped_name for one in city.do(LIST, ListAutomations())] == ["sweep"]


async def test_what_a_tool_makes_waits_for_a_person_whatever_it_says(city: City, store: Store) -> None:
    ask = CreateAutomation(DEFINITION | {"enabled": True})
    made = await city.operations(store).do(CREATE, ask, owner("agent"), surface="tool")
    assert (made.enabled, city.row("n").enabled) == (False, False)


async def test_a_run_s_token_reaches_no_configuration(city: City, store: Store, two: tuple[str, str]) -> None:
    operations, mine, body = city.operations(store), of_run(two[0]), {"name": "site", "description": "The site."}
    make = (configurations.CREATE, configurations.CreateConfiguration(body))
    refused: list[tuple[Operation[Any, Any], Any, Actor]] = [
        (configurations.LIST, configurations.ListConfigurations(), mine),
        (configurations.SHOW, configurations.ShowConfiguration("site"), mine),
        (*make, mine),
        (*make, OF_READING),
        (configurations.EDIT, configurations.EditConfiguration("site", {"model": "big"}), mine),
        (configurations.DELETE, configurations.DeleteConfiguration("site"), mine),
    ]
    for operation, ask, actor in refused:
        with pytest.raises(Forbidden):
            await operations.do(operation, ask, actor, surface="api")
    await operations.do(*make, owner("ada"), surface="api")
    for operation, ask, actor in refused[2:]:
        with pytest.raises(Forbidden):
            await operations.do(operation, ask, actor, surface="api")
    assert [row.name for row in city.read(stored)] == ["site"]


def stored(tx: Tx) -> list[object]:
    return list(tx.configurations.all())
