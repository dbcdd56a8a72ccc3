"""The console of a large city: what each page takes on the server, and what a first visit weighs.

`python -P bench/console.py [RUNS] [AUTOMATIONS]` makes a city on SQLite with 1,000,000 runs and 5,000 automations,
serves it by `lamp up`, and prints one JSON line: for each page what a request takes of the server's processors, the
milliseconds it takes over loopback (median and slowest of those taken) and its size; and the size of a first visit to
the start page with its style sheet and script. Then 200 pages are open, each with its stream, which fetch themselves
again as the console's script does, while 20 events a second happen: how late a signal is, how often each page is
fetched, how long that takes, and what it costs the server.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from lamplighter.app.automations import rules_of
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import oldest_id
from lamplighter.services.automations import editing
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine import stamp
from lamplighter.store.tx import Tx

RUNS, AUTOMATIONS = 1_000_000, 5_000
BUSY = 200
"""So many automations share the runs."""
TAKEN = 15
SETTLES = 5
"""So many seconds the city is left alone before it is measured."""
VIEWERS, EVENTS_A_SECOND, WATCHED_S = 200, 20, 15
PAGES = ("/", "/inbox", "/runs", "/runs?q=state:failed", "/runs?q=automation:aut-0007 state:succeeded",
         "/runs?q=automation:aut-00* since:2d", "/runs/RUN", "/automations", "/automations/new", "/automations/new/own",
         "/automations/aut-0007", "/automations/aut-0007/edit", "/agents", "/calendar", "/cost", "/events", "/beads",
         "/nodes", "/settings", "/settings/people", "/settings/audit", "/search?q=aut-00")  # fmt: skip
HOUR = 3_600_000_000
RUN_ROW = """
    INSERT INTO runs (city_id, id, automation_id, automation, action, state, trigger_id, trigger_kind, trigger_event_id,
                      definition, created_at, started_at, ended_at, deadline_at, last_activity_at)
    VALUES (?, ?, ?, ?, 'exec', ?, 'cron', 'cron', NULL, ?, ?, ?, ?, ?, ?)"""
ROLLUP_ROWS = """
    INSERT INTO run_rollups (city_id, hour, automation, outcome, model,
                             runs, agent_runs, told, duration_us, cost, tokens)
    SELECT city_id, ended_at - ended_at % HOUR, automation, state, '', COUNT(*), 0, 0, COUNT(*) * 2000000, 0.0, 0
    FROM runs WHERE city_id = :city GROUP BY 1, 2, 3, 4""".replace("HOUR", str(HOUR))


def fill(city: OpenCity, runs: int, automations: int) -> None:
    rules, ctx = rules_of(city.config.city, city.settings.env), city.context()

    def definitions(tx: Tx) -> None:
        for number in range(automations):
            body = {"name": f"aut-{number:04}", "gate": "cron", "schedule": "30 3 29 2 *", "exec": "make lamps"}
            editing.create(tx, body, rules=rules, ctx=ctx)

    def made(named: list[AutomationRow]) -> Iterator[tuple[Any, ...]]:
        """A month of runs, with ids as the product makes them."""
        apart, now = timedelta(days=30) / runs, SystemClock().now()
        for number in range(runs):
            one, at = named[number % len(named)], now - apart * (runs - number)
            state = "failed" if number % 17 == 0 else "canceled" if number % 100 == 1 else "succeeded"
            times = (stamp(at), stamp(at), stamp(at) + 2_000_000, stamp(at) + HOUR, stamp(at))
            yield (city.paths.city_id(), oldest_id("run", at), one.id, one.scoped_name, state, one.definition, *times)

    def rows(tx: Tx) -> None:
        tx.db.connection.executemany(RUN_ROW, made(tx.automations.page(limit=BUSY)))  # type: ignore[attr-defined]
        tx.db.execute(ROLLUP_ROWS, {"city": city.paths.city_id()})

    city.store.transact(definitions)
    city.store.transact(rows)


@contextmanager
def served(root: Path) -> Iterator[tuple[str, int]]:
    """The link that signs in, and the daemon's process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "--city", str(root), "up"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        said = iter(process.stdout or ())
        yield next(line for line in said if "/sign-in/" in line).strip(), process.pid
    finally:
        process.terminate()
        process.wait(timeout=120)


