"""Beads as every surface asks for them: who may, whose they are, and beads that live in a store of another program."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Actor, Forbidden, Role, of_run, owner
from lamplighter.domain.beads.model import BeadFilter, BeadNotFound, BeadStatus
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.city.model import Rig, Workspace
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import changed
from lamplighter.ports.beads import BeadStore
from lamplighter.services.beads import operations, queries
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured
from lamplighter.services.operation import Operation
from lamplighter.services.own_beads import OwnBeads
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import DirectStore, Store
from lamplighter.store.url import open_direct, open_store

ADA = owner("ada")


@dataclass(frozen=True)
class Holder:
    """A host with a store, and perhaps beads elsewhere."""

    store: Store
    outside: BeadStore | None = None

    def outside_beads(self) -> BeadStore | None:
        return self.outside


@pytest.fixture
async def store(city: City) -> AsyncIterator[Store]:
    opened = open_store(city.place, CITY, Wakes())
    yield opened
    await opened.close()


def asking(city: City, host: Holder) -> CityOperations:
    config = CityConfig(workspace=Workspace(name="test"), prefix="te", rigs=(Rig(name="web", path="web", prefix="wb"),))
    return CityOperations(host, city.clock, city.ids, lambda: Configured(config, city.rules))


async def created(ask: CityOperations, title: str, actor: Actor = ADA, surface: str = "tool", **keys: Any) -> Any:
    return await ask.do(operations.CREATE, operations.CreateBead(title, **keys), actor, surface=surface)


async def test_a_tool_s_bead_names_its_agent_and_a_person_s_names_nobody(city: City, store: Store) -> None:
    ask = asking(city, Holder(store))
    assert (await created(ask, "One")).sender == "ada"
    assert (await created(ask, "Two", surface="cli")).sender is None


async def test_a_bead_gets_the_prefix_of_its_rig_or_of_the_rig_its_maker_works_in(city: City, store: Store) -> None:
    ask = asking(city, Holder(store))
    made = [
        await created(ask, "One"),
        await created(ask, "Two", rig="web"),
        await created(ask, "Three", changed(ADA, rig="web")),
    ]
    assert [bead.id.partition("-")[0] for bead in made] == ["te", "wb", "wb"]
    with pytest.raises(NotFound, match="no rig `shop`"):
        await created(ask, "Four", rig="shop")


async def test_whoever_claims_without_naming_somebody_claims_for_himself(city: City, store: Store) -> None:
    ask = asking(city, Holder(store))
    bead = await created(ask, "One")
    claimed = await ask.do(operations.CLAIM, operations.ClaimBead(bead.id), ADA, surface="tool")
    assert (claimed.assignee, claimed.status) == ("ada", BeadStatus.IN_PROGRESS)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_run_s_token_neither_reads_nor_writes_beads_wherever_they_live(
    city: City, store: Store, *, elsewhere: bool
) -> None:
    city.add("sweep", agent={"prompt": "Go."})
    run = of_run(city.run_now("sweep").run)
    outside = AnotherCity(city)
    ask = asking(city, Holder(store, outside if elsewhere else None))
    refused: list[tuple[Operation[Any, Any], Any]] = [
        (queries.LIST, queries.ListBeads()),
        (queries.READY, queries.ReadyBeads()),
        (queries.SHOW, queries.ShowBead("te-1")),
        (operations.CREATE, operations.CreateBead("x")),
        (operations.CLAIM, operations.ClaimBead("te-1")),
        (operations.UPDATE, operations.UpdateBead("te-1", title="y")),
        (operations.CLOSE, operations.CloseBead("te-1")),
    ]
    for operation, request in refused:
        with pytest.raises(Forbidden):
            await ask.do(operation, request, run, surface="tool")
    assert outside.matching(BeadFilter(), limit=9) == []


async def test_beads_of_another_program_go_through_their_whole_life_there(city: City, store: Store) -> None:
    outside = AnotherCity(city)
    ask, here = asking(city, Holder(store, outside)), asking(city, Holder(store))
    member = Actor("bob", Role.MEMBER)

    async def do(operation: Operation[Any, Any], request: Any) -> Any:
        return await ask.do(operation, request, member, surface="tool")

    whole = await do(operations.CREATE, operations.CreateBead("Whole", type="epic"))
    step = await do(operations.CREATE, operations.CreateBead("Step", parent=whole.id, labels=("a",)))
    assert (await do(operations.CLAIM, operations.ClaimBead(step.id))).assignee == "bob"
    assert (await do(operations.UPDATE, operations.UpdateBead(step.id, add_labels=("b",)))).labels == ("a", "b")
    assert [one.id for one in (await do(queries.SHOW, queries.ShowBead(whole.id))).children] == [step.id]
    assert [one.id for one in await do(queries.LIST, queries.ListBeads(label="b"))] == [step.id]
    assert (await do(operations.CLOSE, operations.CloseBead(step.id))).status is BeadStatus.CLOSED
    ready = await do(operations.CREATE, operations.CreateBead("Ready"))
    assert [one.id for one in await do(queries.READY, queries.ReadyBeads())] == [ready.id]
    with pytest.raises(BeadNotFound):
        await here.do(queries.SHOW, queries.ShowBead(whole.id), member, surface="tool")


class AnotherCity:
    """The beads of another city, as a store of another program; a connection for each call, as it comes on a thread."""

    def __init__(self, city: City) -> None:
        self._city = city
        self._with(lambda store: store.transact(lambda tx: tx.cities.ensure("other", city.clock.now())))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._with(lambda store: getattr(self._beads(store), name)(*args, **kwargs))

        return call

    def _beads(self, store: DirectStore) -> OwnBeads:
        return OwnBeads(store, prefix=lambda _rig: "ou", context=lambda: self._city.context)

    def _with(self, use: Callable[[DirectStore], Any]) -> Any:
        store = open_direct(self._city.place, "cty_other")
        try:
            return use(store)
        finally:
            store.close()
