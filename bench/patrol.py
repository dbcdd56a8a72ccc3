"""An agent dies and is replaced: ours on subprocess and tmux, beside supervisord and a bare loop on pidfds, in one run.

Every agent is the same small shell that writes its name and pid into a pipe and then sleeps. A replacement counts
from the SIGKILL to the line in the pipe. Each of ours is a first relight: the memory of earlier deaths is cleared
between two kills of one agent, for the later ones are meant to be slow; and each peer has come to rest before the next.

    BENCH_AGENTS=200 BENCH_KILLS=200 BENCH_PEER_KILLS=10 BENCH_IDLE_S=32 BENCH_PROVIDERS="subprocess tmux"
    BENCH_SLOW_MS=50 tells on standard error what our daemon logged from every kill that took longer
"""

import contextlib
import itertools
import json
import math
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lamplighter.adapters.control import ask

MANY = int(os.environ.get("BENCH_AGENTS", "200"))
KILLS = int(os.environ.get("BENCH_KILLS", "200"))
PEER_KILLS = int(os.environ.get("BENCH_PEER_KILLS", "10"))
IDLE_S = float(os.environ.get("BENCH_IDLE_S", "61"))
SLOW_MS = float(os.environ.get("BENCH_SLOW_MS", "inf"))
LIMIT_S = 120.0
BIN = Path(sys.executable).parent
AGENT = 'echo "$1 $$" >"$2"; exec sleep 100000'
ENV = {key: value for key, value in os.environ.items() if not key.startswith(("LAMP_", "GC_"))}


