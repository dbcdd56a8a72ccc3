"""How a running city is, as its own process tells it: one question over its socket, and nothing else is loaded."""

from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.city import city_at, find_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.settings import Settings
from lamplighter.kit.errors import Unavailable


def running_status(settings: Settings) -> dict[str, Any] | None:
    """The shape of `lamp status --json`; None where no city runs or its process does not say it."""
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    if controller_pid(paths.lock) is None:
        return None
    try:
        return ask(paths.socket, "overview", within=5.0)
    except Unavailable:  # a program of another version, or one that is busy: it is told by what is on record
        return None
