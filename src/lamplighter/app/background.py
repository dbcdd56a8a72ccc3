"""The daemon in the background: started apart from its terminal, found again by its lock, its log read."""

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.lock import ControllerRunning, controller_pid
from lamplighter.app.service_units import program
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import Unavailable

PAUSE_S = 0.02
LINES_SHOWN = 15
CONFLICT = 4  # how `lamp daemon run` ends where another controller runs the city
LONGEST_LOG = 32 << 20


def start_background(city: OpenCity, *, within: float) -> int:
    """Returns its pid once it answers. Raises ControllerRunning, or Unavailable with the end of its log."""
    running = controller_pid(city.paths.lock)
    if running is not None:
        raise ControllerRunning(str(running or ""))
    _put_aside(city.paths.log)
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
                raise ControllerRunning(str(other or ""))  # started by somebody else at the same moment
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
    process.returncode = 0  # it lives on by itself; nobody here waits for it
    return pid


def last_lines(path: Path, count: int) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, maxlen=count)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.", hint="Check its owner and mode.") from error


def follow(path: Path, show: Callable[[str], None]) -> None:
    """Every further line as it is written, until interrupted; a log that was cut short is read from its beginning."""
    position = path.stat().st_size if path.exists() else 0
    rest = ""
    while True:
        size = path.stat().st_size if path.exists() else 0
        if size < position:
            position, rest = 0, ""
        if size > position:
            with path.open(encoding="utf-8", errors="replace") as file:
                file.seek(position)
                text = rest + file.read()
                position = file.tell()
            *lines, rest = text.split("\n")
            for line in lines:
                show(line)
        time.sleep(0.2)


def _put_aside(path: Path) -> None:
    """A log that grew long becomes `daemon.log.1`; the one before it goes."""
    if path.exists() and path.stat().st_size > LONGEST_LOG:
        path.replace(path.with_name(f"{path.name}.1"))


def _open_log(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(
            f"The log {path} cannot be written: {error.strerror}.",
            hint="Check its owner, mode and disk; `lamp daemon run` runs the city without it.",
        ) from error


def _answering(city: OpenCity) -> int | None:
    """The pid of the controller that answers; None while none does."""
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
