"""Runs through the whole pipeline, fired to ended: with an action that does nothing, a no-op command, a minimal agent.

`python bench/pipeline.py [own|dbos-sqlite|dbos|procrastinate|pgqueuer] …` runs the named parts, all without a name; one
JSON line each. With two workers on PostgreSQL, one is this process and the other one is started by it. Beside a peer,
both take turns, and what is told are medians over the rounds: a shared machine is half as fast from one minute to the
next.
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
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

from peers.figures import answer, orders

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.app.lazy_selector import LazySelector
from lamplighter.app.wakeups import listening
from lamplighter.daemon.automation_loops import Agents, AutomationLoops, Outside
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
from lamplighter.services.automations import editing, firing
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.services.runs.completing import Completions
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, SqliteUrl, migrate, open_store, parse_store_url
from lamplighter.testing.postgres import Cluster, cluster

CITY = "cty_bench"
COUNTS = {"nothing": 1500, "exec": 100, "agent": 150}
WARM_UP = 50
"""Runs before those that count: a server at work has statistics of its tables, and they are made after these."""
FIRED_AT_ONCE = 256
ROUNDS = 7
STARTS = 30
OUR_JOBS = 2500
PEER_JOBS = {"dbos-sqlite": 100, "dbos": 100, "procrastinate": 200, "pgqueuer": 1200}
"""Jobs a round: about a second each."""
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
        workshop=FileRunWorkshop(root / ".gc", env),
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
        city, RULES, outside, store=store, clock=CLOCK, ids=IDS, me=review.Worker(owner, "here")
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
    await store.transact(editing.create, body, rules=RULES, ids=IDS, act=act)


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
        await asyncio.sleep(0.005)  # as the peers are looked after
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
    place = parse_store_url(url, root / ".gc")
    async with process(place, root, real=kind == "exec", owner=IDS.make("own")):
        print("up", flush=True)
        await asyncio.Event().wait()


async def contend(place: Place, root: Path) -> None:
    """This process as one of two that take turns; see `peers/figures.py`."""
    async with process(place, root, real=False, owner=IDS.make("own")) as (store, loops):
        names = await ready(loops, "nothing")
        for what, count in orders():
            answer(await through(loops, names, count) if what == "through" else await starts(store, loops, count))


async def starts(store: Store, loops: AutomationLoops, count: int) -> list[float]:
    runner: Any = loops.worker.runner
    waits = []
    for _ in range(count):
        await asyncio.sleep(0.02)  # a city at rest
        began = time.perf_counter()
        run = await fire(loops, "nothing0")
        while run not in runner.began or await store.read(under_way):  # noqa: ASYNC110  asked as seldom as can be
            await asyncio.sleep(0.005)
        waits.append(runner.began[run] - began)
    return waits


class Contender:
    def __init__(self, *line: str, folder: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )
        self._read()

    def ask(self, what: str, count: int) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        return json.loads(self._read())

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} has ended")
        return line


def beside(peer: str, server: Cluster) -> None:
    """A peer's durable job of three steps that do nothing, and a run of ours whose action does nothing, in turns."""
    script = str(Path(__file__).with_name("peers") / f"{peer.partition('-')[0]}_steps.py")
    with tempfile.TemporaryDirectory() as folder:
        on_sqlite = peer.endswith("sqlite")
        theirs = Contender(script, f"sqlite:///{folder}/dbos.db" if on_sqlite else server.database(), folder=folder)
        url = "" if on_sqlite else server.database()
        ours = Contender(__file__, "contend", url, folder, folder=folder)
        rounds, waits = [], ([], [])  # type: ignore[var-annotated]
        for _ in range(ROUNDS):
            rounds.append((ours.ask("through", OUR_JOBS), theirs.ask("through", PEER_JOBS[peer])))
            for found, one in zip(waits, (ours, theirs), strict=True):
                found.extend(one.ask("start", STARTS))
        for one in (ours, theirs):
            one.leave()
    mine, other = (median(rate[side] for rate in rounds) for side in (0, 1))
    say(
        part="beside", on="sqlite" if on_sqlite else "postgres", peer=peer, rounds=ROUNDS,
        ours_per_second=round(mine, 1), theirs_per_second=round(other, 1),
        times=round(median(our / their for our, their in rounds), 2),
        ours_start_ms=_spread(waits[0]), theirs_start_ms=_spread(waits[1]),
    )  # fmt: skip


def _spread(waits: list[float]) -> dict[str, float]:
    waits.sort()
    return {name: round(waits[int(len(waits) * part)] * 1000, 2) for name, part in (("p50", 0.5), ("p99", 0.99))}


def place_in(root: Path, url: str) -> Place:
    (root / ".gc").mkdir(exist_ok=True)
    place = parse_store_url(url, root / ".gc") if url else SqliteUrl(root / ".gc" / "lamp.db", root / ".gc")
    migrate(place)
    return place


def main(wanted: list[str]) -> None:
    log.set_up(level=40)
    heap.settle()  # as the daemon does
    match wanted:
        case ["help", url, folder, kind]:
            aio.run(help_out(url, Path(folder), kind))
            return
        case ["contend", url, folder]:
            aio.run(contend(place_in(Path(folder), url), Path(folder)))
            return
    wanted = wanted or ["own", *PEER_JOBS]
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        root = Path(folder)
        if "own" in wanted:
            aio.run(own(place_in(root, ""), root, "sqlite, one process"))
            for workers in (1, 2):
                url = server.database()
                helper = [sys.executable, __file__, "help", url, str(root)] if workers == 2 else None
                aio.run(own(place_in(root, url), root, f"postgres, workers: {workers}", helper=helper))
        for peer in PEER_JOBS:
            if peer in wanted:
                beside(peer, server)


if __name__ == "__main__":
    main(sys.argv[1:])
