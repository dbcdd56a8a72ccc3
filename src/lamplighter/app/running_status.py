"""The status of a running city, from its controller: one request over the socket, so that little is loaded."""

from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.city import CityPaths, city_at, find_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.remote import answer_of_daemon
from lamplighter.app.settings import Settings
from lamplighter.kit.errors import Kind, LampError, Unavailable

ANSWER_S = 5.0


def running_status(settings: Settings) -> dict[str, Any] | None:
    """The shape of `lamp status --json`; None if no controller runs or it does not answer.

    Raises Unavailable if the controller runs without its database, which then nobody can read.
    """
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    if controller_pid(paths.lock) is None:
        return None
    try:
        found: dict[str, Any] = answer_of_daemon(
            paths.socket, "city.status", {}, {"name": settings.actor, "run": settings.run}, within=ANSWER_S
        )
    except LampError as error:  # another version, busy, or without its database
        if error.kind is not Kind.UNAVAILABLE:
            raise
        lost = _lost_database(paths)
        if lost is None:
            return None  # the caller reads the store instead
    else:
        return found
    raise Unavailable(
        f"The city runs and its agents are looked after, but its database is lost: {lost}",
        hint="`lamp stop`, put the file or what was saved of it in place, then `lamp daemon start`.",
    )


def _lost_database(paths: CityPaths) -> str | None:
    try:
        found: str | None = ask(paths.socket, "status", within=2.0)["problems"].get("database")
    except (Unavailable, KeyError):
        return None
    return found
