"""How a city is, and stopping it, from outside its process."""

import time
from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.events import EventFilter
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import LampError, Unavailable, UsageError
from lamplighter.services import events
from lamplighter.services.overview import overview

DOWN: dict[str, Any] = {
    "running": False,
    "pid": None,
    "since": None,
    "last_tick_at": None,
    "config_error": None,
    "problems": {},
}
PAUSE = 0.02


def city_status(city: OpenCity) -> dict[str, Any]:
    """The shape of `lamp status --json`; works with and without a running daemon."""
    beads, head = city.store.read(lambda tx: (tx.beads.counts(), events.latest(tx, EventFilter(), limit=1)))
    glance = city.store.read(overview, city.clock.now())
    return {
        "city": _name(city),
        "root": str(city.paths.root),
        "paused": glance.paused,
        "suspended": _suspended(city),
        "controller": _controller(city),
        "agents": [],
        "runs": glance.runs,
        "attention": glance.attention,
        "next": glance.next,
        "beads": beads,
        "store": str(city.place),
        "last_event": f"{head[0].type} ({head[0].seq})" if head else None,
    }


def stop_city(city: OpenCity, *, within: str) -> int | None:
    """Ask the controller to stop and wait until it is gone; its pid, or None when none ran."""
    try:
        limit = parse_duration(within).total_seconds()
    except ValueError as error:
        raise UsageError(f"--within: {error}.") from error
    pid = controller_pid(city.paths.lock)
    if pid is None:
        return None
    deadline = time.monotonic() + limit
    asked = False
    while controller_pid(city.paths.lock) is not None:
        asked = asked or _asked_to_stop(city, last_try=time.monotonic() > deadline)
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The controller (process {pid}) did not stop within {within}.",
                hint=f"`lamp status` shows what it does; `kill {pid}` sends it a signal.",
            )
        time.sleep(PAUSE)
    return pid


def _asked_to_stop(city: OpenCity, *, last_try: bool) -> bool:
    """False while nobody listens yet: a controller that has just started opens its socket a moment later."""
    try:
        ask(city.paths.socket, "stop")
    except Unavailable:
        if last_try:
            raise
        return False
    return True


def _controller(city: OpenCity) -> dict[str, Any]:
    pid = controller_pid(city.paths.lock)
    if pid is None:
        return dict(DOWN)
    try:
        return ask(city.paths.socket, "status", within=2.0)
    except LampError as error:
        return DOWN | {"running": True, "pid": pid, "problems": {"control": error.message}}


def _suspended(city: OpenCity) -> bool:
    try:
        return city.config.city.workspace.suspended
    except LampError:  # a broken file is told beside this, by the controller or by `lamp config check`
        return False


def _name(city: OpenCity) -> str:
    row = city.store.read(lambda tx: tx.cities.find())
    return city.paths.root.name if row is None else row.name
