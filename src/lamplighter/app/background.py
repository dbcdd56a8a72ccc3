"""The daemon in the background: starts it detached from the terminal, finds it by its lock, reads its log."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.adapters.control import ask
from lamplighter.adapters.files import log_file
from lamplighter.adapters.files.lock import ControllerRunning, controller_pid
from lamplighter.app.kept_port import OF_THE_CITY, kept_port
from lamplighter.app.service_units import program
from lamplighter.app.stop_city import Left, leave_city
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.services.console import console_url, moved_port

PAUSE_S = 0.02
LINES_SHOWN = 15
ANSWERS_WITHIN = 30.0
CONFLICT = 4  # exit status of `lamp daemon run` while another controller runs the city


@dataclass(frozen=True)
class Replaced:
    """The pid of the new daemon, and the one it replaced, if one ran."""

    pid: int
    old: Left | None


@dataclass(frozen=True)
class Reached:
    """Where people find the console of the daemon that answers; None if unknown.

    `moved` says why it is at another port than the configured one, where it is there since this start.
    """

    console: str | None
    moved: str | None


def port_before(city: OpenCity) -> int | None:
    """The port that its API had last."""
    try:
        api = city.config.city.api
    except LampError:  # the start tells it
        return None
    return kept_port(city.paths.runtime / OF_THE_CITY, api.host, api.port)


def reached(city: OpenCity, before: int | None) -> Reached:
    """`before` is the port that the API had until this start."""
    found = _answer(city)
    url = None if found is None else found.get("api")
    if url is None:
        return Reached(None, None)
    try:
        api = city.config.city.api
    except LampError:  # it runs with the last good configuration
        return Reached(url, None)
    return Reached(console_url(api.public_url, url), moved_port(api.port, url, before))


def start_background(city: OpenCity, *, within: float) -> int:
    """Start the daemon and return its pid once it answers.

    Raises ControllerRunning; Unavailable if the daemon ends (with the end of its log) or does not answer `within`.
    """
    running = controller_pid(city.paths.lock)
    if running is not None:
        raise ControllerRunning(str(running or ""))
    log = _open_log(city.paths.log)
    began = os.fstat(log).st_size
    try:
        process = subprocess.Popen(
            [*program(), "--city", str(city.paths.root), "daemon", "run"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=city.paths.root,
        )  # fmt: skip
    finally:
        os.close(log)
    deadline = time.monotonic() + within
    while _answering(city) != process.pid:
        if process.poll() is not None:
            if process.returncode == CONFLICT and (other := controller_pid(city.paths.lock)) is not None:
                raise ControllerRunning(str(other or ""))  # another process started one at the same moment
            raise Unavailable(
                f"The daemon ended at once, with status {process.returncode}. It said: {_said(city.paths.log, began)}",
                hint="`lamp daemon logs` shows more; `lamp config check` looks at the configuration.",
            )
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The daemon (process {process.pid}) runs, but did not answer within {within:g} s.",
                hint="`lamp daemon logs` shows what it does.",
            )
        time.sleep(PAUSE_S)
    pid = process.pid
    process.returncode = 0  # the daemon outlives this process, which does not wait for it
    return pid


def replace_daemon(city: OpenCity, *, within: str | None) -> Replaced:
    """Start a new daemon in place of the one that runs; its agents and runs under way are kept. None ran: just start.

    Raises Unavailable if the old one does not end, or the new one does not answer: the agents run on then.
    """
    old = leave_city(city, within=within)
    if old is None:
        return Replaced(start_background(city, within=ANSWERS_WITHIN), None)
    if not old.again:
        return Replaced(start_background(city, within=ANSWERS_WITHIN), old)
    deadline = time.monotonic() + ANSWERS_WITHIN
    while (found := _answer(city)) is None or found["since"] == old.since:
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The service (process {old.pid}) did not answer again within {ANSWERS_WITHIN:g} s; its agents run on.",
                hint="`lamp daemon logs` shows what it does.",
            )
        time.sleep(PAUSE_S)
    return Replaced(found["pid"], old)


def last_lines(path: Path, count: int) -> list[str]:
    try:
        return log_file.last_lines(path, count)
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.", hint="Check its owner and mode.") from error


def follow(path: Path, show: Callable[[str], None]) -> None:
    """Call `show` with every further line of the log until interrupted, across a rotation to a new file."""
    follower = log_file.Follower(path)
    while True:
        for line in follower.new_lines():
            show(line)
        time.sleep(0.2)


def _open_log(path: Path) -> int:
    """Open the log for appending; rotate it first if it is longer than LONGEST. Raises Unavailable."""
    try:
        if path.is_file() and path.stat().st_size > log_file.LONGEST:
            log_file.put_aside(path)
        return log_file.open_log(path)
    except OSError as error:
        raise Unavailable(
            f"The log {path} cannot be written: {error.strerror}.",
            hint="Check its owner, mode and disk; `lamp daemon run` runs the city without it.",
        ) from error


def _answering(city: OpenCity) -> int | None:
    """The pid of the controller that answers on the socket; None while none does."""
    found = _answer(city)
    return None if found is None else found["pid"]


def _answer(city: OpenCity) -> dict[str, Any] | None:
    """The status of the controller that answers on the socket; None while none does."""
    if controller_pid(city.paths.lock) is None:
        return None
    try:
        found = ask(city.paths.socket, "status", within=1.0)
    except Unavailable:
        return None
    return found if "pid" in found else None


def _said(path: Path, began: int) -> str:
    with path.open("rb") as file:
        file.seek(began)
        lines = file.read().decode(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-LINES_SHOWN:]) or "nothing"
