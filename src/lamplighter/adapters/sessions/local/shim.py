"""The shim of a session without a terminal: a shell that starts the program and writes down how it ended.

A pidfd tells that a process ended, but only its parent learns the exit status, and the daemon may be gone by then. So
the parent is a shell in a session of its own: it outlives the daemon and leaves the status on disk. It catches the
signals that are meant for the program's whole group; the program itself starts with all of them at their defaults.
"""

import os
import select
import signal
import stat
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lamplighter.adapters.processes.table import Identity, boot_id
from lamplighter.kit import descriptors

OUTPUT = "output"
INPUT = "input"
_PROGRAM = "program"
_SHIM = "shim"
EXIT = "exit"
_START_LIMIT_MS = 30_000
_SIGNALS = sorted(int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

# Whoever started it may be dead before it says so: it then speaks into a broken pipe, and goes on.
# Only builtins, so that an environment without a PATH does no harm; `ps` is for systems without /proc. A subshell's
# `$$` is not its own pid. The variables have a prefix, for the program's environment is this shell's too.
_SCRIPT = """
stamp() {
  if read -r lamp_line 2>/dev/null </proc/$1/stat; then set -- $lamp_line; lamp_start=${22}
  else set -- $(LC_ALL=C /bin/ps -o lstart= -p "$1"); lamp_start=$*; fi
}
trap : HUP INT QUIT TERM
exec 3>&1 4>&2 2>/dev/null
lamp_dir=$1 lamp_boot=$2 lamp_work=$3 lamp_files=$4; shift 4
[ -z "$lamp_files" ] || ulimit -S -n "$lamp_files"
stamp $$
printf '%s\\n%s\\n%s\\n' "$$" "$lamp_start" "$lamp_boot" >"$lamp_dir/shim" || exit 125
cd -- "$lamp_work" 2>&4 || exit 125
unset OLDPWD
(
  read -r lamp_pid lamp_line 2>/dev/null </proc/self/stat || lamp_pid=$(exec /bin/sh -c 'echo "$PPID"')
  stamp "$lamp_pid"
  printf '%s\\n%s\\n%s\\n' "$lamp_pid" "$lamp_start" "$lamp_boot" >"$lamp_dir/program" || exit 125
  trap '' PIPE
  printf 'started\\n' 2>/dev/null >&3
  trap - PIPE
  exec 3>&-
  exec "$@"
) >&4 2>&4 4>&-
printf '%s\\n' "$?" >"$lamp_dir/exit"
"""


@dataclass(frozen=True)
class Launched:
    """`shim` is our child until it is waited for; `started` says that what becomes the program got as far as exec."""

    shim: int
    started: bool


def furnish(home: Path, *, takes_input: bool) -> None:
    """The files a launch needs, made before the session's directory is seen by anyone."""
    os.close(os.open(home / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if takes_input:
        os.mkfifo(home / INPUT, 0o600)


def launch(home: Path, command: tuple[str, ...], env: dict[str, str], work_dir: str) -> Launched:
    """Start the program under a shim of its own and wait until it is about to run.

    Blocks. Raises OutOfDescriptors, or another OSError.
    """
    with _side_by_side():
        ends = _open_ends(home)
        try:
            pid = _spawn(ends, ["lamp-session", str(home), boot_id(), work_dir, _limit(), *command], env)
            ends.close(ends.writing)  # the shim's own is the last then: without it the wait would see no end
            return Launched(pid, started=_hears_start(ends.reading))
        finally:
            ends.close_all()


def _spawn(ends: "_Ends", arguments: list[str], env: dict[str, str]) -> int:
    return os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", _SCRIPT, *arguments],
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, ends.source, 0),
            (os.POSIX_SPAWN_DUP2, ends.writing, 1),
            (os.POSIX_SPAWN_DUP2, ends.output, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=_SIGNALS,
    )


def _limit() -> str:
    """Of descriptors, for the program; empty where it gets ours."""
    given = descriptors.for_children()
    return "" if given is None else str(given)


@cache
def _side_by_side() -> threading.Semaphore:
    """Each launch has four descriptors for some milliseconds: no more at a time than the limit has room for."""
    return threading.Semaphore(min(max(descriptors.limit() // 32, 1), 32))


@dataclass
class _Ends:
    """The descriptors of one launch."""

    output: int = -1
    reading: int = -1
    writing: int = -1
    source: int = -1
    opened: list[int] = field(default_factory=list)

    def keep(self, fd: int) -> int:
        self.opened.append(fd)
        if descriptors.in_reserve(fd):
            raise descriptors.OutOfDescriptors
        return fd

    def close(self, fd: int) -> None:
        self.opened.remove(fd)
        os.close(fd)

    def close_all(self) -> None:
        while self.opened:
            os.close(self.opened.pop())


def _open_ends(home: Path) -> _Ends:
    """All of them or none."""
    ends = _Ends()
    try:
        ends.output = ends.keep(os.open(home / OUTPUT, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
        pipe = os.pipe()
        ends.opened += pipe
        ends.reading, ends.writing = pipe
        ends.source = ends.keep(_open_input(home))
    except BaseException as error:
        ends.close_all()
        if isinstance(error, OSError) and descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error
        raise
    return ends


def program_of(home: Path) -> Identity | None:
    return _identity(f"{home}/{_PROGRAM}")


def shim_of(home: Path) -> Identity | None:
    return _identity(f"{home}/{_SHIM}")


def exit_status_of(home: Path) -> int | None:
    """None where it did not end, or where its shim was killed first. Whole once its newline is there."""
    text = _text(f"{home}/{EXIT}")
    return int(text) if text.endswith("\n") and text.strip().isdigit() else None


def _open_input(home: Path) -> int:
    """A FIFO is opened for both directions: its reader then never sees an end, whoever else comes and goes."""
    try:
        if stat.S_ISFIFO((home / INPUT).stat().st_mode):
            return os.open(home / INPUT, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _hears_start(reading: int) -> bool:
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    return bool(poll.poll(_START_LIMIT_MS)) and bool(os.read(reading, 64))


def _text(path: str) -> str:
    """All of a small file, by the shortest way: every look at a session asks for two of them."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error  # nobody can say now what stands there
        return ""
    try:
        return os.read(fd, 4096).decode(errors="replace")
    finally:
        os.close(fd)


def _identity(path: str) -> Identity | None:
    lines = _text(path).split("\n")
    if len(lines) != 4 or not lines[0].isdigit():
        return None
    return Identity(int(lines[0]), lines[1], lines[2])
