"""The shim of a session without a terminal: a shell that starts the program and records its exit status.

A pidfd shows that a process ended, but only its parent learns the exit status, and the daemon may be gone by then. So
the parent is a shell in its own process session: it outlives the daemon and writes the status to disk. It catches the
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
from lamplighter.kit.records import record

OUTPUT = "output"
INPUT = "input"
_PROGRAM = "program"
_SHIM = "shim"
EXIT = "exit"
_START_LIMIT_MS = 30_000
_SIGNALS = sorted(int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

# The launching process may die before the shim reports the start: the shim then writes to a broken pipe, and goes on.
# Only builtins, so that an environment without a PATH does no harm; `ps` is for systems without /proc. A subshell's
# `$$` is not its own pid. The variables have a prefix because this shell also holds the program's environment.
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


@record
class Launched:
    """`shim` is our child, to be reaped; `started` tells whether the subshell for the program got as far as exec."""

    shim: int
    started: bool


def furnish(home: Path, *, takes_input: bool) -> None:
    """Make the files a launch needs, before the session's directory appears under its name."""
    os.close(os.open(home / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if takes_input:
        os.mkfifo(home / INPUT, 0o600)


def launch(home: Path, command: tuple[str, ...], env: dict[str, str], work_dir: str) -> Launched:
    """Start the program under its own shim and wait until it is about to run.

    Blocks. Raises OutOfDescriptors, or another OSError.
    """
    with _side_by_side():
        ends = _open_ends(home)
        try:
            pid = _spawn(ends, ["lamp-session", str(home), boot_id(), work_dir, _limit(), *command], env)
            ends.close(ends.writing)  # so the shim holds the last write end, and the wait sees its death
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
    """The program's limit of descriptors; empty when it inherits ours."""
    given = descriptors.for_children()
    return "" if given is None else str(given)


@cache
def _side_by_side() -> threading.Semaphore:
    """Bounds concurrent launches by the limit of descriptors: each holds four for some milliseconds."""
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
    """Open all of them or none. Raises OutOfDescriptors, or another OSError."""
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
    """None when it has not ended, or its shim was killed first. The file is complete once it ends in a newline."""
    text = _text(f"{home}/{EXIT}")
    return int(text) if text.endswith("\n") and text.strip().isdigit() else None


def _open_input(home: Path) -> int:
    """Open a FIFO for reading and writing, so that its reader never sees an end when a writer closes it."""
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
    """Read a small file as cheaply as possible: every look at a session reads two of them."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error  # the file may exist, but cannot be read now
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