@dataclass
class Pipe:
    """Where agents report; it is open both ways, so no writer ever waits for a reader."""

    path: Path
    pids: dict[str, int] = field(default_factory=dict)
    _fd: int = -1
    _rest: bytes = b""

    def open(self) -> None:
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)

    def next(self, deadline: float) -> None:
        ready, _, _ = select.select([self._fd], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise TimeoutError(f"only {len(self.pids)} agents reported")
        *lines, self._rest = (self._rest + os.read(self._fd, 65536)).split(b"\n")
        for line in lines:
            name, pid = line.decode().split()
            self.pids[name] = int(pid)

    def wait(self, count: int) -> float:
        """Seconds until `count` agents have reported since the last clearing."""
        began, deadline = time.monotonic(), time.monotonic() + LIMIT_S
        while len(self.pids) < count:
            self.next(deadline)
        return time.monotonic() - began

    def replaced(self, name: str) -> float:
        """Kill it; the seconds until its successor reports."""
        old, began = self.pids[name], time.monotonic()
        os.kill(old, signal.SIGKILL)
        while self.pids[name] == old:
            self.next(began + LIMIT_S)
        return time.monotonic() - began

    def all_replaced(self) -> float:
        old, self.pids = self.pids, {}
        began = time.monotonic()
        for pid in old.values():
            os.kill(pid, signal.SIGKILL)
        self.wait(len(old))
        return time.monotonic() - began


@dataclass
class Ours:
    root: Path
    provider: str
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, names: list[str], pipe: Path) -> int:
        subprocess.run([str(BIN / "lamp"), "init", str(self.root)], check=True, env=ENV, stdout=subprocess.DEVNULL)
        agents = "".join(
            f"[[agents]]\nname = \"{name}\"\nstart_command = '''set -- {name} {pipe}; {AGENT}'''\n" for name in names
        )
        text = f'[workspace]\nname = "b"\n[session]\nprovider = "{self.provider}"\n[daemon]\nmax_restarts = 0\n'
        (self.root / "city.toml").write_text(text + agents)
        log = (self.root / "bench.log").open("wb")
        self.process = subprocess.Popen(
            [str(BIN / "lamp"), "--city", str(self.root), "up"], env=ENV, stdout=log, stderr=log
        )
        log.close()
        return self.process.pid

    def forget(self, name: str) -> None:
        """Its next death is a first one again."""
        socket = self.root / ".gc/controller.sock"
        ask(socket, "do", operation="agent.unquarantine", ask={"name": name}, actor={"name": "bench"})

    def rest(self) -> float:
        return 0.1  # the last kill is on record, and its file system at rest

    def tell_slow(self, since: float, took_ms: float) -> None:
        at = datetime.fromtimestamp(since, UTC).isoformat()
        lines = (self.root / "bench.log").read_text().splitlines()
        print(f"{took_ms:.0f} ms from {at}:", *[line for line in lines if line[:23] >= at[:23]], sep="\n  ",
              file=sys.stderr)  # fmt: skip

    def servers(self) -> list[int]:
        """Other processes that work for it at rest."""
        asked = subprocess.run(
            ["tmux", "-S", str(self.root / ".gc/tmux.sock"), "display-message", "-p", "#{pid}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return [int(asked.stdout)] if self.provider == "tmux" else []

    def stop(self) -> None:
        if self.process is not None:
            subprocess.run(
                [str(BIN / "lamp"), "--city", str(self.root), "stop"], check=True, env=ENV, stdout=subprocess.DEVNULL
            )
            self.process.wait()


@dataclass
class Supervisord:
    root: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, names: list[str], pipe: Path) -> int:
        self.root.mkdir()
        script = self.root / "agent.sh"
        script.write_text(AGENT)
        text = f"[supervisord]\nnodaemon=true\nlogfile={self.root}/log\npidfile={self.root}/pid\n"
        for name in names:
            text += f"[program:{name}]\ncommand=/bin/sh {script} {name} {pipe}\nautorestart=true\nstartretries=1000\n"
        (self.root / "conf").write_text(text)
        self.process = subprocess.Popen(
            [str(BIN / "supervisord"), "-c", str(self.root / "conf")],
            env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self.process.pid

    def forget(self, name: str) -> None:
        del name

    def rest(self) -> float:
        return 1.3  # one killed within its first second counts as never started

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@dataclass
class Bare:
    root: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, names: list[str], pipe: Path) -> int:
        self.process = subprocess.Popen([sys.executable, __file__, "--bare", str(pipe), *names], env=ENV)
        return self.process.pid

    def forget(self, name: str) -> None:
        del name

    def rest(self) -> float:
        return 0.0

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


def bare(pipe: str, names: list[str]) -> None:
    """The least that relights: a child a name, a pidfd each, one poll for all."""
    poll, names_of = select.poll(), {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def light(name: str) -> None:
        pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", AGENT, "agent", name, pipe], os.environ)
        fd = os.pidfd_open(pid)
        names_of[fd] = (name, pid)
        poll.register(fd, select.POLLIN)

    for name in names:
        light(name)
    try:
        while True:
            for fd, _ in poll.poll():
                name, pid = names_of.pop(fd)
                poll.unregister(fd)
                os.close(fd)
                os.waitpid(pid, 0)
                light(name)
    finally:
        for _, pid in names_of.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def lit(peer: Any, count: int, pipe: Pipe) -> Iterator[tuple[list[str], int, float]]:
    names = [f"a{number}" for number in range(count)]
    pipe.open()
    began = time.monotonic()
    pid = peer.start(names, pipe.path)
    try:
        pipe.wait(count)
        yield names, pid, time.monotonic() - began
    finally:
        peer.stop()
        for left in pipe.pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


def relights(peer: Any, pipe: Pipe, names: list[str], kills: int) -> dict[str, float]:
    times = []
    for name in itertools.islice(itertools.cycle(names), kills):
        if kills > len(names):
            peer.forget(name)
        time.sleep(peer.rest())
        since = time.time()
        times.append(pipe.replaced(name) * 1000)
        if times[-1] > SLOW_MS and isinstance(peer, Ours):
            peer.tell_slow(since, times[-1])
    ranked = sorted(times)
    worst = ranked[math.ceil(len(ranked) * 0.99) - 1]
    return {"kills": kills, "p50_ms": round(statistics.median(ranked), 2), "p99_ms": round(worst, 2)}


def at_rest(pids: list[int]) -> dict[str, float]:
    """Memory, and the share of a core used while nothing happens."""
    before, began = sum(map(cpu, pids)), time.monotonic()
    time.sleep(IDLE_S)
    used = (sum(map(cpu, pids)) - before) / (time.monotonic() - began)
    return {"rss_mb": round(sum(map(rss_mb, pids)), 1), "idle_cpu_percent": round(used * 100, 3)}


def rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def cpu(pid: int) -> float:
    """Seconds, to the nanosecond: the ticks of `stat` are as long as all that happens in a minute of rest."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def supervised(make: Any, base: Path, kills: int) -> dict[str, Any]:
    """All figures of one supervisor."""
    base.mkdir()
    peer, pipe = make(base / "one"), Pipe(base / "p1")
    with lit(peer, 1, pipe) as (names, _, _):
        one = relights(peer, pipe, names, kills)
    peer, pipe = make(base / "many"), Pipe(base / "p2")
    with lit(peer, MANY, pipe) as (names, pid, start):
        time.sleep(2 + peer.rest())
        rest = at_rest([pid, *(peer.servers() if isinstance(peer, Ours) else [])])
        many = relights(peer, pipe, names, min(kills, MANY))
        for name in names:
            peer.forget(name)
        time.sleep(1 + peer.rest())
        every = pipe.all_replaced()
    return {"one": one, "many": many, "all_s": round(every, 2), "start_s": round(start, 2), **rest}


def main() -> None:
    base = Path(tempfile.mkdtemp(prefix="lb"))
    try:
        peers = {
            "bare": supervised(Bare, base / "bare", PEER_KILLS * 3),
            "supervisord": supervised(Supervisord, base / "sup", PEER_KILLS),
        }
        for provider in os.environ.get("BENCH_PROVIDERS", "subprocess tmux").split():
            ours = supervised(lambda root, provider=provider: Ours(root, provider), base / provider, KILLS)
            them = peers["supervisord"]
            ahead = {
                f"{count}_{part}": round(them[count][part] / ours[count][part], 1)
                for count in ("one", "many")
                for part in ("p50_ms", "p99_ms")
            }
            goals = {
                "median under 25 ms": max(ours["one"]["p50_ms"], ours["many"]["p50_ms"]) < 25,
                "median 30x ahead": min(ahead["one_p50_ms"], ahead["many_p50_ms"]) >= 30,
                "p99 30x ahead": min(ahead["one_p99_ms"], ahead["many_p99_ms"]) >= 30,
                "all back no later": ours["all_s"] <= them["all_s"],
                "idle CPU no more": ours["idle_cpu_percent"] <= them["idle_cpu_percent"],
            }
            line = {"bench": "patrol", "provider": provider, "agents": MANY, "ours": ours, **peers,
                    "times_ahead_of_supervisord": ahead, "goals": goals}  # fmt: skip
            print(json.dumps(line), flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        bare(sys.argv[2], sys.argv[3:])
    else:
        main()
