"""What a run's token may ask of the services themselves, on a real store: nothing but the end of its own run."""

from collections.abc import AsyncIterator, Awaitable, Callable
from zoneinfo import ZoneInfo

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Caller, Forbidden, Verb, of_run, owner
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.city.model import Workspace
from lamplighter.domain.runs.completion import Completion, parse
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.services.automations import editing
from lamplighter.services.automations.tools import ToolAutomations
from lamplighter.services.configurations import Configurations
from lamplighter.services.rules import Rules
from lamplighter.services.runs.completing import Completions, DirectCompletions
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import open_store

DEFINITION = {"name": "n", "exec": "true", "gate": "manual"}
OF_READING = Caller("reader", frozenset({Verb.READ}))


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
    assert not city.get(run).run.ended
    assert not {"completion", "late_completion"} & {event.type for event in city.read(lambda tx: tx.runs.events(run))}


@pytest.mark.parametrize("caller", [of_run, lambda run: owner("agent", run), lambda _: OF_READING])
async def test_nobody_completes_a_run_that_is_not_his(
    city: City, store: Store, two: tuple[str, str], caller: Callable[[str], Caller]
) -> None:
    mine, other = two
    with pytest.raises(Forbidden):
        await Completions(store, city.clock, city.ids).complete(completion_of(other), caller=caller(mine))
    with pytest.raises(Forbidden):
        DirectCompletions(city.store, city.clock, city.ids).complete(completion_of(other), caller=caller(mine))
    as_it_was(city, other)


async def test_a_run_s_token_reads_no_run(city: City, store: Store, two: tuple[str, str]) -> None:
    service = Completions(store, city.clock, city.ids)
    with pytest.raises(Forbidden):
        await service.run(two[0], caller=of_run(two[0]))
    assert (await service.run(two[0], caller=OF_READING))["id"] == two[0]


async def test_a_run_s_token_neither_sees_nor_makes_automations(city: City, store: Store, two: tuple[str, str]) -> None:
    service = ToolAutomations(store, city.clock, city.ids, lambda: Rules(ZoneInfo("UTC")))
    with pytest.raises(Forbidden):
        await service.automations(caller=of_run(two[0]))
    for caller in (of_run(two[0]), OF_READING):
        with pytest.raises(Forbidden):
            await service.create(DEFINITION, caller=caller)
    assert [row.scoped_name for row in city.read(editing.every)] == ["sweep"]


async def test_what_a_tool_makes_waits_for_a_person_whatever_it_says(city: City, store: Store) -> None:
    service = ToolAutomations(store, city.clock, city.ids, lambda: Rules(ZoneInfo("UTC")))
    made = await service.create(DEFINITION | {"enabled": True}, caller=owner("agent"))
    assert (made["enabled"], city.row("n").enabled) == (False, False)


async def test_a_run_s_token_reaches_no_configuration(city: City, store: Store, two: tuple[str, str]) -> None:
    service = Configurations(store, city.clock, lambda: CityConfig(workspace=Workspace(name="test")))
    mine, body = of_run(two[0]), {"name": "site", "description": "The site."}
    refused: list[Callable[[], Awaitable[object]]] = [
        lambda: service.every(caller=mine),
        lambda: service.show("site", caller=mine),
        lambda: service.create(body, caller=mine),
        lambda: service.create(body, caller=OF_READING),
        lambda: service.edit("site", {"model": "big"}, caller=mine),
        lambda: service.delete("site", caller=mine),
    ]
    for ask in refused:
        with pytest.raises(Forbidden):
            await ask()
    await service.create(body, caller=owner("ada"))
    for ask in refused[2:]:
        with pytest.raises(Forbidden):
            await ask()
    assert [row.name for row in city.read(stored)] == ["site"]


def stored(tx: Tx) -> list[object]:
    return list(tx.configurations.all())
