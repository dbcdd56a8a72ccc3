"""Runs fired by a command: the daemon or a worker executes them if one runs, else the command's own process."""

import logging
import os
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app import store_record
from lamplighter.app.automation_loops import loops_of
from lamplighter.app.definitions import prepare
from lamplighter.app.live_owners import living_workers
from lamplighter.app.local_host import LocalHost
from lamplighter.app.membership import place_of
from lamplighter.app.operations import SURFACE, DirectOperations, actor_of
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, host
from lamplighter.kit import aio, log
from lamplighter.services import nodes, owners
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured
from lamplighter.services.operation import Need, Operation
from lamplighter.services.runs import review
from lamplighter.services.runs.views import RunView
from lamplighter.store.owners import Owner
from lamplighter.store.url import PostgresUrl, SqliteUrl, open_proofs

Q = TypeVar("Q")
V = TypeVar("V", bound=RunView)


def daemon_runs(city: OpenCity) -> bool:
    return controller_pid(city.paths.lock) is not None


def worked_on(city: OpenCity) -> bool:
    """Whether a daemon or a worker is there to execute a run that is fired now."""
    return daemon_runs(city) or (isinstance(city.place, PostgresUrl) and bool(living_workers(city)))


def nobody_ends_it(city: OpenCity, run: RunView) -> bool:
    """Whether a cancelled run's command may keep running: it was started, and on SQLite no daemon runs to end it.

    Always False on PostgreSQL.
    """
    return run.started_at is not None and isinstance(city.place, SqliteUrl) and not daemon_runs(city)


def fired(city: OpenCity, operation: Operation[Q, V], ask: Q) -> tuple[V, bool]:
    """Carry out an operation that makes a run; True if this process also executed the run.

    A daemon or a worker that runs executes it, woken by the commit. Raises what the operation raises.
    """
    city.need_own()
    if worked_on(city):
        return DirectOperations(city).do(operation, ask), False
    _enter(city)
    return aio.run(_executed_here(city, operation, ask, prepare(city, Need.DEFINITIONS))), True


def _enter(city: OpenCity) -> None:
    """Give the city its row in a database that `[store] url` names since its last start.

    Raises NotBegun while the city's history is in another database: with the row, a start would no longer tell of it.
    """
    if city.store.read(lambda tx: tx.cities.find()) is not None:
        return
    before = store_record.earlier(city.paths, city.place)
    if before is not None:
        raise store_record.NotBegun(city.place, before)
    city.store.transact(lambda tx: tx.cities.ensure(city.config.city.name, city.clock.now()))


async def _executed_here(city: OpenCity, operation: Operation[Q, V], ask: Q, configured: Configured) -> V:
    """Make the run and execute it until it ends (for a formula: until its wisp is cooked); it, and no other."""
    log.set_up(level=logging.WARNING)  # the output belongs to the command's answer
    here = LocalHost(city)
    operations = CityOperations(here, city.clock, city.ids, lambda: configured, wait=timedelta())
    owner = Owner(city.ids.make("own"), "command", host(), os.getpid(), city.clock.now())
    proofs = open_proofs(city.place)
    try:
        with listening(city.place, owner.id, here.wakes):
            await owners.join(here.store, proofs, owner, ctx=city.context())
            loops = None
            try:
                node = await here.store.read(nodes.name_of, place_of(city), host())
                me = review.Worker(owner.id, node, city.settings.actor)
                loops = loops_of(city, configured.city, store=here.store, me=me)
                await loops.dispatcher.guard.check()
                made = await operations.do(operation, ask, actor_of(city, operation.verb), surface=SURFACE)
                loops.dispatcher = replace(loops.dispatcher, only=made.id)
                loops.listen(here.wakes)
                await loops.work_off()
                return made
            finally:
                if loops is not None:
                    await loops.close()
                await owners.leave(here.store, proofs, owner)
    finally:
        proofs.release(owner.id)
        await here.close()
