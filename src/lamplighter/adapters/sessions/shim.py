"""The shim of a session without a terminal: a shell that starts the program and writes down how it ended.

A pidfd tells that a process ended, but only its parent learns the exit status, and the daemon may be gone by then. So
the parent is a shell in a session of its own: it outlives the daemon and leaves the status on disk. It catches the
signals that are meant for the program's whole group; the program itself starts with all of them at their defaults.
"""

import os
import select
import signal
import stat
from dataclasses import dataclass
from pathlib import Path

from lamplighter.adapters.sessions.processes.table import Identity, boot_id

OUTPUT = "output"
INPUT = "input"
_PROGRAM = "program"
_SHIM = "shim"
_EXIT = "exit"
_START_LIMIT_MS = 30_000

# Whoever started it may be dead before it says so: it then speaks into a broken pipe, and goes on.
# Only builtins, so that an environment without a PATH does no harm; `ps` is for systems without /proc.
_STAMP = """
stamp() {
  if read -r line 2>/dev/null </proc/$1/stat; then set -- $line; start=${22}
  else set -- $(LC_ALL=C /bin/ps -o lstart= -p "$1"); start=$*; fi
}
"""
_INNER = (
    _STAMP
    + """
dir=$1 boot=$2; shift 2
stamp $$
printf '%s\\n%s\\n%s\\n' "$$" "$start" "$boot" >"$dir/program" || exit 125
trap '' PIPE
printf 'started\\n' 2>/dev/null >&3
trap - PIPE
exec 3>&-
exec "$@"
"""
)
_OUTER = (
    _STAMP
    + """
trap : HUP INT QUIT TERM
exec 3>&1 4>&2 2>/dev/null
inner=$1 dir=$2 boot=$3 work=$4; shift 4
stamp $$
printf '%s\\n%s\\n%s\\n' "$$" "$start" "$boot" >"$dir/shim" || exit 125
cd -- "$work" 2>&4 || exit 125
unset OLDPWD
/bin/sh -c "$inner" lamp-program "$dir" "$boot" "$@" >&4 2>&4 4>&-
printf '%s\\n' "$?" >"$dir/exit"
"""
)


@dataclass(frozen=True)
class Launched:
    """`shim` is our child until it is waited for; `started` says that the program's own shell got as far as exec."""

    shim: int
    started: bool


def furnish(home: Path, *, takes_input: bool) -> None:
    """The files a launch needs, made before the session's directory is seen by anyone."""
    os.close(os.open(home / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if takes_input:
        os.mkfifo(home / INPUT, 0o600)


def launch(home: Path, command: tuple[str, ...], env: dict[str, str], work_dir: str) -> Launched:
    """Start the program under a shim of its own and wait until it is about to run. Blocks; raises OSError."""
    output = os.open(home / OUTPUT, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    reading, writing = os.pipe()
    source = _open_input(home)
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["/bin/sh", "-c", _OUTER, "lamp-session", _INNER, str(home), boot_id(), work_dir, *command],
            env,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}),
        )
        os.close(writing)
        writing = -1
        return Launched(pid, started=_hears_start(reading))
    finally:
        for fd in (output, reading, writing, source):
            if fd >= 0:
                os.close(fd)


def program_of(home: Path) -> Identity | None:
    return _identity(home / _PROGRAM)


def shim_of(home: Path) -> Identity | None:
    return _identity(home / _SHIM)


def exit_status_of(home: Path) -> int | None:
    """None where it did not end, or where its shim was killed first. Whole once its newline is there."""
    try:
        text = (home / _EXIT).read_text()
    except OSError:
        return None
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


def _identity(path: Path) -> Identity | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  a hot path
            text = file.read()
    except OSError:
        return None
    lines = text.split("\n")
    if len(lines) != 4 or not lines[0].isdigit():
        return None
    return Identity(int(lines[0]), lines[1], lines[2])
