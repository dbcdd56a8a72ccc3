"""The status of a running city, from its controller: one request over the socket, so that little is loaded."""

from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.city import city_at, find_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.settings import Settings
from lamplighter.kit.errors import Unavailable


def running_status(settings: Settings) -> dict[str, Any] | None:
    """The shape of `lamp status --json`; None if no controller runs or it does not answer."""
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    if controller_pid(paths.lock) is None:
        return None
    try:
        return ask(paths.socket, "overview", within=5.0)
    except Unavailable:  # another version, or busy: the caller reads the store instead
        return None
