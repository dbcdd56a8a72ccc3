"""The scheduler: what a tick costs with 10 to 100,000 timed automations, how fast it fires, how little it does at rest.

`python bench/scheduler.py [growth|firing|event|idle] …` runs the named parts, all without a name; one JSON line each.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pipeline import agents_in

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.daemon.automation_loops import AutomationLoops, Outside
from lamplighter.domain.city.model import City, Workspace
from lamplighter.kit import aio
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import editing
from lamplighter.services.context import acting
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.store.engine.db import stamp
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, SqliteUrl, migrate, open_direct, open_store

CITY = "cty_bench"
SIZES = (10, 1_000, 10_000, 100_000)
DUE = 100
TICKS = 300
IDLE_SECONDS = 3.0
BURST = 400
OFFERED = 40
SUSTAINED_SECONDS = 10
EVENTS = 60
REST_SECONDS = 62
PRINT_TIME = "date +%s%N"
CLOCK = SystemClock()
IDS = IdSource(CLOCK)
RULES = Rules(ZoneInfo("UTC"))


def say(**figures: Any) -> None:
    print(json.dumps({"bench": "scheduler"} | figures), flush=True)


def spread(values: list[float], digits: int = 2) -> dict[str, float]:
    return {"p50": round(percentile(values, 0.5), digits), "p99": round(percentile(values, 0.99), digits)}


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def multiply(tx: Tx, name: str, copies: int) -> None:
    """Copies of one automation and its trigger: what a city of that size holds, without making each by hand."""
    row = tx.automations.named(name)
    assert row is not None
    many = [{"city": CITY, "old": row.id, "id": f"{row.id}{n}", "name": f"{name}{n}"} for n in range(copies)]
    tx.db.execute_many(
        """INSERT INTO automations (id, city_id, scoped_name, name, source, definition, enabled, armed_at, created_at,
                                    created_by, updated_at)
        SELECT :id, city_id, :name, :name, source, definition, enabled, armed_at, created_at, created_by, updated_at
        FROM automations WHERE city_id = :city AND id = :old""",
        many,  # type: ignore[arg-type]
    )
    tx.db.execute_many(
        """INSERT INTO triggers (city_id, automation_id, id, kind, position, armed, registered_at, next_due_at, zone)
        SELECT city_id, :id, id, kind, position, armed, registered_at, next_due_at, zone
        FROM triggers WHERE city_id = :city AND automation_id = :old""",
        many,  # type: ignore[arg-type]
    )


async def add(store: Store, name: str, **keys: Any) -> None:
    body = {"name": name, "exec": "true", "gate": "manual"} | keys
    await store.transact(editing.create, body, rules=RULES, ctx=acting("bench", CLOCK.now(), IDS))


@asynccontextmanager
async def parts(root: Path) -> AsyncIterator[tuple[Store, AutomationLoops]]:
    place = SqliteUrl(root / "lamp.db", root)
    migrate(place)
    wakes = Wakes()
    store = open_store(place, CITY, wakes)
    await store.transact(lambda tx: tx.cities.ensure("bench", CLOCK.now()))
    await store.transact(lambda tx: tx.owners.register(Owner("own_b", "bench", "here", os.getpid(), CLOCK.now())))
    runner = ShimCommands(root / "commands", city=CITY, clock=CLOCK, ids=IDS)
    outside = Outside(runner, lambda _name, _rig: None, lambda: None, dict(os.environ), agents_in(root, store))  # type: ignore[arg-type, return-value]
    city = City(workspace=Workspace(name="bench"), root=root, prefix="be")
    loops = AutomationLoops.build(
        city, RULES, outside, store=store, clock=CLOCK, ids=IDS, me=review.Worker("own_b", "here")
    )
    loops.listen(wakes)
    try:
        yield store, loops
    finally:
        await store.close()


async def growth(size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with parts(Path(directory)) as (store, loops):
            await add(store, "a", gate="schedule", cadence="daily", hour=(CLOCK.now().hour + 12) % 24)
            await store.transact(multiply, "a", size - 1)
            await loops.scheduler.tick()
            ticks = []
            for _ in range(TICKS):
                began = time.perf_counter()
                await loops.scheduler.tick()
                ticks.append(time.perf_counter() - began)
            cpu = await idle_cpu(loops)
            due = await fire_due(store, loops, min(DUE, size))
            say(
                part="growth",
                automations=size,
                idle_tick_us=spread([tick * 1e6 for tick in ticks], 0),
                idle_cpu_percent_of_a_core=round(cpu * 100, 3),
                **due,
            )


async def idle_cpu(loops: AutomationLoops) -> float:
    loop = asyncio.create_task(loops.scheduler.loop())
    await asyncio.sleep(0.2)
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(IDLE_SECONDS)
    used = (time.process_time() - cpu) / (time.perf_counter() - began)
    loop.cancel()
    await asyncio.wait({loop})
    return used


async def fire_due(store: Store, loops: AutomationLoops, count: int) -> dict[str, Any]:
    now = stamp(CLOCK.now() - timedelta(seconds=1))
    mark = """UPDATE triggers SET next_due_at = :now WHERE city_id = :city AND automation_id IN (
        SELECT automation_id FROM triggers WHERE city_id = :city ORDER BY automation_id LIMIT :count)"""
    await store.transact(lambda tx: tx.db.execute(mark, {"now": now, "city": CITY, "count": count}))
    began = time.perf_counter()
    fired = await loops.scheduler.tick()
    took = time.perf_counter() - began
    return {"due": count, "fired": len(fired), "tick_with_due_ms": round(took * 1e3, 2)}


async def lateness(store: Store) -> list[float]:
    """Milliseconds from when each was due to when its command ran: the commands print the time."""
    asked = """SELECT runs.output_tail AS said, trigger_events.due_at AS due FROM runs
        JOIN trigger_events ON trigger_events.id = runs.trigger_event_id WHERE runs.state = 'succeeded'"""
    rows = await store.read(lambda tx: tx.db.rows(asked, {}))
    return [int(row["said"]) / 1e6 - row["due"] / 1e3 for row in rows]


async def firing() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with parts(Path(directory)) as (store, loops):
            await add(store, "burst", gate="cooldown", interval="10h")
            await store.transact(multiply, "burst", BURST - 1)
            began = time.perf_counter()
            await loops.scheduler.tick()
            await loops.work_off()
            took = time.perf_counter() - began
            say(part="burst", due_at_once=BURST, worked_to_their_end_per_second=round(BURST / took, 1))
    with tempfile.TemporaryDirectory() as directory:
        async with parts(Path(directory)) as (store, loops):
            await sustained(store, loops)


async def sustained(store: Store, loops: AutomationLoops) -> None:
    """So many cooldowns of a second, spread over it, each a real command; from due to started."""
    children = [asyncio.create_task(child.run()) for child in loops.children()]
    for number in range(OFFERED):
        await add(store, f"often{number}", exec=PRINT_TIME, gate="cooldown", interval="1s")
        await asyncio.sleep(1 / OFFERED)
    await asyncio.sleep(SUSTAINED_SECONDS)
    for child in reversed(children):
        child.cancel()
    await asyncio.wait(children)
    await loops.worker.tasks.all_done()
    found = await lateness(store)
    say(
        part="sustained",
        offered_per_second=OFFERED,
        started_per_second=round(len(found) / (SUSTAINED_SECONDS + 1), 1),
        due_to_started_ms=spread(found),
    )


async def event() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with parts(Path(directory)) as (store, loops):
            await add(store, "hears", exec=PRINT_TIME, gate="event", on="bench.rang", overlap="allow")
            children = [asyncio.create_task(child.run()) for child in loops.children()]
            await asyncio.sleep(0.3)
            for _ in range(EVENTS):
                ctx = acting("bench", CLOCK.now())
                await store.transact(lambda tx, ctx=ctx: tx.events.append(ctx.event("bench.rang")))
                await asyncio.sleep(0.1)
            for child in reversed(children):
                child.cancel()
            await asyncio.wait(children)
            await loops.worker.tasks.all_done()
            found = await lateness(store)
            say(
                part="event",
                events=EVENTS,
                runs=len(found),
                emitted_to_started_ms=spread(found),
            )


def idle() -> None:
    """A whole daemon at rest with 1,000 automations, ten of them conditions; its checks count with it."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "town"
        lamp = [sys.executable, "-m", "lamplighter"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}
        subprocess.run([*lamp, "init", str(root)], check=True, capture_output=True, env=env)
        paths = CityPaths(root)
        furnish(SqliteUrl(paths.runtime / "lamp.db", paths.runtime), paths.city_id())
        daemon = subprocess.Popen([*lamp, "up", "--city", str(root)], stdout=subprocess.PIPE, text=True, env=env)
        assert daemon.stdout is not None
        while "The lamps are lit" not in daemon.stdout.readline():
            continue
        time.sleep(3)
        before = cpu_of(daemon.pid)
        time.sleep(REST_SECONDS)
        used = (cpu_of(daemon.pid) - before) / REST_SECONDS
        daemon.terminate()
        daemon.wait(timeout=30)
        say(part="idle", automations=1_000, conditions=10, cpu_percent_of_a_core=round(used * 100, 2))


def furnish(place: Place, city: str) -> None:
    global CITY  # noqa: PLW0603  the copies belong to the city that was just made
    CITY = city
    store = open_direct(place, city)
    ctx = acting("bench", CLOCK.now())
    body = {"name": "daily", "exec": "true", "gate": "schedule", "cadence": "daily"}
    hour = {"hour": (CLOCK.now().hour + 12) % 24}
    store.transact(editing.create, body | hour, rules=RULES, ctx=ctx)
    store.transact(multiply, "daily", 989)
    for number in range(10):
        asked = {"name": f"asked{number}", "exec": "true", "gate": "condition", "check": "exit 1"}
        store.transact(editing.create, asked, rules=RULES, ctx=ctx)
    store.close()


def cpu_of(pid: int) -> float:
    """Seconds of processor time of a process and of the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[place]) for place in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    wanted = set(sys.argv[1:]) or {"growth", "firing", "event", "idle"}
    if "growth" in wanted:
        for size in SIZES:
            aio.run(growth(size))
    if "firing" in wanted:
        aio.run(firing())
    if "event" in wanted:
        aio.run(event())
    if "idle" in wanted:
        idle()


if __name__ == "__main__":
    main()
