"""The controller as another process finds it: by its lock and its answer. It imports little and needs no database."""

from dataclasses import replace
from datetime import UTC, datetime

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app import store_record
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import LampError
from lamplighter.kit.shapes import from_json
from lamplighter.services.status_views import ControllerView, RunningController

ANSWER_S = 2.0


def controller_view(city: OpenCity) -> ControllerView:
    pid = controller_pid(city.paths.lock)
    if pid is None:
        told = store_record.warning(city.paths)
        return ControllerView(problems={} if told is None else {"store": told}, died_at=died_at(city.paths))
    try:
        reply = ask(city.paths.socket, "status", within=ANSWER_S)
        kind = RunningController if "version" in reply else ControllerView  # one of another version may say less
        return from_json(kind, reply, strict=False)
    except LampError as error:
        return ControllerView(running=True, pid=pid, problems={"control": error.message})


def died_at(paths: CityPaths) -> datetime | None:
    """The last sign of life of a controller that ended without being stopped; None if the last one was stopped.

    Its pid file is removed at a stop, and touched at every tick until then.
    """
    try:
        return datetime.fromtimestamp(paths.pid_file.stat().st_mtime, UTC)
    except OSError:
        return None


def controller_status(city: OpenCity) -> ControllerView:
    """The same with the problem of a configuration that cannot be used."""
    found = controller_view(city)
    try:
        problem = city.in_force.problem
    except LampError as error:
        problem = error.message
    return found if found.config_error or problem is None else replace(found, config_error=problem)
