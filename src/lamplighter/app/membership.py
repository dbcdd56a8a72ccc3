"""The membership of a controller or worker in its city: store, owner row, proof of life and node, and their release."""

import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta

from lamplighter.adapters.files.city import make_file
from lamplighter.app.lifetime import if_possible
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.cluster.peer_watch import PeerWatch
from lamplighter.domain.city.model import City
from lamplighter.domain.cluster.nodes import Node, NodeTaken
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.records import record
from lamplighter.services import nodes, owners
from lamplighter.services.context import Context, acting
from lamplighter.store.engine import Proofs, Wakes
from lamplighter.store.errors import StoreLost, StoreSaved
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store
from lamplighter.store.url import Place, SqliteUrl, migrate, open_death_watch, open_direct, open_proofs, open_store

NODE_ID = "node-id"
SAVED_COPY = "saved-lamp.db"


@record
class Membership:
    place: Place
    store: Store
    proofs: Proofs
    owner: Owner
    wakes: Wakes
    took_over: list[Owner]

    @property
    def context(self) -> Context:
        """An act of this process, dated at its start."""
        return acting(self.owner.kind, self.owner.started_at)


async def become_member(stack: AsyncExitStack, opened: OpenCity, place: Place, kind: str, name: str) -> Membership:
    """Open the store, hold a proof of life, register, and expire dead processes; `stack` undoes it all.

    `name` is the city's. `took_over` are the processes that were expired.
    """
    wakes = Wakes()
    store = open_store(place, opened.paths.city_id(), wakes)
    stack.push_async_callback(store.close)
    owner = Owner(opened.ids.make("own"), kind, host(), os.getpid(), opened.clock.now())
    stack.enter_context(listening(place, owner.id, wakes))
    await store.transact(lambda tx: tx.cities.ensure(name, owner.started_at))
    proofs = open_proofs(place)
    stack.callback(proofs.release, owner.id)
    took_over = await owners.join(store, proofs, owner, ctx=acting(kind, owner.started_at))

    async def leave() -> None:
        await owners.leave(store, proofs, owner, clock=opened.clock)

    stack.push_async_callback(if_possible, leave)
    return Membership(place, store, proofs, owner, wakes, took_over)


def migrate_own(place: Place, city: str) -> bool:
    """Migrate the city's database to this program's schema; returns whether it knows nothing of the city.

    Raises StoreLost if the SQLite file is missing or has no row of the city, StoreSaved while `.gc` holds a copy that a
    daemon saved of a lost database. A PostgreSQL database may be new to the city, so none of this is checked there.
    """
    file = isinstance(place, SqliteUrl)
    if isinstance(place, SqliteUrl):
        need_no_copy(place)
    migrate(place, make=not file)
    store = open_direct(place, city)
    try:
        known = store.read(lambda tx: tx.cities.find()) is not None
    finally:
        store.close()
    if file and not known:
        raise StoreLost(str(place), "The city is not in the database")
    return not known


def need_database(place: Place) -> None:
    """Raises StoreLost or StoreSaved where a start would be refused for it, so that nothing is stopped in vain."""
    if isinstance(place, SqliteUrl):
        need_no_copy(place)
        if not place.path.exists():
            raise StoreLost(str(place), "There is no database at")


def need_no_copy(place: SqliteUrl) -> None:
    """Raises StoreSaved while a copy lies there that a daemon saved of a lost database."""
    copies = sorted(place.runtime.glob(f"{SAVED_COPY}.*"))
    if copies:
        raise StoreSaved(str(place), str(copies[-1]))


async def join(
    member: Membership, opened: OpenCity, rigs: Mapping[str, str], *, wanted: str | None = None, lost_after: timedelta
) -> Node:
    """Join the node of this `.gc`, under the name `wanted` if given. Raises NodeTaken, PlaceNamed, RigElsewhere.

    If the name is taken, runs of nodes that were lost more than `lost_after` ago are ended and the join is tried once
    more: there may be no other process that would end them and so free the name.
    """
    joining = nodes.Joining(member.owner.id, wanted, host(), place_of(opened), rigs)
    try:
        return await member.store.transact(nodes.join, joining, member.context)
    except NodeTaken:
        before = member.context.now - lost_after
        if not await member.store.transact(nodes.end_stranded, before=before, ctx=member.context):
            raise
        return await member.store.transact(nodes.join, joining, member.context)


def peer_watch(stack: AsyncExitStack, member: Membership, opened: OpenCity) -> PeerWatch | None:
    """Build the watch that notices the death of other processes at once.

    None on SQLite, where proofs of life are file locks that every patrol checks.
    """
    death_watch = open_death_watch(member.place)
    if death_watch is None:
        return None
    stack.callback(death_watch.close)
    found = PeerWatch(member.store, opened.clock, member.proofs, death_watch, member.owner.id, member.owner.kind)
    found.listen(member.wakes)
    return found


def place_of(opened: OpenCity) -> str:
    """The place where this process's sessions live: the id of this `.gc`, created on first use, its host and path."""
    runtime = opened.paths.runtime
    file = runtime / NODE_ID
    try:
        make_file(file, opened.ids.make("nod") + "\n", mode=0o600)
        own = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{file} cannot be had: {error}.", hint="Check the owner and mode of .gc.") from error
    if not re.fullmatch(r"nod_[0-9a-z]+", own):
        raise Unavailable(f"{file} does not hold a node's id.", hint="Remove it while nothing runs here.")
    return f"{own} {host()}:{runtime.resolve()}"


def rigs_here(city: City) -> dict[str, str]:
    """The paths of those rigs whose directory exists on this machine."""
    found = {rig.name: city.rig_path(rig) for rig in city.rigs}
    return {name: str(path) for name, path in found.items() if path.is_dir()}
