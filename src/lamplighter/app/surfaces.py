"""Joins the surfaces with the services behind them: tools over stdio, tools and API over HTTP."""

from functools import partial

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.beads import bead_store
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import TokenBook, owner
from lamplighter.kit import aio
from lamplighter.mcp.server import HttpEndpoint, serve_stdio
from lamplighter.ports.runs import AutomationService, CompletionService
from lamplighter.services.toolbox import CityDesk, Toolbox
from lamplighter.web.api import runs
from lamplighter.web.auth import caller_in
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


def surface(city: OpenCity, tools: Toolbox, ready: Ready) -> Surface:
    """The API and `/mcp`, behind the city's tokens."""
    endpoint = HttpEndpoint(tools, caller_in)
    tokens = TokenBook(city_key(city.paths.runtime), owner_token(city.paths.runtime))
    routes = runs.routes(tools.completion) if tools.completion is not None else []
    return Surface(tokens, ready, routes, [Part(MCP_PATH, endpoint, endpoint.running)])


def serve_tools(city: OpenCity) -> None:
    """Over standard input and output. Whoever can start this can read the city's files, and so is its owner."""
    tools = toolbox(city)
    try:
        aio.run(serve_stdio(tools, owner(city.settings.actor, city.settings.run)))
    finally:
        if tools.desk is not None:
            tools.desk.close()
