"""Runs through the whole pipeline, fired to ended: with an action that does nothing, a no-op command, a minimal agent.

`python bench/pipeline.py [own|latency|peers] …` runs the named parts, all without a name; one JSON line each. With two
workers on PostgreSQL, one is this process and the other one is started by it.
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

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.adapters.sessions.commands import ShimCommands
from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.adapters.sessions.seeding import write_seeds
from lamplighter.app.selecting import LazySelector
from lamplighter.app.wakeups import listening
from lamplighter.daemon.automations import Agents, AutomationLoops, Outside
from lamplighter.domain.access import of_run
from lamplighter.domain.acts import Act
from lamplighter.domain.city.model import City, Workspace
from lamplighter.domain.city.sections import Runs
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.sessions.model import Seen, SessionSpec
from lamplighter.kit import aio, heap, log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import Command, CommandEnded
from lamplighter.services import automations, firing, runs
from lamplighter.services.completing import Completions
from lamplighter.services.rules import Rules
from lamplighter.store.owners import Owner
from lamplighter.store.place import Place, SqlitePlace, migrate, open_store, parse_place
from lamplighter.store.tx import Store, Tx
from lamplighter.store.wakes import Wakes
from lamplighter.testing.postgres import Cluster, cluster

CITY = "cty_bench"
COUNTS = {"nothing": 1500, "exec": 100, "agent": 150}
WARM_UP = 50
"""Runs before those that count: a server at work has statistics of its tables, and they are made after these."""
FIRED_AT_ONCE = 256
SINGLE = 200
PEER_JOBS = 300
CLOCK = SystemClock()
IDS = IdSource(CLOCK)
RULES = Rules(ZoneInfo("UTC"))


def say(**figures: Any) -> None:
    print(json.dumps({"bench": "pipeline"} | figures), flush=True)


class Nothing(ShimCommands):
    """A command that is over as soon as it is begun; when that was is kept, for the latency of a start."""

    began: dict[str, float]

    async def run(self, command: Command) -> CommandEnded:
        self.began[command.key] = time.perf_counter()
        return CommandEnded(0, CLOCK.now(), timedelta(0))

    async def forget(self, key: str) -> None:
        del key


class Completing(FakeProvider):
    """Sessions in this process whose program completes its run as soon as it is started, and ends."""

    service: Completions

    async def start(self, spec: SessionSpec) -> Seen:
        seen = await super().start(spec)
        said = {"run_id": spec.name, "completion_id": completion_id(spec.name), "outcome": "succeeded"}
        await self.service.complete(parse(said), caller=of_run(spec.name))
        self.end(spec.name)
        return seen


def agents_in(root: Path, store: Store) -> Agents:
    sessions = Completing(CLOCK, IDS, city=CITY)
    sessions.service = Completions(store, CLOCK, IDS)
    env = dict(os.environ)
    return Agents(
        sessions=sessions,
        provider="fake",
        workshop=FileRunWorkshop(root / ".gc", env, write_seeds),
        worktrees=GitWorktrees(root / ".gc" / "worktrees", Git(env)),
        artifacts=LocalArtifacts(root / ".gc" / "artifacts"),
        selector=LazySelector(env),
        api_url=lambda: None,
    )


@asynccontextmanager
async def process(place: Place, root: Path, *, real: bool, owner: str) -> AsyncIterator[tuple[Store, AutomationLoops]]:
    """The parts of one process of a city, as the daemon puts them together, at work."""
    wakes = Wakes()
    store = open_store(place, CITY, wakes)
    await store.transact(lambda tx: tx.cities.ensure("bench", CLOCK.now()))
    await store.transact(lambda tx: tx.owners.register(Owner(owner, "bench", "here", os.getpid(), CLOCK.now())))
    kind = ShimCommands if real else Nothing
    runner = kind(root / ".gc" / "commands", city=CITY, clock=CLOCK, ids=IDS)
    if isinstance(runner, Nothing):
        runner.began = {}
    outside = Outside(runner, lambda _name, _rig: None, lambda: None, dict(os.environ), agents_in(root, store))  # type: ignore[arg-type, return-value]
    city = City(workspace=Workspace(name="bench"), root=root, prefix="be", runs=Runs(isolation="none"))
    loops = AutomationLoops.build(
        city, RULES, outside, store=store, clock=CLOCK, ids=IDS, me=runs.Worker(owner, "here")
    )
    with listening(place, owner, wakes):
        loops.listen(wakes)
        working = [asyncio.create_task(part()) for part in (loops.dispatcher.loop, loops.worker.loop)]
        try:
            yield store, loops
        finally:
            for task in working:
                task.cancel()
            await asyncio.wait(working)
            await loops.worker.stop()
            await loops.close()
            await store.close()


async def add(store: Store, name: str, kind: str) -> None:
    body: dict[str, Any] = {"name": name, "gate": "manual", "overlap": "allow"}
    body |= {"agent": {"prompt": "true", "preset": "shell"}} if kind == "agent" else {"exec": "true"}
    act = Act("bench", CLOCK.now())
    await store.transact(automations.create, body, rules=RULES, ids=IDS, act=act)


async def fire(loops: AutomationLoops, name: str) -> str:
    fired = await loops.worker.fire(firing.ByHand(name), act=Act("bench", CLOCK.now()))
    return fired.run


def under_way(tx: Tx) -> bool:
    pending = (
        "SELECT 1 AS found FROM outbox WHERE city_id = :city AND state = :state AND kind <> 'stop_session' LIMIT 1"
    )
    return tx.runs.any_active() or any(
        tx.db.row(pending, {"city": CITY, "state": state}) is not None for state in ("pending", "claimed")
    )


async def ready(loops: AutomationLoops, kind: str) -> list[str]:
    """Automations of that kind in a city that has been at work for a while."""
    names = [f"{kind}{number}" for number in range(16)]
    for name in names:
        await add(loops.store, name, kind)
    await through(loops, names, WARM_UP)
    await loops.store.transact(lambda tx: tx.db.execute("ANALYZE", {}))
    return names


async def through(loops: AutomationLoops, names: list[str], count: int) -> float:
    """Runs a second, from the first firing to the end of the last one and of all that follows."""
    wanted = iter(range(count))

    async def caller() -> None:
        for number in wanted:  # shared by all
            await fire(loops, names[number % len(names)])

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(FIRED_AT_ONCE)))
    while await loops.store.read(under_way):  # noqa: ASYNC110  another process may work on it too
        await asyncio.sleep(0.01)
    return count / (time.perf_counter() - began)


async def own(place: Place, root: Path, where: str, *, helper: list[str] | None = None) -> None:
    for kind, count in COUNTS.items():
        others = subprocess.Popen([*helper, kind], stdout=subprocess.PIPE) if helper else None  # noqa: ASYNC220
        if others is not None and others.stdout is not None:
            await asyncio.to_thread(others.stdout.readline)
        async with process(place, root, real=kind == "exec", owner=IDS.make("own")) as (_, loops):
            rate = await through(loops, await ready(loops, kind), count)
        say(part="own", on=where, action=kind, runs=count, per_second=round(rate, 1))
        if others is not None:
            others.terminate()
            others.wait()


async def help_out(url: str, root: Path, kind: str) -> None:
    place = parse_place(url, root / ".gc")
    async with process(place, root, real=kind == "exec", owner=IDS.make("own")):
        print("up", flush=True)
        await asyncio.Event().wait()


async def latency(place: Place, root: Path, where: str) -> None:
    async with process(place, root, real=False, owner=IDS.make("own")) as (store, loops):
        await add(store, "single", "exec")
        runner: Any = loops.worker.runner
        waits = []
        for _ in range(SINGLE):
            await asyncio.sleep(0.02)  # a city at rest
            began = time.perf_counter()
            run = await fire(loops, "single")
            while run not in runner.began or await store.read(under_way):  # noqa: ASYNC110  asked as seldom as can be
                await asyncio.sleep(0.005)
            waits.append((runner.began[run] - began) * 1000)
    waits.sort()
    say(part="latency", on=where, fired_to_started_ms={"p50": round(waits[len(waits) // 2], 2),
        "p99": round(waits[int(len(waits) * 0.99)], 2)})  # fmt: skip


def peers(server: Cluster) -> None:
    """Each in a process of its own: a durable job of three steps that do nothing."""
    for name in ("dbos-sqlite", "dbos", "procrastinate", "pgqueuer"):
        script = Path(__file__).with_name("peers") / f"{name.partition('-')[0]}_steps.py"
        jobs = PEER_JOBS * (4 if name == "pgqueuer" else 1)  # the faster a peer, the more it takes to tell
        with tempfile.TemporaryDirectory() as folder:
            target = f"sqlite:///{folder}/dbos.db" if name.endswith("sqlite") else server.database()
            done = subprocess.run(
                [sys.executable, str(script), target, str(jobs)], check=False, capture_output=True, text=True,
                timeout=300, cwd=folder,
            )  # fmt: skip
        if done.returncode != 0:
            say(part="peers", peer=name, problem=(done.stderr.strip().splitlines() or ["it failed"])[-1])
            continue
        told = json.loads(done.stdout.splitlines()[-1])
        say(part="peers", peer=name, jobs=jobs, **told)


def main(wanted: list[str]) -> None:
    log.set_up(level=40)
    heap.settle()  # as the daemon does
    if wanted[:1] == ["help"]:
        aio.run(help_out(wanted[1], Path(wanted[2]), wanted[3]))
        return
    wanted = wanted or ["own", "latency", "peers"]
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        root = Path(folder)
        (root / ".gc").mkdir()
        if "own" in wanted or "latency" in wanted:
            place = SqlitePlace(root / ".gc" / "lamp.db", root / ".gc")
            migrate(place)
            for part in (own, latency):
                if part.__name__ in wanted:
                    aio.run(part(place, root, "sqlite, one process"))
            for workers in (1, 2):
                url = server.database()
                postgres = parse_place(url, root / ".gc")
                migrate(postgres)
                helper = [sys.executable, __file__, "help", url, str(root)] if workers == 2 else None
                if "own" in wanted:
                    aio.run(own(postgres, root, f"postgres, workers: {workers}", helper=helper))
                if "latency" in wanted and workers == 1:
                    aio.run(latency(postgres, root, "postgres, workers: 1"))
        if "peers" in wanted:
            peers(server)


if __name__ == "__main__":
    main(sys.argv[1:])
