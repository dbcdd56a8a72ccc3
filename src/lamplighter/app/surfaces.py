"""Connects the surfaces over HTTP with the services behind them: tools and API."""

from collections.abc import Callable

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.secrets import box_of
from lamplighter.app.sign_in import at_provider, browser_sessions
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.tokens import TokenBook
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.deliveries.receiving import Receiver
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.services.slack.workspaces import Workspaces
from lamplighter.services.token_checks import StoredTokens
from lamplighter.web import api, hooks, metrics, slack, stream, terminal
from lamplighter.web.auth import BrowserAuth, actor_in
from lamplighter.web.deferred import Deferred, Endpoint
from lamplighter.web.hosts import Reached
from lamplighter.web.server import Part, Ready, Surface

MCP_PATH = "/mcp"


def surface(
    city: OpenCity,
    operations: CityOperations,
    ready: Ready,
    *,
    reached: Callable[[], Reached] = Reached,
) -> Surface:
    """The API, `/mcp` and the console.

    `/mcp` and the console are loaded at their first request: the library of the one is half of the daemon, and often
    neither is used.
    """

    def load() -> Endpoint:
        from lamplighter.mcp.server import HttpEndpoint

        return HttpEndpoint(operations, actor_in)

    tokens = TokenBook(city_key(city.paths.runtime), owner_token(city.paths.runtime))
    traffic = metrics.Traffic()
    stored = StoredTokens(operations.host.store, operations.clock)
    browsers = BrowserAuth(browser_sessions(city), city.paths.city_id())

    def load_console() -> Endpoint:
        from lamplighter.web.console import app, sign_in

        elsewhere = at_provider(operations, secrets)
        return app.Console(operations, sign_in.SignIn(tokens, browsers, reached, stored, elsewhere))

    secrets = StoredSecrets(operations.host.store, box_of(city))
    receiver = Receiver(operations.host.store, secrets, operations.clock, city.ids)
    hears = SlackReceiver(
        Workspaces(operations.host.store, receiver.secrets), operations.clock, city.ids, operations.configured
    )
    endpoint, console = Deferred(load), Deferred(load_console)
    return Surface(
        tokens,
        ready,
        [
            *api.routes(operations, traffic),
            *slack.routes(hears, operations.clock.monotonic),
            stream.route(operations),
            terminal.route(operations, lambda secret: browsers.sessions.actor(secret) is not None),
            metrics.route(operations, traffic),
        ],
        hooks.Door(receiver, operations.clock.monotonic),
        [Part(MCP_PATH, endpoint, endpoint.running)],
        Part("/", console, console.running),
        browsers,
        reached,
        stored,
        endpoint.loaded,
    )
