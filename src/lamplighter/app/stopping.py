"""Stops a city's sessions without its controller."""

from datetime import timedelta

from lamplighter.app.membership import place_of
from lamplighter.app.sessions import open_named, provider_name, used_here
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.patrol.history import PatrolHistory, Where
from lamplighter.daemon.shutdown import SessionsLeft, Stopped, stop_all
from lamplighter.domain.city.sections import Daemon
from lamplighter.kit import aio
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services import nodes, owners
from lamplighter.store.engine import Wakes
from lamplighter.store.url import open_proofs, open_store


def stop_sessions(city: OpenCity) -> tuple[str, ...]:
    """Stop all sessions and return the names of their agents. The caller holds the controller's lock.

    Raises SessionsLeft. Works with a broken configuration too: the sessions of every provider that was used on this
    machine are stopped then.
    """
    names, within = set(used_here(city.paths)), Daemon().shutdown_timeout
    try:
        config = city.config.city
    except LampError:
        pass
    else:
        names.add(provider_name(config, city.settings.env))
        within = config.daemon.shutdown_timeout
    if not names - {"fail", "fake"}:
        return ()
    stopped = aio.run(_stop_each(city, sorted(names), within))
    left = [text for one in stopped for text in one.left]
    if left:
        raise SessionsLeft(left)
    return tuple(sorted(name for one in stopped for name in one.agents))


async def _stop_each(city: OpenCity, names: list[str], within: timedelta) -> list[Stopped]:
    done = []
    for name in names:
        provider = open_named(name, city.paths, city.settings.env, clock=city.clock, ids=city.ids)
        try:
            if await provider.seen():
                done.append(await _stop(city, name, provider, within))
            await provider.cleanup()  # a killed controller may have left more than its sessions
        finally:
            await provider.close()
    return done


async def _stop(city: OpenCity, name: str, provider: SessionProvider, within: timedelta) -> Stopped:
    try:
        store = open_store(city.place, city.paths.city_id(), Wakes())
    except LampError:  # no database, or its URL is unknown: stop all the same, without a record
        return await stop_all(provider, None, within=within)
    try:
        proofs = open_proofs(city.place)
        try:
            spared = await owners.runs_of_the_living(store, proofs, "")
        finally:
            proofs.close()
        node = await store.read(nodes.name_of, place_of(city), host())
        patrol_history = PatrolHistory(store, city.clock, city.ids, Where(name, node))
        await patrol_history.load(timedelta(days=1), keep_quarantine=True)
        return await stop_all(provider, patrol_history, within=within, spared=spared)
    finally:
        await store.close()
