"""Stops a city from outside its process."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lamplighter.adapters.control import NOT_A_REQUEST, VerbFailed, ask
from lamplighter.adapters.files.lock import ControllerLock, controller_pid
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import Conflict, LampError, Unavailable, UsageError

PAUSE = 0.02
SPARE = timedelta(seconds=30)


@dataclass(frozen=True)
class Outcome:
    """The result of a stop: the controller's pid, if one ran, and the agents that were stopped without it.

    `running`: how many agents the controller had running.
    """

    pid: int | None
    agents: tuple[str, ...]
    running: int = 0


@dataclass(frozen=True)
class Left:
    """A controller that left its agents behind; `again`: its process begins again by itself."""

    pid: int
    since: str
    agents: int
    again: bool


def stop_city(city: OpenCity, *, within: str | None) -> Outcome:
    """Stop the controller, if one runs, and every session that is left; returns when all are down.

    Raises CopiedCity; Unavailable if the controller does not stop `within`; SessionsLeft.
    """
    city.need_own()
    limit = _limit(city, within)
    stopped = _end_controller(city, limit, "stop")
    if stopped is None:
        return Outcome(None, _stop_sessions(city))
    pid, answer = stopped
    return Outcome(pid, _stop_sessions(city), answer.get("agents", 0))


def leave_city(city: OpenCity, *, within: str | None) -> Left | None:
    """End the controller and leave its agents and runs under way to the next one; None if none runs.

    Raises CopiedCity; Unavailable if the controller does not end `within`; Conflict if it cannot leave its agents.
    """
    city.need_own()
    ended = _end_controller(city, _limit(city, within), "leave")
    if ended is None:
        return None
    pid, answer = ended
    return Left(pid, answer["since"], answer["agents"], answer["again"])


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
        stopped = stop_sessions(city)
        city.paths.pid_file.unlink(missing_ok=True)  # of a controller that died; the city is stopped from now on
        return stopped
    finally:
        lock.release()


def _end_controller(city: OpenCity, limit: float, verb: str) -> tuple[int, dict[str, Any]] | None:
    """Ask the controller to end and wait until it has; returns its pid and its answer, None if none runs."""
    pid = controller_pid(city.paths.lock)
    if pid is None:
        return None
    deadline = time.monotonic() + limit
    answer: dict[str, Any] | None = None
    while controller_pid(city.paths.lock) is not None:
        if answer is None:
            answer = _asked_to_end(city, verb, last_try=time.monotonic() > deadline)
        if answer is not None and answer.get("again"):
            break  # its process takes the lock again at once
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The controller (process {pid}) did not stop within {limit:g} s.",
                hint=f"`lamp status` shows what it does; `kill {pid}` sends it a signal.",
            )
        time.sleep(PAUSE)
    return None if answer is None and verb == "leave" else (pid, answer or {})


def _asked_to_end(city: OpenCity, verb: str, *, last_try: bool) -> dict[str, Any] | None:
    """The controller's answer; None if it does not listen yet: it opens its socket a moment after its start."""
    try:
        return ask(city.paths.socket, verb)
    except VerbFailed:
        raise
    except Unavailable as error:
        if error.message.startswith(NOT_A_REQUEST):
            raise Conflict(
                "The daemon that runs is of an earlier version and cannot leave its agents to the next one.",
                hint="`lamp restart` stops its agents and starts them again, with the new daemon.",
            ) from error
        if last_try:
            raise
        return None