def cpu_ms(process: int) -> float:
    """What the process has used of the processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def measure(client: httpx2.Client, path: str, process: int, idle: float) -> dict[str, Any]:
    """`idle` is what the process uses of the processors in a millisecond without requests."""
    taken, size, used = [], 0, cpu_ms(process)
    for _ in range(TAKEN):
        began = time.perf_counter()
        answer = client.get(path)
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, (path, answer.status_code)
        size = len(answer.content)
    server = (cpu_ms(process) - used - idle * sum(taken)) / TAKEN
    return {
        "server_ms": round(max(0.0, server), 1), "p50_ms": round(statistics.median(taken), 1),
        "slowest_ms": round(max(taken), 1), "kB": round(size / 1000, 1),
    }  # fmt: skip


def idling(process: int) -> float:
    used, began = cpu_ms(process), time.perf_counter()
    time.sleep(SETTLES)
    return (cpu_ms(process) - used) / ((time.perf_counter() - began) * 1000)


def first_visit(client: httpx2.Client) -> float:
    page = client.get("/")
    files = set(re.findall(r'(?:src|href)="(/console/[^"]+)"', page.text))
    return round((len(page.content) + sum(len(client.get(one).content) for one in files)) / 1000, 1)


class Page:
    """An open page: as the script does, it waits a second between two fetches, and longer where they take long."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.signals: list[float] = []
        self.taken: list[float] = []
        self.refused = 0
        self._wanted = asyncio.Event()

    async def listen(self) -> None:
        async with self._client.stream("GET", "/api/v1/stream", timeout=None) as lines:
            async for line in lines.aiter_lines():
                if line.startswith("event: changed"):
                    self.signals.append(time.time())
                    self._wanted.set()

    async def show(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            began = time.perf_counter()
            answer = await self._client.get("/runs")
            took = time.perf_counter() - began
            self.refused += answer.status_code != 200
            self.taken.append(took)
            await asyncio.sleep(max(1.0, 4 * took) - took)


async def live(site: str, cookie: str, token: dict[str, str], process: int) -> dict[str, Any]:
    """Pages that look at the runs, while events happen that change what they show."""
    told: list[float] = []
    async with AsyncExitStack() as stack:
        limits = httpx2.Limits(max_connections=2 * VIEWERS + 10, max_keepalive_connections=2 * VIEWERS + 10)
        made = httpx2.AsyncClient(
            base_url=site, trust_env=False, timeout=120, limits=limits, headers={"Cookie": cookie}
        )
        client = await stack.enter_async_context(made)
        pages = [Page(client) for _ in range(VIEWERS)]
        tasks = [asyncio.create_task(one) for page in pages for one in (page.listen(), page.show())]
        await asyncio.sleep(SETTLES)
        for page in pages:
            page.signals.clear()
            page.taken.clear()
        used, began = cpu_ms(process), time.perf_counter()
        for number in range(EVENTS_A_SECOND * WATCHED_S):
            told.append(time.time())
            done = await client.post("/api/v1/automations/aut-0000/run", headers=token, json={})
            assert done.status_code in {201, 409}, done.text
            await asyncio.sleep(max(0.0, (number + 1) / EVENTS_A_SECOND - (time.perf_counter() - began)))
        lasted = time.perf_counter() - began
        cores = (cpu_ms(process) - used) / 1000 / lasted
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    late = sorted(min((at - one for at in page.signals if at >= one), default=99.0) for page in pages for one in told)
    taken = sorted(one for page in pages for one in page.taken) or [0.0]
    return {
        "pages": VIEWERS, "events_a_second": round(len(told) / lasted, 1), "server_cores": round(cores, 2),
        "signal_p50_ms": round(late[len(late) // 2] * 1000), "signal_p95_ms": round(late[len(late) * 95 // 100] * 1000),
        "fetches_a_second": round(len(taken) / lasted, 1), "fetch_p50_ms": round(taken[len(taken) // 2] * 1000),
        "fetch_p95_ms": round(taken[len(taken) * 95 // 100] * 1000), "refused": sum(page.refused for page in pages),
    }  # fmt: skip


def owner(root: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {(root / '.gc' / 'owner.token').read_text().strip()}"}


def main() -> None:
    runs, automations = (
        int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((1, RUNS), (2, AUTOMATIONS))
    )
    with tempfile.TemporaryDirectory(prefix="lamp-bench-") as folder:
        root = Path(folder) / "town"
        command = [sys.executable, "-m", "lamplighter", "init", str(root), "--name", "town"]
        subprocess.run(command, check=True, capture_output=True)
        (root / "city.toml").write_text('[workspace]\nname = "town"\n[api]\nport = 0\n')
        city = open_city(Settings(root, root, "bench", None, {}))
        began = time.perf_counter()
        fill(city, runs, automations)
        filled = round(time.perf_counter() - began, 1)
        city.close()
        with served(root) as (link, process):
            site = link.partition("/sign-in")[0]
            with httpx2.Client(base_url=site, trust_env=False, timeout=120) as client:
                assert client.get(link).status_code == 303
                weight = first_visit(client)  # loads the console, too
                time.sleep(SETTLES)
                idle = idling(process)
                newest = client.get("/api/v1/runs?limit=1", headers=owner(root)).json()["data"][0]["id"]
                pages = {path: measure(client, path.replace("RUN", newest), process, idle) for path in PAGES}
                cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
                watched = asyncio.run(live(site, cookie, owner(root), process))
    told = {"bench": "console", "store": "sqlite", "runs": runs, "automations": automations, "filled_s": filled}
    print(
        json.dumps(told | {"first_visit_kB": weight, "load": os.getloadavg()[0], "pages": pages, "live": watched}),
        flush=True,
    )


if __name__ == "__main__":
    main()
