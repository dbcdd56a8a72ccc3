"""The work on an agent's hook and its instructions, as an agent asks for them from inside its session."""

from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import owner
from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.city.model import Agent, Pool, Rig, Workspace
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.kit.errors import NotFound
from lamplighter.services import hooks
from lamplighter.services.beads import changes
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.url import open_store

MAYOR = Agent(name="mayor")
CONFIG = CityConfig(
    workspace=Workspace(name="town"),
    agents=(MAYOR, Agent(name="coder", dir="web", pool=Pool(max=3)), Agent(name="own", work_query="echo mine")),
    rigs=(Rig(name="web", path="web"),),
)


@pytest.fixture
async def host(city: City) -> AsyncIterator[Any]:
    store = open_store(city.place, CITY, Wakes())

    async def queried(agent: Agent, name: str) -> str:
        return f"{agent.work_query} for {name}"

    yield SimpleNamespace(
        store=store, outside_beads=lambda: None, work_query=queried, prompt=lambda _agent, name: f"Be {name}."
    )
    await store.close()


async def hooked(city: City, host: Any, agent: str | None = None, *, own: str | None = None, **changed: Any) -> Any:
    ask = CityOperations(host, city.clock, city.ids, lambda: Configured(replace(CONFIG, **changed), city.rules))
    return await ask.do(hooks.HOOK, hooks.ShowHook(agent, own), owner("mayor"), surface="cli")


async def prompted(city: City, host: Any, agent: str | None = None, *, own: str | None = None, **changed: Any) -> str:
    ask = CityOperations(host, city.clock, city.ids, lambda: Configured(replace(CONFIG, **changed), city.rules))
    found = await ask.do(hooks.PROMPT, hooks.ShowPrompt(agent, own), owner("mayor"), surface="cli")
    return str(found.prompt)


def bead(city: City, title: str, **keys: Any) -> str:
    city.advance(seconds=1)
    made: str = city.run(changes.create, NewBead(title, **keys), prefix="te", ctx=city.context).id
    return made


async def test_work_in_progress_comes_first_then_what_is_ready(city: City, host: Any) -> None:
    waiting, held = bead(city, "Ready", assignee="mayor"), bead(city, "Held")
    bead(city, "Of somebody else", assignee="deputy")
    city.run(changes.claim, held, "mayor", ctx=city.context)
    found = await hooked(city, host, "mayor")
    assert [one.id for one in found.beads] == [held, waiting]
    assert found.work == f"{held}  in_progress  Held\n{waiting}  open         Ready"
    assert bool(found)


async def test_a_member_of_a_pool_without_work_gets_one_bead_of_its_pool_that_nobody_has(city: City, host: Any) -> None:
    bead(city, "Taken", labels=("pool:web/coder",), assignee="ann")
    free = [bead(city, title, labels=("pool:web/coder",)) for title in ("One", "Two")]
    assert [one.id for one in (await hooked(city, host, "web/coder-2")).beads] == free[:1]
    own = bead(city, "Own", assignee="web/coder-2")
    assert [one.id for one in (await hooked(city, host, "web/coder-2")).beads] == [own]
    assert not await hooked(city, host, "mayor")


async def test_an_agent_with_a_work_query_of_its_own_gets_what_that_prints(city: City, host: Any) -> None:
    bead(city, "Not asked for", assignee="own")
    found = await hooked(city, host, "own")
    assert (found.work, found.beads) == ("echo mine for own", ())


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("mayor", {"workspace": replace(CONFIG.workspace, suspended=True)}),
        ("mayor", {"agents": (replace(MAYOR, suspended=True),)}),
        ("web/coder-1", {"rigs": (Rig(name="web", path="web", suspended=True),)}),
    ],
)
async def test_a_suspended_agent_has_neither_work_nor_instructions(
    city: City, host: Any, name: str, changed: dict[str, Any]
) -> None:
    bead(city, "Work", assignee=name)
    assert await hooked(city, host, name)
    assert not await hooked(city, host, name, **changed)
    assert await prompted(city, host, name) == f"Be {name}."
    assert await prompted(city, host, name, **changed) == ""


async def test_the_agent_of_the_session_is_meant_where_none_is_named(city: City, host: Any) -> None:
    bead(city, "Work", assignee="mayor")
    assert await hooked(city, host, own="mayor")
    assert not await hooked(city, host, "web/coder-1", own="mayor")
    with pytest.raises(NotFound, match="No agent is named"):
        await hooked(city, host)


async def test_general_instructions_are_given_where_an_agent_has_none_or_nobody_is_named(city: City, host: Any) -> None:
    generic = hooks.GENERIC.format(city=CONFIG.name)
    assert await prompted(city, host) == generic
    host.prompt = lambda _agent, _name: " \n"
    assert await prompted(city, host, "mayor") == generic
