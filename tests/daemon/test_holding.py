"""What a process may take: its rigs, what is nowhere else, and how much of it side by side."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from loops_city import Loops

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.cluster.rig_claims import RigClaims
from lamplighter.daemon.pipeline.limits import GroupLimits, left_out
from lamplighter.domain.city.model import City, Configuration, Rig
from lamplighter.domain.city.run_sections import Workers
from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.domain.runs.model import RunState
from lamplighter.services import configurations, nodes, outbox
from lamplighter.services.context import acting
from lamplighter.services.runs import executing, review
from lamplighter.store.owners import Owner

ME = review.Worker("own_first", "here")


def rigs(city: City) -> dict[str, str]:
    return {rig.name: str(city.rig_path(rig)) for rig in city.rigs if city.rig_path(rig).is_dir()}


async def join(loops: Loops, owner: str, node: str, held: dict[str, str]) -> None:
    if owner != ME.owner:
        found = Owner(owner, "worker", "barn", 2, loops.clock.now())
        await loops.store.transact(lambda tx: tx.owners.register(found))
    await loops.store.transact(
        nodes.join, nodes.Joining(owner, node, node, f"nod_{node} at {node}", held), loops.context
    )


def rig_claims(loops: Loops, *, whole_city: bool) -> RigClaims:
    city = replace(loops.city, rigs=(*loops.city.rigs, Rig(name="api", path="nowhere", prefix="ap")))
    loops.parts.active.swap(city, loops.rules)
    return RigClaims(loops.store, loops.parts.active, ME, rigs, whole_city=whole_city)


async def test_a_worker_takes_only_rigs_that_are_here(loops: Loops) -> None:
    await join(loops, ME.owner, "here", {})
    await rig_claims(loops, whole_city=False).tick()
    assert loops.parts.active.rigs == {"web"}


async def test_a_controller_takes_what_is_nowhere_else_and_leaves_what_another_node_holds(loops: Loops) -> None:
    await join(loops, ME.owner, "here", {})
    held = rig_claims(loops, whole_city=True)
    await held.tick()
    assert loops.parts.active.rigs == {"web", "api"}
    await join(loops, "own_second", "barn", {"api": "/api"})
    await held.tick()
    assert loops.parts.active.rigs == {"web"}


async def test_a_rig_that_appears_is_held_from_then_on_and_told(loops: Loops) -> None:
    await join(loops, ME.owner, "here", {"web": str(loops.root / "web")})
    held = rig_claims(loops, whole_city=False)
    await held.tick()
    (loops.root / "nowhere").mkdir()
    await held.tick()
    assert loops.parts.active.rigs == {"web", "api"}
    owners = await loops.store.read(lambda tx: tx.owners.all())
    assert next(set(one.rigs) for one in owners if one.id == ME.owner) == {"web", "api"}


async def test_an_agent_run_whose_configuration_lies_in_another_nodes_rig_is_handed_on(loops: Loops) -> None:
    await join(loops, ME.owner, "here", {})
    await rig_claims(loops, whole_city=False).tick()

    far = Configuration(name="far", rig="api", description="There.")
    await loops.store.transact(configurations.sync, (far,), loops.clock.now())
    await loops.add("away", agent={"prompt": "true", "preset": "shell", "configuration": "far"})
    run = await loops.fire("away")
    for _ in range(3):
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()
    row = await loops.get(run)
    assert (row.state, row.node) == (RunState.READY, None)
    assert await loops.store.read(lambda tx: tx.outbox.needed()) == {"rig:api": 1}
    (item,) = await loops.store.transact(outbox.claim_due, "own_second", loops.clock.now(), limit=5)
    assert executing.target_told(item.payload["target"]).configuration == "far"
    started = await loops.store.transact(
        executing.begin, item, executing.target_told(item.payload["target"]), review.Worker("own_second", "barn"),
        ctx=acting("worker", loops.clock.now(), loops.ids),
    )  # fmt: skip
    assert (started.configuration, started.node) == ("far", "barn")


def test_a_limit_of_none_leaves_the_kind_to_others() -> None:
    assert left_out(Workers()) == frozenset()
    assert left_out(Workers(execute=0)) == {"enqueue_execute", "cook"}
    assert left_out(Workers(enrich=0)) == {"enqueue_enrich"}


@pytest.mark.parametrize(("limit", "most"), [(2, 2), (0, 1)])
async def test_no_more_items_are_handled_side_by_side_than_the_configuration_says(
    tmp_path: Path, loops: Loops, limit: int, most: int
) -> None:
    city = City(root=tmp_path, workers=Workers(execute=limit))
    limits = GroupLimits(ActiveConfig(city, loops.rules))
    busy, seen, go = 0, [0], asyncio.Event()

    async def one() -> None:
        nonlocal busy
        async with limits.room(ItemKind.ENQUEUE_EXECUTE):
            busy += 1
            seen.append(busy)
            await go.wait()
            busy -= 1

    tasks = [asyncio.create_task(one()) for _ in range(5)]
    async with limits.room(ItemKind.WRITE_ARTIFACT):  # what has no lane does not wait
        pass
    while len(seen) <= most:  # noqa: ASYNC110  each task runs up to its wait as soon as it may
        await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*tasks)
    assert max(seen) == most
