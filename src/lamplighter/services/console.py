"""The way into the web console: a link that signs a browser in."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.threads import in_thread
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class OpenConsole:
    """Open the web console: a link that signs a browser in as you, once, within ten minutes."""


@dataclass(frozen=True)
class ConsoleView:
    """`link` signs a browser in; `url` is where the console is."""

    url: str
    link: str
    until: datetime


async def open_console(host: "Host", _ask: OpenConsole, ctx: Context) -> ConsoleView:
    """Raises Unavailable if the city does not run."""
    controller = await host.controller()
    if controller.api is None:
        raise Unavailable("The city is not running, so there is no console.", hint="`lamp up` or `lamp daemon start`.")
    url = console_url(host.roster.city.api.public_url, controller.api)
    secret, lasts = await in_thread(host.sign_in_link, ctx.actor)
    return ConsoleView(url, link_to(url, secret), ctx.now + lasts)


def console_url(public: str, api: str) -> str:
    """Where a person finds the console: at the city's public address, else at the API's, seen from this machine."""
    return (public or api).rstrip("/").replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def moved_port(wanted: int, api: str, before: int | None) -> str | None:
    """That the API has moved to another port than the configured one, and why.

    None if it is where it should be, or where it was `before`: the city keeps its port, and has told so.
    """
    port = urlsplit(api).port
    if wanted in (0, port) or port == before:
        return None
    return (
        f"The console is at port {port}, not {wanted}: another program has that port. The city keeps port {port} from "
        "now on; `port` in `[api]` of city.toml chooses another."
    )


def link_to(url: str, secret: str) -> str:
    return f"{url}/sign-in/{secret}"


OPEN = effect("city.open", Verb.READ, OpenConsole, ConsoleView, open_console, command="open", here_after=LOOK_S)
