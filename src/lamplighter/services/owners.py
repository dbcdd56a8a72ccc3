"""The city's working processes (owners): registration, control of the city, and expiry of dead ones."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from lamplighter.domain.cluster.nodes import NodeState
from lamplighter.domain.runs.lease import LEASE
from lamplighter.kit import log
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record
from lamplighter.services import outbox
from lamplighter.services.context import Context, acting
from lamplighter.services.runs.ending import TAKEN
from lamplighter.store.engine import Proofs
from lamplighter.store.owners import TOPIC, Owner
from lamplighter.store.tx import Store, Tx

LET_GO = timedelta(seconds=2)
LOOK_AGAIN = timedelta(milliseconds=50)


@record
class TakenBack:
    """How many run leases and outbox claims were taken back from a dead process."""

    leases: int
    items: int

    def tell(self, owner: str) -> None:
        if self.leases or self.items:
            log.get().info("owner.work_taken_back", owner=owner, leases=self.leases, items=self.items)


@record
class HeldWork:
    """The runs and outbox items that a process works on."""

    runs: frozenset[str]
    items: frozenset[str]


class ControlledElsewhere(Conflict):
    def __init__(self, owner: Owner | None, name: str) -> None:
        where = f"process {owner.pid} on {owner.host}" if owner is not None else name
        super().__init__(
            f"This city is controlled by {where}.",
            hint="Stop it there first. If that machine is gone for good, its lock falls when the database drops it.",
        )


async def join(store: Store, proofs: Proofs, owner: Owner, *, ctx: Context) -> list[Owner]:
    """Take the proof of life, register, and expire the processes that no longer hold theirs; returns those expired.

    The proof comes first, so that the new row is never taken for a dead process.
    """
    await asyncio.to_thread(proofs.hold, owner.id)
    await store.transact(register, owner)
    return await expire_dead(store, proofs, owner.id, ctx=ctx)


async def expire_dead(store: Store, proofs: Proofs, me: str, *, ctx: Context) -> list[Owner]:
    """Void leases and claims of dead processes at once, without counting attempts; returns those expired here.

    May be repeated, and run by several processes at once.
    """
    return await expire_all(store, await dead_owners(store, proofs, me), ctx=ctx)


async def dead_owners(store: Store, proofs: Proofs, me: str) -> list[Owner]:
    return [other for other in await store.read(others, me) if await asyncio.to_thread(proofs.dead, other.id)]


async def expire_all(store: Store, dead: Sequence[Owner], *, ctx: Context) -> list[Owner]:
    """Expire these processes; returns those that this call expired, since another process may have been faster."""
    buried = []
    for other in dead:
        left = await store.transact(expire, other, ctx=ctx)
        if left is not None:
            buried.append(other)
            left.tell(other.id)
    await void_stale_claims(store, ctx=ctx)
    return buried


async def void_stale_claims(store: Store, *, ctx: Context) -> list[str]:
    """Void leases and claims of expired processes: a database may commit a dead process's last transaction late."""
    stale_claims = await store.read(lambda tx: tx.owners.stale_claims())
    if stale_claims:
        for ghost, left in (await store.transact(void_stale, ctx=ctx)).items():
            left.tell(ghost)
    return stale_claims


async def runs_of_the_living(store: Store, proofs: Proofs, me: str) -> frozenset[str]:
    """Runs held by other live processes; a process that stops the city leaves them alone."""
    held = await store.read(lambda tx: tx.runs.held())
    dead = {owner: owner != me and await asyncio.to_thread(proofs.dead, owner) for owner in set(held.values())}
    return frozenset(run for run, owner in held.items() if owner != me and not dead[owner])


