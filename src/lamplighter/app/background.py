"""The daemon in the background: starts it detached from the terminal, finds it by its lock, reads its log."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lamplighter.adapters.control import ask
from lamplighter.adapters.files import log_file
from lamplighter.adapters.files.lock import ControllerRunning, controller_pid
from lamplighter.app.service_units import program
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import Unavailable

PAUSE_S = 0.02
LINES_SHOWN = 15
CONFLICT = 4  # exit status of `lamp daemon run` while another controller runs the city


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
    if controller_pid(city.paths.lock) is None:
        return None
    try:
        pid: int = ask(city.paths.socket, "status", within=1.0)["pid"]
    except (Unavailable, KeyError):
        return None
    return pid


def _said(path: Path, began: int) -> str:
    with path.open("rb") as file:
        file.seek(began)
        lines = file.read().decode(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-LINES_SHOWN:]) or "nothing"
