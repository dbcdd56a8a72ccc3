"""Runs through the whole pipeline, fired to ended: with an action that does nothing, a no-op command, a minimal agent.

`python bench/pipeline.py [own|counts|commands|inbox|dbos-sqlite|dbos|procrastinate|pgqueuer] …` runs the named parts,
all without a name; one JSON line each. `counts` tells how often a run asks the database, and for what; `commands` puts
commands a second beside a bare loop of spawning and waiting, and tells what each part of a command costs; `inbox` tells
what the inbox adds to the cost of 10,000 failing runs of one automation, beside the same without an inbox. With two
workers on PostgreSQL, one is this process and the other one is started by it. Beside a peer, both take turns, and what
is told are medians over the rounds: a shared machine is half as fast from one minute to the next.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.files.workspaces import LocalWorkspaceFiles
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.adapters.notices.messenger import CityMessenger
from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.adapters.sessions.local import shim
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.app.agent_runs import LazySelector
from lamplighter.app.wakeups import listening
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.automation_loops import Agents, AutomationLoops, Outside
from lamplighter.daemon.inbox import SWEEP_EVERY, TELL_EVERY, InboxKeeper
from lamplighter.domain.access import of_run
from lamplighter.domain.city.model import City, Workspace
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.sessions.model import Seen, SessionSpec
from lamplighter.kit import aio, heap, log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.ports.commands import Command, CommandEnded
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import acting
from lamplighter.services.inbox import needs
from lamplighter.services.operation import judged
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.services.runs.operations import COMPLETE_RUN
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreBusy
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, SqliteUrl, migrate, open_store, parse_store_url
from lamplighter.testing.postgres import Cluster, cluster

sys.path.append(str(Path(__file__).parent))  # the last place: `http.py` beside this is not the standard library's
from peers.figures import answer, orders

CITY = "cty_bench"
COUNTS = {"nothing": 1500, "exec": 100, "agent": 150}
WARM_UP = 50
"""Runs before those that count: a server at work has statistics of its tables, and they are made after these."""
FIRED_AT_ONCE = 256
ROUNDS = 7
STARTS = 30
COUNTED = 20
COMMANDS = 100
OUR_JOBS = 2500
PEER_JOBS = {"dbos-sqlite": 100, "dbos": 100, "procrastinate": 200, "pgqueuer": 1200}
"""Jobs a round: about a second each."""
BUSY = 10
FAILURES = 1250
FAILING_ROUNDS = 8
"""So many failing runs in so many rounds make 10,000."""
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


class Failing(Nothing):
    async def run(self, command: Command) -> CommandEnded:
        return changed(await super().run(command), exit_code=1)


class Completing(FakeProvider):
    """Sessions in this process whose program completes its run as soon as it is started, and ends."""

    store: Store

    async def start(self, spec: SessionSpec) -> Seen:
        seen = await super().start(spec)
        said = {"run_id": spec.name, "completion_id": completion_id(spec.name), "outcome": "succeeded"}
        ctx = changed(acting("agent", CLOCK.now(), IDS), actor=of_run(spec.name))
        await self.store.transact(judged, COMPLETE_RUN, parse(said), ctx)
        self.end(spec.name)
        return seen


class Counting:
    """A store that counts what it is asked, by the function that is run."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reads: Counter[str] = Counter()
        self.transactions: Counter[str] = Counter()

    async def read(self, fn: Any, *args: Any, **keys: Any) -> Any:
        self.reads[_name(fn)] += 1
        return await self.store.read(fn, *args, **keys)

    async def transact(self, fn: Any, *args: Any, **keys: Any) -> Any:
        self.transactions[_name(fn)] += 1
        return await self.store.transact(fn, *args, **keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def _name(fn: Any) -> str:
    where = getattr(fn, "__module__", "").rpartition(".")[2]
    return f"{where}.{getattr(fn, '__qualname__', str(fn))}"


def agents_in(root: Path, store: Store) -> Agents:
    sessions = Completing(CLOCK, IDS, city=CITY)
    sessions.store = store
    env = dict(os.environ)
    return Agents(
        sessions=sessions,
        provider="fake",
        workshop=FileRunWorkshop(root / ".gc", env),
        worktrees=GitWorktrees(root / ".gc" / "worktrees", Git(env)),
        artifacts=LocalArtifacts(root / ".gc" / "artifacts"),
        selector=LazySelector(env),
        files=LocalWorkspaceFiles(root / ".gc" / "cache"),
        api_url=lambda: None,
    )


@asynccontextmanager
async def process(
    place: Place, root: Path, *, real: bool, owner: str, counting: bool = False, fails: bool = False
) -> AsyncIterator[tuple[Any, AutomationLoops]]:
    """The parts of one process of a city, as the daemon puts them together, at work; with its store."""
    wakes = Wakes()
    store: Any = open_store(place, CITY, wakes)
    if counting:
        store = Counting(store)
    await store.transact(lambda tx: tx.cities.ensure("bench", CLOCK.now()))
    await store.transact(lambda tx: tx.owners.register(Owner(owner, "bench", "here", os.getpid(), CLOCK.now())))
    (root / ".gc").mkdir(exist_ok=True)
    kind = ShimCommands if real else Failing if fails else Nothing
    runner = kind(root / ".gc" / "commands", city=CITY, clock=CLOCK, ids=IDS)
    if isinstance(runner, Nothing):
        runner.began = {}
    env = dict(os.environ)
    messenger = CityMessenger(root, CLOCK, lambda: env, env)
    outside = Outside(runner, lambda _name, _rig: None, lambda: None, env, agents_in(root, store), messenger)  # type: ignore[arg-type, return-value]
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
    body: dict[str, Any] = {"name": name, "gate": "manual", "overlap": "allow", "auto_disable_after": 0}
    body |= {"agent": {"prompt": "true", "preset": "shell"}} if kind == "agent" else {"exec": "true"}
    ctx = acting("bench", CLOCK.now())
    await store.transact(editing.create, body, rules=RULES, ctx=ctx)


async def fire(loops: AutomationLoops, name: str) -> str:
    """On a machine with much else to do the database may say that it is busy; it is asked again then."""
    for _ in range(BUSY):
        with contextlib.suppress(StoreBusy):
            return (await loops.worker.fire(firing.ByHand(name), ctx=acting("bench", CLOCK.now()))).run
    raise RuntimeError(f"the database was busy {BUSY} times")


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


async def counts(place: Place, root: Path, where: str) -> None:
    """How often one run asks the database, in a city that does nothing else."""
    for kind in ("exec", "agent"):
        async with process(place, root, real=False, owner=IDS.make("own"), counting=True) as (store, loops):
            await add(store, f"{kind}0", kind)
            for _ in range(2):  # the first one fills what is kept in memory
                store.reads.clear()
                store.transactions.clear()
                for _ in range(COUNTED):
                    await fire(loops, f"{kind}0")
                    while await store.store.read(under_way):  # noqa: ASYNC110  it is asked without being counted
                        await asyncio.sleep(0.005)
            say(
                part="counts", on=where, action=kind, runs=COUNTED,
                reads=_each(store.reads), transactions=_each(store.transactions),
                reads_of_a_run=round(store.reads.total() / COUNTED, 2),
                transactions_of_a_run=round(store.transactions.total() / COUNTED, 2),
            )  # fmt: skip


def _each(found: "Counter[str]") -> dict[str, float]:
    return {name: round(n / COUNTED, 2) for name, n in found.most_common()}


async def commands(place: Place, root: Path) -> None:
    """Commands a second: runs of the whole pipeline, the runner alone, a shim alone, and a bare loop; in turns."""
    rates: dict[str, list[float]] = {}
    async with process(place, root, real=True, owner=IDS.make("own")) as (_, loops):
        names = await ready(loops, "exec")
        for number in range(ROUNDS):
            for what, rate in (
                ("bare_loop", _bare_loop(COMMANDS)),
                ("shell_under_a_shim", await asyncio.to_thread(_shims, root, number, COMMANDS)),
                ("command_runner", await _runner(loops, number, COMMANDS)),
                ("whole_run", await through(loops, names, COMMANDS)),
            ):
                rates.setdefault(what, []).append(rate)
    each = {name: round(median(found), 1) for name, found in rates.items()}
    say(
        part="commands", on="sqlite", commands=COMMANDS, rounds=ROUNDS, per_second=each,
        times_the_bare_loop={name: round(each["bare_loop"] / rate, 2) for name, rate in each.items()},
    )  # fmt: skip


def _bare_loop(count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", "true"], os.environ)
        os.waitpid(pid, 0)
    return count / (time.perf_counter() - began)


def _shims(root: Path, number: int, count: int) -> float:
    """The shell that keeps the exit status on disk, without records, watching and clearing away."""
    homes = [root / ".gc" / f"shim-{number}-{one}" for one in range(count)]
    for home in homes:
        home.mkdir()
        shim.furnish(home, takes_input=False)
    began = time.perf_counter()
    for home in homes:
        launched = shim.launch(home, ("/bin/sh", "-c", "true"), dict(os.environ), str(root))
        os.waitpid(launched.shim, 0)
    return count / (time.perf_counter() - began)


async def _runner(loops: AutomationLoops, number: int, count: int) -> float:
    """The runner of commands, one after another as the bare loop does: records, launch, watch, end, clearing away."""
    runner: Any = loops.worker.runner
    began = time.perf_counter()
    for one in range(count):
        key = f"bench-{number}-{one}"
        await runner.run(Command(key, "true", str(runner._records.root), timedelta(minutes=1), dict(os.environ)))  # noqa: SLF001
        await runner.forget(key)
    return count / (time.perf_counter() - began)


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


async def contend_failing(place: Place, root: Path, *, inbox: bool) -> None:
    """As `contend`, for failing runs of one automation; with all that the daemon does for the inbox, or without any."""
    if not inbox:
        needs.judgement = lambda _run, *, tried_again: None  # noqa: ARG005
    async with process(place, root, real=False, owner=IDS.make("own"), fails=True) as (store, loops):
        active = ActiveConfig(City(workspace=Workspace(name="bench"), root=root, prefix="be"), RULES)
        keeping = asyncio.create_task(kept(InboxKeeper(store, CLOCK, IDS, active))) if inbox else None
        await add(store, "fails", "nothing")
        await through(loops, ["fails"], WARM_UP)
        await store.transact(lambda tx: tx.db.execute("ANALYZE", {}))
        for _, count in orders():
            before = time.process_time()
            rate = await through(loops, ["fails"], count)
            answer([rate, (time.process_time() - before) / count])
        if keeping is not None:
            keeping.cancel()
            await asyncio.wait([keeping])


async def kept(keeper: InboxKeeper) -> None:
    """As in the daemon: people are told every second of what opened, and each minute the inbox is swept."""
    while True:
        await keeper.sweep()
        for _ in range(SWEEP_EVERY // TELL_EVERY):
            await keeper.tell()
            await asyncio.sleep(TELL_EVERY.total_seconds())


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


def inbox(server: Cluster, on: str) -> None:
    """Failing runs with the inbox, without, and once more without: how far the last two differ is the noise.

    Told are the time that 10,000 runs take and the time of the processor that this program takes for them, each as a
    multiple of the same without an inbox.
    """
    arms = ("with", "without", "again")
    with tempfile.TemporaryDirectory() as folder:
        contenders = {}
        for arm in arms:
            home = Path(folder) / arm
            home.mkdir()
            url = server.database() if on == "postgres" else ""
            contenders[arm] = Contender(__file__, "fail", url, str(home), arm, folder=str(home))
        rates: dict[str, list[float]] = {arm: [] for arm in arms}
        spent: dict[str, list[float]] = {arm: [] for arm in arms}
        for number in range(FAILING_ROUNDS):
            for place in range(len(arms)):  # another one begins each round
                arm = arms[(place + number) % len(arms)]
                rate, processor = contenders[arm].ask("through", FAILURES)
                rates[arm].append(rate)
                spent[arm].append(processor)
        for one in contenders.values():
            one.leave()
    takes = {arm: [1 / rate for rate in found] for arm, found in rates.items()}
    say(
        part="inbox", on=on, runs=FAILURES * FAILING_ROUNDS, rounds=FAILING_ROUNDS,
        per_second={arm: round(median(found), 1) for arm, found in rates.items()},
        times_the_time=_times(takes, "with"), noise=_times(takes, "again"),
        times_the_processor=_times(spent, "with"), noise_of_the_processor=_times(spent, "again"),
    )  # fmt: skip


def _times(found: Mapping[str, list[float]], arm: str) -> dict[str, float]:
    """How many times what it is without an inbox, round by round."""
    ratios = sorted(one / bare for one, bare in zip(found[arm], found["without"], strict=True))
    told = {"median": median(ratios), "least": ratios[0], "most": ratios[-1]}
    return {name: round(value, 3) for name, value in told.items()}


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


def contends(wanted: list[str]) -> bool:
    """Whether this process is one of those that take turns; it did its part then."""
    match wanted:
        case ["help", url, folder, kind]:
            aio.run(help_out(url, Path(folder), kind))
        case ["contend", url, folder]:
            aio.run(contend(place_in(Path(folder), url), Path(folder)))
        case ["fail", url, folder, arm]:
            aio.run(contend_failing(place_in(Path(folder), url), Path(folder), inbox=arm == "with"))
        case _:
            return False
    return True


def main(wanted: list[str]) -> None:
    log.set_up(level=40)
    heap.settle()  # as the daemon does
    if contends(wanted):
        return
    wanted = wanted or ["own", "counts", "commands", "inbox", *PEER_JOBS]
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        root = Path(folder)
        if "own" in wanted:
            aio.run(own(place_in(root, ""), root, "sqlite, one process"))
        if "counts" in wanted:
            aio.run(counts(place_in(root, ""), root, "sqlite"))
        if "commands" in wanted:
            aio.run(commands(place_in(root, ""), root))
        if "own" in wanted:
            for workers in (1, 2):
                url = server.database()
                helper = [sys.executable, __file__, "help", url, str(root)] if workers == 2 else None
                aio.run(own(place_in(root, url), root, f"postgres, workers: {workers}", helper=helper))
        for on in ("sqlite", "postgres") if "inbox" in wanted else ():
            inbox(server, on)
        for peer in PEER_JOBS:
            if peer in wanted:
                beside(peer, server)


if __name__ == "__main__":
    main(sys.argv[1:])
