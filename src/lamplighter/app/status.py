"""Shows a city's status and stops it, from outside its process."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.lock import ControllerLock, controller_pid
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.events import EventFilter
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import LampError, Unavailable, UsageError
from lamplighter.services import events
from lamplighter.services.overview import overview
from lamplighter.store.tx import Tx

DOWN: dict[str, Any] = {
    "running": False,
    "pid": None,
    "since": None,
    "last_tick_at": None,
    "api": None,
    "config_error": None,
    "descriptors": None,
    "problems": {},
}
_ORDER = (
    "city", "root", "paused", "suspended", "controller", "agents", "nodes", "runs", "attention", "next", "beads",
    "store", "last_event",
)  # fmt: skip
PAUSE = 0.02
SPARE = timedelta(seconds=30)


@dataclass(frozen=True)
class Outcome:
    """The result of a stop: the controller's pid, if one ran, and the agents that were stopped without it."""

    pid: int | None
    agents: tuple[str, ...]


def city_status(city: OpenCity) -> dict[str, Any]:
    """The shape of `lamp status --json`; works with and without a running daemon."""
    recorded = city.store.read(on_record, city.paths.root, city.clock.now())
    controller = _controller(city)
    agents, suspended, problem = _agents(city)
    if problem and not controller["config_error"]:
        controller = controller | {"config_error": problem}
    return whole(recorded, city, suspended=suspended, controller=controller, agents=agents)


def on_record(tx: Tx, root: Path, now: datetime) -> dict[str, Any]:
    """The part of the status that the store knows."""
    head, peek, row = events.latest(tx, EventFilter(), limit=1), overview(tx, now), tx.cities.find()
    return {
        "city": root.name if row is None else row.name,
        "paused": peek.paused,
        "runs": peek.runs,
        "attention": peek.attention,
        "next": peek.next,
        "beads": tx.beads.counts(),
        "last_event": f"{head[0].type} ({head[0].seq})" if head else None,
    }


def whole(recorded: dict[str, Any], city: OpenCity, **known: Any) -> dict[str, Any]:
    """The recorded part of the status joined with the present one, in the order in which it is shown."""
    found = recorded | known | {"root": str(city.paths.root), "nodes": _nodes(city), "store": str(city.place)}
    return {key: found[key] for key in _ORDER}


def stop_city(city: OpenCity, *, within: str | None) -> Outcome:
    """Stop the controller, if one runs, and every session that is left; returns when all are down.

    Raises CopiedCity; Unavailable if the controller does not stop `within`; SessionsLeft.
    """
    city.need_own()
    limit = _limit(city, within)
    pid = _stop_controller(city, limit)
    return Outcome(pid, _stop_sessions(city))


def _limit(city: OpenCity, within: str | None) -> float:
    """`within` in seconds; by default the city's shutdown_timeout plus SPARE. Raises UsageError."""
    if within is None:
        try:
            return (city.config.city.daemon.shutdown_timeout + SPARE).total_seconds()
        except LampError:  # a broken configuration must not prevent a stop
            return SPARE.total_seconds()
    try:
        return parse_duration(within).total_seconds()
    except ValueError as error:
        raise UsageError(f"--within: {error}.") from error


def _stop_sessions(city: OpenCity) -> tuple[str, ...]:
    """Stop what no controller stopped: sessions of `lamp start` or of a killed controller. Raises SessionsLeft."""
    from lamplighter.app.stopping import stop_sessions

    lock = ControllerLock(city.paths.lock)
    lock.take()
    try:
        return stop_sessions(city)
    finally:
        lock.release()


def _stop_controller(city: OpenCity, limit: float) -> int | None:
    pid = controller_pid(city.paths.lock)
    if pid is None:
        return None
    deadline = time.monotonic() + limit
    asked = False
    while controller_pid(city.paths.lock) is not None:
        asked = asked or _asked_to_stop(city, last_try=time.monotonic() > deadline)
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The controller (process {pid}) did not stop within {limit:g} s.",
                hint=f"`lamp status` shows what it does; `kill {pid}` sends it a signal.",
            )
        time.sleep(PAUSE)
    return pid


def _asked_to_stop(city: OpenCity, *, last_try: bool) -> bool:
    """Ask the controller to stop; False if it does not listen yet: it opens its socket a moment after its start."""
    try:
        ask(city.paths.socket, "stop")
    except Unavailable:
        if last_try:
            raise
        return False
    return True


def controller_status(city: OpenCity) -> dict[str, Any]:
    """The controller's part of `lamp status --json`; it needs no database."""
    found = _controller(city)
    try:
        problem = city.in_force.problem
    except LampError as error:
        problem = error.message
    return found if found["config_error"] or problem is None else found | {"config_error": problem}


def _controller(city: OpenCity) -> dict[str, Any]:
    pid = controller_pid(city.paths.lock)
    if pid is None:
        return dict(DOWN)
    try:
        return DOWN | ask(city.paths.socket, "status", within=2.0)  # one of another version may say less
    except LampError as error:
        return DOWN | {"running": True, "pid": pid, "problems": {"control": error.message}}


def _agents(city: OpenCity) -> tuple[list[dict[str, Any]], bool, str | None]:
    """The agents' rows, whether the city is suspended, and the problem of a configuration that cannot be used."""
    from lamplighter.app.agents import Agents

    rows: list[dict[str, Any]] = []
    try:
        rows = Agents(city).rows()
        return rows, city.config.city.workspace.suspended, city.in_force.problem
    except LampError as error:
        return rows, False, error.message


def _nodes(city: OpenCity) -> list[dict[str, Any]]:
    from lamplighter.app.live_owners import node_rows

    return node_rows(city)
