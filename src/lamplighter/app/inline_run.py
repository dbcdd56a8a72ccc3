"""Runs fired by a command: the daemon or a worker executes them if one runs, else the command's own process."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.automations import definitions_of, loops_of, rules_of
from lamplighter.app.live_owners import living_workers
from lamplighter.app.membership import place_of
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.kit import aio, log
from lamplighter.services import nodes, owners
from lamplighter.services.automations.definitions import sync
from lamplighter.services.automations.firing import ByHand, Fired, run_by_hand
from lamplighter.services.declared import Declared, write_declared
from lamplighter.services.runs import review
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.run_rows import RunRow
from lamplighter.store.url import PostgresUrl, open_proofs, open_store


def daemon_runs(city: OpenCity) -> bool:
    return controller_pid(city.paths.lock) is not None


def worked_on(city: OpenCity) -> bool:
    """Whether a daemon or a worker is there to execute a run that is fired now."""
    return daemon_runs(city) or (isinstance(city.place, PostgresUrl) and bool(living_workers(city)))


def refresh_definitions(city: OpenCity) -> None:
    """Sync the store's definitions with the files if no daemon runs that does it; not in a copied city."""
    if not daemon_runs(city) and city.original is None:
        rules = rules_of(city.config.city, city.settings.env)
        city.store.transact(sync, definitions_of(city.config.city), rules, ids=city.ids, act=city.act())


def fire_by_hand(city: OpenCity, wanted: ByHand) -> Fired:
    """Fire the run; the commit wakes the daemon, which executes it. Raises what `run_by_hand` raises."""
    rules = rules_of(city.config.city, city.settings.env)
    return city.store.transact(run_by_hand, wanted, rules=rules, ids=city.ids, act=city.act())


def run_here(city: OpenCity, wanted: ByHand) -> RunRow:
    """Fire the run and execute it in this process until it ends (for a formula: until its wisp is cooked)."""

    async def fire(loops: AutomationLoops) -> str:
        return (await loops.worker.fire(wanted, act=city.act())).run

    return aio.run(_Here(city).run(fire))


def retry_run(city: OpenCity, run: str) -> tuple[RunRow, bool]:
    """What `lamp run retry` does; True if the daemon or a worker executes the new run, which may still go on."""
    city.need_own()
    if worked_on(city):
        return city.store.transact(review.retry, run, ids=city.ids, act=city.act()), True

    async def fire(loops: AutomationLoops) -> str:
        return (await loops.store.transact(review.retry, run, ids=city.ids, act=city.act())).run.id

    return aio.run(_Here(city).run(fire)), False


def run_automation(city: OpenCity, wanted: ByHand) -> tuple[RunRow, bool]:
    """What `lamp automation run` does; True if the daemon or a worker executes the run, which may still go on."""
    city.need_own()
    if worked_on(city):
        fired = fire_by_hand(city, wanted)
        return city.store.read(review.get, fired.run), True
    return run_here(city, wanted), False


class _Here:
    def __init__(self, city: OpenCity) -> None:
        self._city = city

    async def run(self, fire: Callable[[AutomationLoops], Awaitable[str]]) -> RunRow:
        """Execute the run whose id `fire` returns, and no other."""
        log.set_up(level=logging.WARNING)  # the output belongs to the command's answer
        city = self._city
        wakes = Wakes()
        store = open_store(city.place, city.paths.city_id(), wakes)
        owner = Owner(city.ids.make("own"), "command", host(), os.getpid(), city.clock.now())
        proofs = open_proofs(city.place)
        try:
            with listening(city.place, owner.id, wakes):
                await owners.join(store, proofs, owner, act=city.act())
                loops = None
                try:
                    node = await store.read(nodes.name_of, place_of(city), host())
                    me = review.Worker(owner.id, node, city.settings.actor)
                    loops = loops_of(city, city.config.city, store=store, me=me)
                    definitions = await asyncio.to_thread(definitions_of, city.config.city)
                    declared = Declared(city.config.city.configurations, definitions, loops.active.rules)
                    await store.transact(write_declared, declared, ids=city.ids, act=city.act())
                    await loops.dispatcher.guard.check()
                    fired = await fire(loops)
                    loops.dispatcher = replace(loops.dispatcher, only=fired)
                    loops.listen(wakes)
                    await loops.work_off()
                    return await store.read(review.get, fired)
                finally:
                    if loops is not None:
                        await loops.close()
                    await owners.leave(store, proofs, owner)
        finally:
            proofs.release(owner.id)
            await store.close()