async def take_control(store: Store, proofs: Proofs, owner: Owner, *, ctx: Context, clock: Clock | None = None) -> None:
    """Make `owner` the city's controller. Raises ControlledElsewhere while another controller is alive."""
    city = await store.read(lambda tx: tx.cities.find())
    if city is None:
        raise Conflict("This city has no row in its database.", hint="Run `lamp init` in it.")
    holder = city.controller if city.controller != owner.id else None
    if holder is not None and not await _dead_soon(proofs, holder, clock or SystemClock()):
        known = next((other for other in await store.read(others, owner.id) if other.id == holder), None)
        raise ControlledElsewhere(known, holder)
    taken = await store.transact(
        lambda tx: tx.cities.take_control(owner.id, expected=city.controller_version, now=ctx.now)
    )
    if not taken:
        raise ControlledElsewhere(None, "a process that started at the same moment")


async def _dead_soon(proofs: Proofs, owner: str, clock: Clock) -> bool:
    """Whether it is dead, asked for LET_GO: a child that it was about to start holds its files for a moment longer."""
    until = clock.monotonic() + LET_GO.total_seconds()
    while not await asyncio.to_thread(proofs.dead, owner):
        if clock.monotonic() >= until:
            return False
        await clock.wait(asyncio.Event(), at_most=LOOK_AGAIN)
    return True


async def leave(store: Store, proofs: Proofs, owner: Owner, *, clock: Clock | None = None) -> None:
    """Give up the owner's leases and claims, its registration, and in any case its proof of life."""
    now = (clock or SystemClock()).now()
    try:
        await store.transact(resign, owner.id, ctx=acting(owner.kind, now))
    finally:
        proofs.release(owner.id)


def register(tx: Tx, owner: Owner) -> None:
    tx.owners.register(owner)
    tx.wake(TOPIC)


def others(tx: Tx, me: str) -> list[Owner]:
    return tx.owners.others(me)


def expire(tx: Tx, owner: Owner, *, ctx: Context) -> TakenBack | None:
    """Remove a dead owner and everything it held, in one transaction. None when another process did it already."""
    if not tx.owners.remove(owner.id):
        return None
    tx.cities.drop_control(owner.id)
    left = void(tx, owner.id, ctx=ctx)
    payload = {"kind": owner.kind, "host": owner.host, "pid": owner.pid, "leases": left.leases, "items": left.items}
    tx.events.append(ctx.event("owner.lost", subject=owner.id, payload=payload))
    _left(tx, owner.node, NodeState.LOST, ctx=ctx)
    tx.wake(TOPIC)
    return left


def void(tx: Tx, owner: str, *, ctx: Context) -> TakenBack:
    """Take back the owner's leases and claims; other processes can take the work at once."""
    leases = tx.runs.void_leases(owner, now=ctx.now)
    if leases:
        tx.wake(TAKEN)
    return TakenBack(leases, outbox.recover_of(tx, owner, ctx=ctx))


def give_back(tx: Tx, owner: str, held: HeldWork, *, before: datetime, ctx: Context) -> TakenBack:
    """Give up what the process took until `before` and does not hold in its memory.

    The database took it, but its answer was lost, as when a connection breaks during a commit. What was taken later is
    left alone, because its answer may still be on its way.
    """
    leases = tx.runs.void_leases(owner, now=ctx.now, spared=held.runs, ending_until=before + LEASE)
    if leases:
        tx.wake(TAKEN)
    return TakenBack(leases, outbox.give_back(tx, owner, spared=held.items, before=before, ctx=ctx))


def resign(tx: Tx, owner: str, *, ctx: Context) -> None:
    node = next((one.node for one in tx.owners.all() if one.id == owner), None)
    tx.cities.drop_control(owner)
    void(tx, owner, ctx=ctx)
    tx.owners.remove(owner)
    _left(tx, node, NodeState.STOPPED, ctx=ctx)
    tx.wake(TOPIC)


def _left(tx: Tx, node: str | None, state: NodeState, *, ctx: Context) -> None:
    """Mark the node as lost or stopped when its last process is gone. Commands belong to no node."""
    if node is None or tx.owners.on_node(node):
        return
    tx.nodes.mark(node, state, ctx.now)
    tx.events.append(ctx.event(f"node.{state.value}", subject=node))


def void_stale(tx: Tx, *, ctx: Context) -> dict[str, TakenBack]:
    return {ghost: void(tx, ghost, ctx=ctx) for ghost in tx.owners.stale_claims()}
