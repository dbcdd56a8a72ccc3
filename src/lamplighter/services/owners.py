"""Working processes: who they are, who controls the city, and what becomes of the dead."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.domain.acts import Act
from lamplighter.domain.cluster.nodes import NodeState
from lamplighter.kit import log
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import Conflict
from lamplighter.kit.ids import At, IdSource
from lamplighter.store.engine.liveness import Proofs
from lamplighter.store.owners import TOPIC, Owner
from lamplighter.store.tx import Store, Tx


@dataclass(frozen=True)
class TakenBack:
    """How many leases of runs and claims of outbox items a process had when it died."""

    leases: int
    items: int

    def tell(self, owner: str) -> None:
        if self.leases or self.items:
            log.get().info("owner.work_taken_back", owner=owner, leases=self.leases, items=self.items)


class ControlledElsewhere(Conflict):
    def __init__(self, owner: Owner | None, name: str) -> None:
        where = f"process {owner.pid} on {owner.host}" if owner is not None else name
        super().__init__(
            f"This city is controlled by {where}.",
            hint="Stop it there first. If that machine is gone for good, its lock falls when the database drops it.",
        )


async def join(store: Store, proofs: Proofs, owner: Owner, *, act: Act) -> list[Owner]:
    """Hold the proof of life, register, and bury those who no longer hold theirs; returns the buried."""
    await asyncio.to_thread(proofs.hold, owner.id)
    await store.transact(register, owner)
    return await expire_dead(store, proofs, owner.id, act=act)


async def expire_dead(store: Store, proofs: Proofs, me: str, *, act: Act) -> list[Owner]:
    """Void what dead processes held, at once and at no cost in attempts. May be repeated, and by several."""
    return await expire_all(store, await dead_owners(store, proofs, me), act=act)


async def dead_owners(store: Store, proofs: Proofs, me: str) -> list[Owner]:
    return [other for other in await store.read(others, me) if await asyncio.to_thread(proofs.dead, other.id)]


async def expire_all(store: Store, dead: Sequence[Owner], *, act: Act) -> list[Owner]:
    """Those that this process buried: another may have been quicker."""
    buried = []
    for other in dead:
        left = await store.transact(expire, other, act=act)
        if left is not None:
            buried.append(other)
            left.tell(other.id)
    await void_stale_claims(store, act=act)
    return buried


async def void_stale_claims(store: Store, *, act: Act) -> list[str]:
    """Void what was written under names that are buried: a database may commit a dead process's last words late."""
    stale_claims = await store.read(lambda tx: tx.owners.stale_claims())
    if stale_claims:
        for ghost, left in (await store.transact(void_stale, act=act)).items():
            left.tell(ghost)
    return stale_claims


async def runs_of_the_living(store: Store, proofs: Proofs, me: str) -> frozenset[str]:
    """Runs that other processes are at: whoever brings a city down leaves them alone."""
    held = await store.read(lambda tx: tx.runs.held())
    dead = {owner: owner != me and await asyncio.to_thread(proofs.dead, owner) for owner in set(held.values())}
    return frozenset(run for run, owner in held.items() if owner != me and not dead[owner])


async def take_control(store: Store, proofs: Proofs, owner: Owner, *, act: Act) -> None:
    """Make `owner` the city's controller. Raises ControlledElsewhere while another one lives."""
    city = await store.read(lambda tx: tx.cities.find())
    if city is None:
        raise Conflict("This city has no row in its database.", hint="Run `lamp init` in it.")
    holder = city.controller if city.controller != owner.id else None
    if holder is not None and not await asyncio.to_thread(proofs.dead, holder):
        known = next((other for other in await store.read(others, owner.id) if other.id == holder), None)
        raise ControlledElsewhere(known, holder)
    taken = await store.transact(
        lambda tx: tx.cities.take_control(owner.id, expected=city.controller_version, now=act.at)
    )
    if not taken:
        raise ControlledElsewhere(None, "a process that started at the same moment")


async def leave(store: Store, proofs: Proofs, owner: Owner, *, clock: Clock | None = None) -> None:
    """Give back what it still holds, its name and its proof."""
    now = (clock or SystemClock()).now()
    try:
        await store.transact(resign, owner.id, act=Act(owner.kind, now))
    finally:
        proofs.release(owner.id)


def register(tx: Tx, owner: Owner) -> None:
    tx.owners.register(owner)
    tx.wake(TOPIC)


def others(tx: Tx, me: str) -> list[Owner]:
    return tx.owners.others(me)


def expire(tx: Tx, owner: Owner, *, act: Act) -> TakenBack | None:
    """One transaction: the owner's name goes, and with it everything it held. None where another was quicker."""
    if not tx.owners.remove(owner.id):
        return None
    tx.cities.drop_control(owner.id)
    left = void(tx, owner.id, act=act)
    payload = {"kind": owner.kind, "host": owner.host, "pid": owner.pid, "leases": left.leases, "items": left.items}
    tx.events.append(act.event("owner.lost", subject=owner.id, payload=payload))
    _left(tx, owner.node, NodeState.LOST, act=act)
    tx.wake(TOPIC)
    return left


def void(tx: Tx, owner: str, *, act: Act) -> TakenBack:
    """Take back its leases and claims; what it worked on is there for others at once."""
    from lamplighter.services import outbox
    from lamplighter.services.runs import review

    leases = tx.runs.void_leases(owner, now=act.at)
    if leases:
        tx.wake(review.TAKEN)
    return TakenBack(leases, outbox.recover_of(tx, owner, ids=IdSource(At(act.at)), act=act))


def resign(tx: Tx, owner: str, *, act: Act) -> None:
    node = next((one.node for one in tx.owners.all() if one.id == owner), None)
    tx.cities.drop_control(owner)
    void(tx, owner, act=act)
    tx.owners.remove(owner)
    _left(tx, node, NodeState.STOPPED, act=act)
    tx.wake(TOPIC)


def _left(tx: Tx, node: str | None, state: NodeState, *, act: Act) -> None:
    """With its last process a node is lost, or has stopped; commands come and go without one."""
    if node is None or tx.owners.on_node(node):
        return
    tx.nodes.mark(node, state, act.at)
    tx.events.append(act.event(f"node.{state.value}", subject=node))


def void_stale(tx: Tx, *, act: Act) -> dict[str, TakenBack]:
    return {ghost: void(tx, ghost, act=act) for ghost in tx.owners.stale_claims()}
