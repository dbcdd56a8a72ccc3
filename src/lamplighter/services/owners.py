"""Working processes: who they are, who controls the city, and what becomes of the dead."""

import asyncio

from lamplighter.domain.acts import Act
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import Conflict
from lamplighter.kit.ids import At, IdSource
from lamplighter.store.owners import Owner
from lamplighter.store.proof import Proofs
from lamplighter.store.tx import Store, Tx


class ControlledElsewhere(Conflict):
    def __init__(self, owner: Owner | None, name: str) -> None:
        where = f"process {owner.pid} on {owner.host}" if owner is not None else name
        super().__init__(
            f"This city is controlled by {where}.",
            hint="Stop it there first. If that machine is gone for good, its lock falls when the database drops it.",
        )


async def enlist(store: Store, proofs: Proofs, owner: Owner, *, act: Act) -> list[Owner]:
    """Hold the proof of life, register, and bury those who no longer hold theirs; returns the buried."""
    await asyncio.to_thread(proofs.hold, owner.id)
    await store.transact(register, owner)
    return await bury_dead(store, proofs, owner.id, act=act)


async def bury_dead(store: Store, proofs: Proofs, me: str, *, act: Act) -> list[Owner]:
    """Void what dead processes held, at once and at no cost in attempts. May be repeated, and by several."""
    dead = [other for other in await store.read(others, me) if await asyncio.to_thread(proofs.dead, other.id)]
    return [other for other in dead if await store.transact(bury, other, act=act)]


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


def others(tx: Tx, me: str) -> list[Owner]:
    return tx.owners.others(me)


def bury(tx: Tx, owner: Owner, *, act: Act) -> bool:
    """One transaction: the owner's name goes, and with it everything it held."""
    if not tx.owners.remove(owner.id):
        return False
    tx.cities.drop_control(owner.id)
    void(tx, owner.id, act=act)
    payload = {"kind": owner.kind, "host": owner.host, "pid": owner.pid}
    tx.events.append(act.event("owner.lost", subject=owner.id, payload=payload))
    return True


def void(tx: Tx, owner: str, *, act: Act) -> None:
    """Take back its leases and claims; what it worked on is there for others at once."""
    from lamplighter.services import outbox, runs

    if tx.runs.void_leases(owner):
        tx.wake(runs.TOPIC)
    outbox.recover_of(tx, owner, ids=IdSource(At(act.at)), act=act)


def resign(tx: Tx, owner: str, *, act: Act) -> None:
    tx.cities.drop_control(owner)
    void(tx, owner, act=act)
    tx.owners.remove(owner)
