"""The post of a working process: its store, its name, its proof of life, its node; and all of it given back."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from lamplighter.app.lifetime import if_possible
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.vigil import Watchman
from lamplighter.domain.acts import Act
from lamplighter.domain.city.model import City
from lamplighter.domain.nodes.model import Node
from lamplighter.services import nodes, owners
from lamplighter.store.owners import Owner
from lamplighter.store.place import Place, PostgresPlace, open_proofs, open_store
from lamplighter.store.proof import Proofs
from lamplighter.store.tx import Store
from lamplighter.store.vigil import open_vigil
from lamplighter.store.wakes import Wakes


@dataclass(frozen=True)
class Post:
    place: Place
    store: Store
    proofs: Proofs
    owner: Owner
    wakes: Wakes
    took_over: list[Owner]

    @property
    def act(self) -> Act:
        """At the time it was taken."""
        return Act(self.owner.kind, self.owner.started_at)


async def take_post(stack: AsyncExitStack, opened: OpenCity, place: Place, kind: str, name: str) -> Post:
    """Registered and proven alive, with the dead buried; `name` is the city's."""
    wakes = Wakes()
    store = open_store(place, opened.paths.city_id(), wakes)
    stack.push_async_callback(store.close)
    owner = Owner(opened.ids.make("own"), kind, host(), os.getpid(), opened.clock.now())
    stack.enter_context(listening(place, owner.id, wakes))
    await store.transact(lambda tx: tx.cities.ensure(name, owner.started_at))
    proofs = open_proofs(place)
    stack.callback(proofs.release, owner.id)
    took_over = await owners.enlist(store, proofs, owner, act=Act(kind, owner.started_at))

    async def leave() -> None:
        await owners.leave(store, proofs, owner, clock=opened.clock)

    stack.push_async_callback(if_possible, leave)
    return Post(place, store, proofs, owner, wakes, took_over)


async def join(post: Post, rigs: Mapping[str, str], wanted: str | None = None) -> Node:
    """Raises NodeTaken, PlaceNamed, RigElsewhere."""
    joining = nodes.Joining(post.owner.id, wanted, host(), place_name(post.place), rigs)
    return await post.store.transact(nodes.join, joining, post.act)


def watchman(stack: AsyncExitStack, post: Post, opened: OpenCity) -> Watchman | None:
    """Who notices the death of other processes at once; where files are the proof, patrols do."""
    vigil = open_vigil(post.place)
    if vigil is None:
        return None
    stack.callback(vigil.close)
    found = Watchman(post.store, opened.clock, post.proofs, vigil, post.owner.id, post.owner.kind)
    found.listen(post.wakes)
    return found


def place_name(place: Place) -> str:
    """Where sessions of this process live: a directory, and on which machine, where the store does not say that."""
    runtime = str(place.runtime.resolve())
    return f"{host()}:{runtime}" if isinstance(place, PostgresPlace) else runtime


def rigs_here(city: City) -> dict[str, str]:
    """Paths of those rigs whose directory is on this machine."""
    found = {rig.name: city.rig_path(rig) for rig in city.rigs}
    return {name: str(path) for name, path in found.items() if path.is_dir()}
