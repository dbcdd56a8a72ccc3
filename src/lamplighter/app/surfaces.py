"""Connects the surfaces with the services behind them: tools over stdio, tools and API over HTTP."""

from collections.abc import Callable
from dataclasses import replace

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.automations import rules_of
from lamplighter.app.beads import bead_store
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import TokenBook, owner
from lamplighter.domain.acts import Act
from lamplighter.kit import aio, log
from lamplighter.ports.beads import BeadStore
from lamplighter.ports.runs import AutomationService, CompletionService
from lamplighter.services.automations.tools import ToolAutomations
from lamplighter.services.configurations import Configurations
from lamplighter.services.runs.completing import Completions
from lamplighter.services.toolbox import CityDesk, Toolbox
from lamplighter.store.engine.patience import Patience
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.url import open_store
from lamplighter.web.api import configurations, runs
from lamplighter.web.auth import caller_in
from lamplighter.web.deferred import Deferred, Endpoint
from lamplighter.web.hosts import Reached
from lamplighter.web.server import Part, Ready, Surface

MCP_PATH = "/mcp"
TOOL_WAIT = 20.0
"""In seconds; shorter than agent programs wait for a tool."""


def toolbox(
    city: OpenCity,
    *,
    completion: CompletionService | None = None,
    automations: AutomationService | None = None,
) -> Toolbox:
    """The desk reaches beads and events by a direct connection of its own, which waits TOOL_WAIT for the database."""
    own = replace(city, patience=Patience(TOOL_WAIT, _tell))

    def beads(act: Callable[[], Act]) -> BeadStore:
        own.use(city.in_force)  # it may have changed since the last call
        return bead_store(own, act)

    return Toolbox(completion, automations, CityDesk(lambda: own.store, beads, own.clock, own.close))


def _tell(error: StoreUnavailable) -> None:
    log.get().warning("tools.waiting", error=error.message)


def surface(
    city: OpenCity,
    tools: Toolbox,
    ready: Ready,
    *,
    chosen: Configurations | None = None,
    reached: Callable[[], Reached] = Reached,
) -> Surface:
    """The API and `/mcp`, both behind the city's tokens.

    `/mcp` is loaded at its first request: its library is half of the daemon, and often unused.
    """

    def load() -> Endpoint:
        from lamplighter.mcp.server import HttpEndpoint

        return HttpEndpoint(tools, caller_in)

    endpoint = Deferred(load)
    tokens = TokenBook(city_key(city.paths.runtime), owner_token(city.paths.runtime))
    routes = runs.routes(tools.completion) if tools.completion is not None else []
    routes += configurations.routes(chosen) if chosen is not None else []
    return Surface(tokens, ready, routes, [Part(MCP_PATH, endpoint, endpoint.running)], reached)


def serve_tools(city: OpenCity) -> None:
    """Serve tools over standard input and output.

    The caller is the city's owner: a process that can start this can read the city's files. Raises CopiedCity.
    """
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
