"""Durable deliveries a second and their p99 with 32 senders: a whole city beside a bare Starlette route, in turns.

`python bench/http.py [SECONDS]` prints one JSON line; `python bench/http.py streams` another, about 500 open streams.

`ours` is `lamp up`: it verifies, parses, deduplicates and
commits before it answers, and meanwhile processes what came. `plain` is one Starlette route on the same uvicorn that
checks the token, parses the body and inserts two rows with the bare driver, one commit for each request; `grouped` is
the same with one commit for all requests that wait. All sync to the disk before they answer. SECONDS is the length of
a turn. `cpu_us` is the CPU that the answering process used for each delivery, ours with the processing; on a busy
machine it says more than the rate. `processed_per_s` counts the time until all that was answered is processed too.
"""

# ruff: noqa: E402  this file must not stand in for `http` of the standard library, which the others import
import os
import sys

sys.path[:] = [one for one in sys.path if os.path.abspath(one or ".") != os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH100, PTH120

import asyncio
import itertools
import json
import queue
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.city import CityPaths
from lamplighter.kit import aio
from lamplighter.store.url import open_direct, parse_store_url
from lamplighter.testing.postgres import cluster

SENDERS = 32
TURNS = 3
SECONDS = 1.2
STREAMS = 500
REST_SECONDS = 15
CONNECTIONS = 64
"""A connection takes 6000 a minute, so that many share the load."""
TOKEN = "t" * 40
BODY = json.dumps({"action": "opened", "issue": {"number": 1, "title": "The lamp is out", "body": "x" * 1500}}).encode()
LAMP = [sys.executable, "-m", "lamplighter"]
MAKE = (
    "CREATE TABLE deliveries (id TEXT PRIMARY KEY, body TEXT NOT NULL, received_at BIGINT NOT NULL)",
    "CREATE TABLE outbox (id TEXT PRIMARY KEY, payload TEXT NOT NULL, due_at BIGINT NOT NULL)",
)


# ── the peers, each a process of its own ──────────────────────────────────────────────────────────────────────────


class Plain:
    """One connection, and a commit for each delivery."""

    def __init__(self, url: str) -> None:
        self._lock = threading.Lock()
        if url.startswith("postgresql"):
            import psycopg

            self._postgres: Any = psycopg.connect(url, autocommit=True)
            self._sqlite: Any = None
        else:
            self._postgres, self._sqlite = None, sqlite3.connect(url, check_same_thread=False, isolation_level=None)
            self._sqlite.execute("PRAGMA journal_mode = WAL")
            self._sqlite.execute("PRAGMA synchronous = FULL")
        for sql in MAKE:
            (self._postgres or self._sqlite).execute(sql)

    def write(self, rows: list[tuple[str, str, int]]) -> None:
        db, mark = (self._postgres, "%s") if self._postgres is not None else (self._sqlite, "?")
        with self._lock:
            db.execute("BEGIN")
            for delivery, body, at in rows:
                db.execute(f"INSERT INTO deliveries VALUES ({mark}, {mark}, {mark})", (delivery, body, at))
                db.execute(f"INSERT INTO outbox VALUES ({mark}, {mark}, {mark})", (delivery, delivery, at))
            db.execute("COMMIT")


class Grouped:
    """A thread that commits at once all that waits."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self._waiting: queue.SimpleQueue[tuple[tuple[str, str, int], Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def add(self, row: tuple[str, str, int], done: Callable[[], None]) -> None:
        self._waiting.put((row, done))

    def _work(self) -> None:
        while True:
            several = [self._waiting.get()]
            while not self._waiting.empty():
                several.append(self._waiting.get())
            self._plain.write([row for row, _ in several])
            for _, done in several:
                done()


def serve(kind: str, url: str) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    plain = Plain(url)
    grouped = Grouped(plain) if kind == "grouped" else None
    numbers = itertools.count()

    async def receive(request: Request) -> Response:
        body = await request.body()
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({}, status_code=401)
        text = body.decode()
        json.loads(text)
        row = (f"d-{next(numbers)}", text, time.time_ns())
        if grouped is None:
            await asyncio.to_thread(plain.write, [row])
        else:
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            grouped.add(row, lambda: loop.call_soon_threadsafe(done.set_result, None))  # type: ignore[arg-type]
            await done
        return JSONResponse({"id": row[0]}, status_code=202)

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, for TCP_NODELAY
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(listener.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/hooks/{connection}", receive, methods=["POST"])])
    config = uvicorn.Config(app, log_config=None, access_log=False, http="httptools", ws="none", loop="asyncio")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


# ── contenders ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Contender:
    pid: int
    port: int
    tokens: list[tuple[str, str]]
    """The names of connections, each with its token."""
    settle: Callable[[], None] = lambda: None
    rates: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    refused: int = 0
    cpu: float = 0.0
    lasted: float = 0.0
    settling: float = 0.0
    """The seconds in which it processed what it had answered, after the senders had stopped."""

    def busy(self) -> float:
        """The seconds of CPU that its process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The megabytes that its process holds."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return round(int(status.partition("VmRSS:")[2].split()[0]) / 1024, 1)

    def figures(self) -> dict[str, float]:
        ranked = sorted(self.taken)
        return {
            "per_s": round(statistics.median(self.rates)),
            "slowest_turn": round(min(self.rates)),
            "fastest_turn": round(max(self.rates)),
            "p50_ms": round(statistics.median(ranked) * 1000, 1),
            "p99_ms": round(ranked[int(len(ranked) * 0.99)] * 1000, 1),
            "cpu_us": round(self.cpu / len(ranked) * 1e6),
            "processed_per_s": round(len(ranked) / (self.lasted + self.settling)),
            "refused": self.refused,
        }


@contextmanager
def peer(kind: str, url: str) -> Iterator[Contender]:
    process = subprocess.Popen([sys.executable, __file__, "serve", kind, url], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Contender(process.pid, int(process.stdout.readline()), [("any", TOKEN)])
    finally:
        process.terminate()
        process.wait()


@contextmanager
def ours(root: Path, url: str) -> Iterator[Contender]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}
    subprocess.run([*LAMP, "init", str(root)], check=True, capture_output=True, env=env)
    with (root / "city.toml").open("a") as file:
        file.write(f'\n[api]\nport = 0\n\n[store]\nurl = "{url}"\n')
    process = subprocess.Popen(
        [*LAMP, "up", "--city", str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Stop:"):
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        port = json.loads((root / ".gc/api.json").read_text())["port"]
        owner = (root / ".gc/owner.token").read_text().strip()
        yield Contender(process.pid, port, _connections(port, owner), lambda: _settled(root, url))
    finally:
        process.terminate()
        process.wait()


def _connections(port: int, owner: str) -> list[tuple[str, str]]:
    import httpx2

    with httpx2.Client(base_url=f"http://127.0.0.1:{port}/api/v1", trust_env=False) as client:
        made = []
        for number in range(CONNECTIONS):
            body = {"name": f"c{number}", "provider": "bearer"}
            answer = client.post("/connections", json=body, headers={"authorization": f"Bearer {owner}"}, timeout=60)
            made.append((f"c{number}", str(answer.raise_for_status().json()["secret"])))
        return made


def _settled(root: Path, url: str) -> None:
    """Until all that came is processed, so that it does not take from whoever comes next."""
    paths = CityPaths(root)
    store = open_direct(parse_store_url(url, paths.runtime), paths.city_id())
    try:
        count = "SELECT count(*) AS n FROM deliveries WHERE state = 'waiting'"
        while store.read(lambda tx: tx.db.rows(count, {}))[0]["n"]:
            time.sleep(0.1)
    finally:
        store.close()


# ── senders ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def turn(one: Contender, seconds: float) -> None:
    """32 senders, each on a connection of its own, which sends the next when the last is answered."""
    until = time.perf_counter() + seconds
    senders = itertools.cycle(one.tokens)
    began, before = time.perf_counter(), len(one.taken)
    await asyncio.gather(*(_sender(one, [next(senders) for _ in range(4)], until) for _ in range(SENDERS)))
    one.rates.append((len(one.taken) - before) / (time.perf_counter() - began))


async def _sender(one: Contender, tokens: list[tuple[str, str]], until: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    heads = [
        f"POST /hooks/{name} HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
        + BODY
        for name, token in tokens
    ]
    for sent in itertools.cycle(heads):
        began = time.perf_counter()
        if began >= until:
            break
        writer.write(sent)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        if answer.startswith(b"HTTP/1.1 202"):
            one.taken.append(time.perf_counter() - began)
        else:
            one.refused += 1
    writer.close()


def measure(contenders: dict[str, Contender], seconds: float) -> dict[str, Any]:
    for one in contenders.values():
        aio.run(turn(one, 0.5))
        one.settle()
        one.rates, one.taken, one.refused = [], [], 0
    for number in range(TURNS):
        for name in sorted(contenders, reverse=bool(number % 2)):
            one = contenders[name]
            before = one.busy()
            began = time.perf_counter()
            aio.run(turn(one, seconds))
            stopped = time.perf_counter()
            one.settle()
            one.lasted += stopped - began
            one.settling += time.perf_counter() - stopped
            one.cpu += one.busy() - before
    return {name: one.figures() for name, one in contenders.items()}


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def streams(one: Contender, token: str) -> dict[str, Any]:
    """What open streams of events cost at rest, and how long one event takes to all of them."""
    import httpx2

    asked = f"Host: 127.0.0.1:{one.port}\r\nAuthorization: Bearer {token}\r\n"
    found: dict[str, Any] = {"bench": "streams", "streams": STREAMS, "before": await _at_rest(one)}
    opened = []
    for _ in range(STREAMS):
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(f"GET /api/v1/stream?content=events HTTP/1.1\r\n{asked}\r\n".encode())
        opened.append((reader, writer))
    heads = await asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in opened))
    found |= {"answered_200": sum(b" 200 " in head for head in heads), "with_them": await _at_rest(one)}
    seeing = [asyncio.create_task(_seen(reader)) for reader, _ in opened]
    began, busy = time.perf_counter(), one.busy()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{one.port}", trust_env=False) as client:
        headers = {"authorization": f"Bearer {token}"}
        (await client.post("/api/v1/events", json={"type": "lamp.lit"}, headers=headers)).raise_for_status()
    at = sorted(each - began for each in await asyncio.gather(*seeing))
    found["event_ms"] = {
        "first": round(at[0] * 1000),
        "p50": round(at[len(at) // 2] * 1000),
        "last": round(at[-1] * 1000),
    }
    found["event_cpu_ms"] = round((one.busy() - busy) * 1000)
    for _, writer in opened:
        writer.close()
    return found


async def _at_rest(one: Contender) -> dict[str, float]:
    before = one.busy()
    await asyncio.sleep(REST_SECONDS)
    cpu = (one.busy() - before) / REST_SECONDS * 100
    return {"mb": one.memory(), "cpu_percent": round(cpu, 2)}


async def _seen(reader: asyncio.StreamReader) -> float:
    while b"lamp.lit" not in await reader.readuntil(b"\n"):
        pass
    return time.perf_counter()


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], sys.argv[3])
        return
    if sys.argv[1:2] == ["streams"]:
        with tempfile.TemporaryDirectory(prefix="lamp-http-") as made, ours(Path(made) / "town", "") as one:
            token = (Path(made) / "town/.gc/owner.token").read_text().strip()
            print(json.dumps(aio.run(streams(one, token))), flush=True)
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    found: dict[str, Any] = {"bench": "http", "senders": SENDERS, "body_bytes": len(BODY)}
    for kind in ("sqlite", "postgres"):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lamp-http-")))
            server = stack.enter_context(cluster()) if kind == "postgres" else None
            urls = {
                name: server.database() if server is not None else "" if name == "ours" else str(folder / f"{name}.db")
                for name in ("ours", "plain", "grouped")
            }
            contenders = {
                "ours": stack.enter_context(ours(folder / "town", urls["ours"])),
                "plain": stack.enter_context(peer("plain", urls["plain"])),
                "grouped": stack.enter_context(peer("grouped", urls["grouped"])),
            }
            found[kind] = measure(contenders, seconds)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
