"""Joins the surfaces with the services behind them: tools over stdio, tools and API over HTTP."""

from functools import partial

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.automations import rules_of
from lamplighter.app.beads import bead_store
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import TokenBook, owner
from lamplighter.kit import aio
from lamplighter.ports.runs import AutomationService, CompletionService
from lamplighter.services.completing import Completions
from lamplighter.services.configurations import Configurations
from lamplighter.services.tool_automations import ToolAutomations
from lamplighter.services.toolbox import CityDesk, Toolbox
from lamplighter.store.place import open_store
from lamplighter.store.wakes import Wakes
from lamplighter.web.api import configurations, runs
from lamplighter.web.auth import caller_in
from lamplighter.web.deferred import Deferred, Endpoint
from lamplighter.web.server import Part, Ready, Surface

MCP_PATH = "/mcp"


def toolbox(
    city: OpenCity,
    *,
    completion: CompletionService | None = None,
    automations: AutomationService | None = None,
) -> Toolbox:
    """Beads and events are reached by the city's own direct connection, opened by the desk's thread."""
    desk = CityDesk(lambda: city.store, partial(bead_store, city), city.clock)
    return Toolbox(completion, automations, desk)


def surface(city: OpenCity, tools: Toolbox, ready: Ready, *, chosen: Configurations | None = None) -> Surface:
    """The API and `/mcp`, behind the city's tokens. The latter's library is half of the daemon, and often unused."""

    def load() -> Endpoint:
        from lamplighter.mcp.server import HttpEndpoint

        return HttpEndpoint(tools, caller_in)

    endpoint = Deferred(load)
    tokens = TokenBook(city_key(city.paths.runtime), owner_token(city.paths.runtime))
    routes = runs.routes(tools.completion) if tools.completion is not None else []
    routes += configurations.routes(chosen) if chosen is not None else []
    return Surface(tokens, ready, routes, [Part(MCP_PATH, endpoint, endpoint.running)])


def serve_tools(city: OpenCity) -> None:
    """Over standard input and output. Whoever can start this can read the city's files, and so is its owner."""
    city.need_own()
    aio.run(_serve_tools(city))


async def _serve_tools(city: OpenCity) -> None:
    from lamplighter.mcp.server import serve_stdio

    store = open_store(city.place, city.paths.city_id(), Wakes())
    automations = ToolAutomations(store, city.clock, city.ids, lambda: rules_of(city.config.city, city.settings.env))
    tools = toolbox(city, completion=Completions(store, city.clock, city.ids), automations=automations)
    try:
        await serve_stdio(tools, owner(city.settings.actor, city.settings.run))
    finally:
        if tools.desk is not None:
            tools.desk.close()
        await store.close()
