"""Serves the tools of a city over standard input and output."""

from lamplighter.app.definitions import configured
from lamplighter.app.local_host import LocalHost
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import owner
from lamplighter.kit import aio
from lamplighter.kit.records import changed
from lamplighter.mcp.server import serve_stdio
from lamplighter.services.city_operations import CityOperations


def serve_tools(city: OpenCity) -> None:
    """Serve tools over standard input and output.

    The caller is the city's owner: a process that can start this can read the city's files. Raises CopiedCity.
    """
    city.need_own()
    aio.run(_serve_tools(city))


async def _serve_tools(city: OpenCity) -> None:
    host = LocalHost(city)
    operations = CityOperations(host, city.clock, city.ids, lambda: configured(city))
    try:
        await serve_stdio(operations, changed(owner(city.settings.actor, city.settings.run), rig=city.settings.rig))
    finally:
        await host.close()
