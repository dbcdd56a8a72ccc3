"""Five thousand bad connections against a city that goes on with its work."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

BAD = 5_000
AT_ONCE = 1_200
WITHIN = 600.0
SETTLE = 60.0
LARGEST_GROWTH_KB = 40 << 10
GIANT = b"a" * (4 << 20)

TICK = '[automation]\ngate = "cooldown"\ninterval = "1s"\nexec = "date +%s >> ticks.txt"\n'
AGENT = '[automation]\ngate = "manual"\n\n[automation.agent]\nprompt = "Go."\npreset = "scripted"\n'
CITY = """
[api]
port = 0
public_url = "https://lamp.example.org"

[providers.scripted]
command = "{python}"
args = ["agent.py"]
"""
SCRIPT = """
import json, os, sys, time, urllib.request

run = os.environ["LAMP_RUN_ID"]
token = open(os.environ["LAMP_RUN_TOKEN_FILE"]).read().strip()
port = json.load(open(os.path.join(os.environ["LAMP_CITY"], ".gc", "api.json")))["port"]
body = {"completion_id": f"run:{run}:completion:v1", "outcome": "succeeded", "summary_markdown": "Lit."}
for attempt in range(20):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/runs/{run}/complete", json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=30).read()
        break
    except OSError as error:
        with open("refused.txt", "a") as file:
            print(attempt, error, file=file)
"""


@dataclass(frozen=True)
class Daemon:
    root: Path
    pid: int
    port: int

    def lamp(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "lamplighter", "--city", str(self.root), *arguments],
            check=True, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return done.stdout

    @property
    def rss_kb(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208  the names alone

    @property
    def ticks(self) -> int:
        return len((self.root / "ticks.txt").read_text().splitlines())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def get(self, path: str = "/healthz", host: str | None = None) -> int:
        with self.connect() as line:
            named = host or f"127.0.0.1:{self.port}"
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n".encode())
            return int(line.recv(200).split()[1])


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    root = tmp_path / "town"
    subprocess.run([sys.executable, "-m", "lamplighter", "init", str(root)], check=True, capture_output=True)
    with (root / "city.toml").open("a") as file:
        file.write(CITY.format(python=sys.executable))
    (root / "agent.py").write_text(SCRIPT)
    for name, text in (("tick", TICK), ("light", AGENT)):
        folder = root / ".gc" / "formulas" / "automations" / name
        folder.mkdir(parents=True)
        (folder / "automation.toml").write_text(text)
    started = Daemon(root, 0, 0)
    started.lamp("daemon", "start")
    pid = int((root / ".gc" / "daemon.pid").read_text())
    port = json.loads((root / ".gc" / "api.json").read_text())["port"]
    try:
        yield Daemon(root, pid, port)
    finally:
        started.lamp("daemon", "stop")


def idle(_line: socket.socket) -> None:
    """Says nothing."""


def slow_header(line: socket.socket) -> None:
    line.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: a")


def slow_body(line: socket.socket) -> None:
    host = f"127.0.0.1:{line.getpeername()[1]}".encode()
    line.sendall(b"POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\n{" % host)


def giant_header(line: socket.socket) -> None:
    line.sendall(b"GET /healthz HTTP/1.1\r\nX: " + GIANT)


def many_headers(line: socket.socket) -> None:
    line.sendall(b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 100_000)


def garbage(line: socket.socket) -> None:
    line.sendall(os.urandom(2000))


def half_closed(line: socket.socket) -> None:
    line.sendall(b"GET /healthz HTT")
    line.shutdown(socket.SHUT_WR)


KINDS: tuple[Callable[[socket.socket], None], ...] = (
    idle, slow_header, slow_body, giant_header, many_headers, garbage, half_closed,
)  # fmt: skip


def end_of(line: socket.socket) -> str:
    """How the city ended it."""
    line.settimeout(SETTLE)
    try:
        found = line.recv(200)
        while found and line.recv(1 << 16):
            continue
    except TimeoutError:
        return "held"
    except OSError:
        return "cut"
    return found.split()[1].decode() if found.startswith(b"HTTP/") else "cut"


def attack(daemon: Daemon, numbers: Iterator[int], found: Counter[str], lock: threading.Lock) -> None:
    """Open some, then wait for the end of each, until all numbers are used."""
    while True:
        with lock:
            mine = list(islice(numbers, 50))
        if not mine:
            return
        lines = []
        ends: list[str] = []
        for number in mine:
            line = daemon.connect()
            try:
                KINDS[number % len(KINDS)](line)
            except OSError:
                ends.append("cut while sending")
                line.close()
            else:
                lines.append(line)
        ends += [end_of(line) for line in lines]
        for line in lines:
            line.close()
        with lock:
            found.update(ends)


def honest(daemon: Daemon, stop: threading.Event, found: Counter[str], slowest: list[float]) -> None:
    while not stop.wait(0.2):
        began = time.monotonic()
        try:
            found[str(daemon.get())] += 1
        except (OSError, IndexError):
            found["failed"] += 1
        slowest.append(time.monotonic() - began)


def test_five_thousand_bad_connections(daemon: Daemon, counts: dict[str, object]) -> None:
    assert daemon.get() == 200
    assert daemon.get(host="lamp.example.org") == 200
    assert daemon.get(host="evil.example") == 403
    deadline = time.monotonic() + 60
    while not (daemon.root / "ticks.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    rss, descriptors, ticks, began = daemon.rss_kb, daemon.descriptors, daemon.ticks, time.monotonic()
    ends: Counter[str] = Counter()
    health: Counter[str] = Counter()
    slowest: list[float] = []
    numbers, lock, stop = iter(range(BAD)), threading.Lock(), threading.Event()
    watching = threading.Thread(target=honest, args=(daemon, stop, health, slowest))
    attackers = [threading.Thread(target=attack, args=(daemon, numbers, ends, lock)) for _ in range(AT_ONCE // 50)]
    for thread in (watching, *attackers):
        thread.start()
    run = json.loads(daemon.lamp("automation", "run", "light", "--wait", "--json"))
    status = json.loads(daemon.lamp("status", "--json"))
    peak = daemon.rss_kb
    for thread in attackers:
        thread.join(WITHIN)
    took = time.monotonic() - began
    stop.set()
    watching.join(60)
    refused = daemon.root / "refused.txt"
    log = daemon.root / ".gc" / "daemon.log"
    counts |= {
        "bad": sum(ends.values()),
        "ends": dict(ends),
        "honest": dict(health),
        "slowest_honest_s": round(max(slowest), 2),
        "took_s": round(took, 1),
        "ticks": daemon.ticks - ticks,
        "run": run["state"],
        "agent_retries": len(refused.read_text().splitlines()) if refused.exists() else 0,
        "rss_kb": [rss, peak, daemon.rss_kb],
        "log_lines": len(log.read_text().splitlines()),
    }
    until = time.monotonic() + SETTLE
    while daemon.descriptors > descriptors + 3 and time.monotonic() < until:
        time.sleep(0.5)
    counts["descriptors"] = [descriptors, daemon.descriptors]
    assert sum(ends.values()) == BAD
    assert ends["held"] == 0
    assert set(health) == {"200"}
    assert run["state"] == "succeeded"
    assert status["controller"]["running"]
    assert daemon.ticks - ticks >= took / 4
    assert max(daemon.rss_kb, peak) - rss < LARGEST_GROWTH_KB
    assert daemon.descriptors <= descriptors + 3
    assert daemon.get() == 200
