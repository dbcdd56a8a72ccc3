"""Builds the patrol of a city from its parts."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from lamplighter.adapters.files.workshop import FileWorkshop
from lamplighter.adapters.processes.pool_check import ShellPoolCheck
from lamplighter.adapters.processes.table import booted_at
from lamplighter.app.beads import bead_provider
from lamplighter.app.fronts import with_fronts
from lamplighter.app.open_beads import bead_store
from lamplighter.app.secrets import box_of
from lamplighter.app.sessions import open_provider, provider_name, setup_env
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.patrol.history import PatrolHistory, Where
from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.wanted import roster
from lamplighter.ports.agents import Work
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.outside_work import OutsideWork
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.work import OwnWork
from lamplighter.store.tx import Store

_OWN_BEADS = ("store", "file")


@dataclass(frozen=True)
class PatrolParts:
    """The patrol and what it works with."""

    patrol: Patrol
    provider: SessionProvider
    patrol_history: PatrolHistory


async def build_patrol(
    stack: AsyncExitStack, opened: OpenCity, config: LoadedCity, store: Store, node: str
) -> PatrolParts:
    """`stack` closes what is opened here; sessions keep running."""
    env, around = opened.settings.env, with_fronts(opened, config.city)
    provider = open_provider(opened.paths, config.city, env, clock=opened.clock, ids=opened.ids)
    stack.push_async_callback(provider.close)
    patrol_history = PatrolHistory(store, opened.clock, opened.ids, Where(provider_name(config.city, env), node))
    secrets = StoredSecrets(store, box_of(opened))
    patrol = Patrol.build(
        roster(config),
        provider=provider,
        workshop=FileWorkshop(opened.paths.runtime, around, opened.clock, setup_env(opened.paths, config.city, around)),
        work=_work(opened, store),
        check=ShellPoolCheck(around, secrets=secrets),
        patrol_history=patrol_history,
    )
    patrol.executor.secrets, patrol.executor.booted_at = secrets, booted_at()
    stack.push_async_callback(patrol.close)
    return PatrolParts(patrol, provider, patrol_history)


def _work(opened: OpenCity, store: Store) -> Work:
    if bead_provider(opened) in _OWN_BEADS:
        return OwnWork(store, opened.clock)
    return OutsideWork(lambda: bead_store(opened))
