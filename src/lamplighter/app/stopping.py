"""Stopping a city's sessions without its controller."""

from lamplighter.app.sessions import open_provider, provider_name
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.memory import Memory, Where
from lamplighter.daemon.shutdown import SessionsLeft, stop_all
from lamplighter.kit import aio
from lamplighter.store.place import open_store
from lamplighter.store.wakes import Wakes


def stop_sessions(city: OpenCity) -> tuple[str, ...]:
    """The agents that had to be stopped. The caller holds the controller's lock. Raises SessionsLeft."""
    return aio.run(_stop(city))


async def _stop(city: OpenCity) -> tuple[str, ...]:
    config, env = city.config.city, city.settings.env
    provider = open_provider(city.paths, config, env, clock=city.clock, ids=city.ids)
    try:
        if not await provider.seen():
            return ()
        store = open_store(city.place, city.paths.city_id(), Wakes())
        try:
            memory = Memory(store, city.clock, city.ids, Where(provider_name(config, env), host()))
            await memory.load(config.daemon.restart_window, keep_quarantine=True)
            stopped = await stop_all(provider, memory, within=config.daemon.shutdown_timeout)
        finally:
            await store.close()
    finally:
        await provider.close()
    if stopped.left:
        raise SessionsLeft(stopped.left)
    return stopped.agents
