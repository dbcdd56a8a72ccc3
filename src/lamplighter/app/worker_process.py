"""A worker: the run pipeline alone, beside a controller or without one; it fires nothing and looks after no agent."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.last_good import ConfigFiles
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.adapters.files.watch import Watch
from lamplighter.app.automations import loops_of, rules_of
from lamplighter.app.config_in_force import in_force
from lamplighter.app.http import HttpServer
from lamplighter.app.lifetime import Lifetime
from lamplighter.app.post import Post, join, rigs_here, take_post, watchman
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, locate
from lamplighter.daemon.automations import AutomationLoops
from lamplighter.daemon.holding import Holding
from lamplighter.daemon.node_upkeep import NodeUpkeep
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.daemon.upkeep import Upkeep
from lamplighter.domain.city.limits import plain_name
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City
from lamplighter.domain.city.reload import Refused, Swap, judge
from lamplighter.domain.nodes.model import Node
from lamplighter.kit import aio, log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import LampError, NotFound, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.supervise import Child
from lamplighter.services import runs
from lamplighter.store.place import PostgresPlace, parse_place

KIND = "worker"
LOOPBACK = "127.0.0.1"


class NeedsPostgres(UsageError):
    def __init__(self) -> None:
        super().__init__(
            "Workers need PostgreSQL.",
            hint="Set [store] url in city.toml, or LAMP_STORE_URL. On SQLite `lamp up` runs the pipeline itself.",
        )


@dataclass(frozen=True)
class Wanted:
    """What was said on the command line: rigs with their paths here, all that are here where none is; a node's name."""

    rigs: Mapping[str, Path]
    name: str | None = None


@dataclass(frozen=True)
class Working:
    """What a person wants to know once it works."""

    city: str
    root: Path
    store: str
    node: Node


def run_worker(settings: Settings, wanted: Wanted, *, started: Callable[[Working], None]) -> None:
    """Work until told to stop. Raises NeedsPostgres, NodeTaken, and whatever is wrong with the city's files."""
    if wanted.name is not None and (wrong := plain_name(wanted.name)):
        raise UsageError(f"--name: {wrong}.")
    aio.run(_Worker(settings, locate(settings), wanted).run(started))


class _Worker:
    def __init__(self, settings: Settings, paths: CityPaths, wanted: Wanted) -> None:
        clock = SystemClock()
        self._opened = OpenCity(settings, paths, clock, IdSource(clock))
        self._wanted = wanted
        self._lifetime = Lifetime(clock, KIND)

    async def run(self, started: Callable[[Working], None]) -> None:
        self._opened.need_own()
        await self._lifetime.run(lambda first: self._live(started if first else _nothing))

    async def _live(self, started: Callable[[Working], None]) -> None:
        config = self._in_force()
        place = parse_place(config.city.store.url, self._opened.paths.runtime)
        if not isinstance(place, PostgresPlace):
            raise NeedsPostgres
        async with AsyncExitStack() as stack:
            post = await take_post(stack, self._opened, place, KIND, config.city.name)
            wanted, lost_after = self._wanted.name, config.city.workers.lost_after
            rigs = self._rigs(config.city)
            node = await join(post, self._opened, rigs, wanted=wanted, lost_after=lost_after)
            children = await self._build(stack, post, node, config)
            self._lifetime.on_signals()
            started(Working(config.city.name, self._opened.paths.root, str(place), node))
            await self._lifetime.supervise(children)

    async def _build(self, stack: AsyncExitStack, post: Post, node: Node, config: LoadedCity) -> list[Child]:
        """The parts in the order they start, with their undoing on the stack."""
        opened, city = self._opened, config.city
        http = HttpServer(opened, post.store, LOOPBACK, 0, lambda: loops.scene, shared=True)
        http.open()
        stack.callback(http.close)
        me = runs.Worker(post.owner.id, node.name)
        loops = loops_of(opened, city, store=post.store, me=me, api_url=lambda: http.url)
        stack.push_async_callback(loops.close)
        holding = Holding(post.store, loops.scene, me, self._rigs)
        await holding.tick()
        ticks = Ticks(self._phases(post, loops, holding), opened.clock, city.daemon.patrol_interval)
        ticks.listen(post.wakes)
        loops.worker.listen(post.wakes)
        loops.dispatcher.listen(post.wakes)
        watch = _Reading(config, self._load, lambda new: self._swap(new, post, loops, holding, ticks))
        watching = watchman(stack, post, opened)
        return [
            *([Child("vigil", watching.loop)] if watching is not None else []),
            Child("ticks", ticks.loop),
            Child("watch", watch.run, stop=watch.stop),
            Child("http", http.run, stop=http.stop),
            *loops.pipeline(),
        ]

    def _phases(self, post: Post, loops: AutomationLoops, holding: Holding) -> list[Phase]:
        """What a controller does for the city falls to the oldest worker where there is none."""
        city = loops.scene.city
        upkeep = Upkeep(post.store, post.proofs, self._opened.clock, post.owner.id, actor=KIND)
        shared = NodeUpkeep(post.store, self._opened.clock, self._opened.ids, holding.me)
        for_city = [*loops.endings(city), *shared.phases(city), *loops.upkeep().of_city(city)]
        for_node = [*loops.upkeep().of_node(city), loops.tidy_phase()]
        return [
            Phase("clock", upkeep.check_clock),
            Phase("owners", upkeep.bury_dead),
            holding.phase(),
            *map(shared.for_node, for_node),
            *map(shared.for_city, for_city),
        ]

    async def _swap(self, new: LoadedCity, post: Post, loops: AutomationLoops, holding: Holding, ticks: Ticks) -> None:
        loops.scene.swap(new.city, rules_of(new.city, self._opened.settings.env))
        ticks.swap(self._phases(post, loops, holding), new.city.daemon.patrol_interval)
        await asyncio.to_thread(self._keep, new)

    def _in_force(self) -> LoadedCity:
        """What to start with: the last good configuration where the files are broken."""
        found = in_force(self._opened.paths.root, self._opened.settings.env)
        if found.note is not None:
            log.get().warning("config.last_good_in_force", reason=found.problem, note=found.note)
        else:
            self._keep(found.config)
        self._opened.use(found)
        return self._with_rigs(found.config)

    def _keep(self, config: LoadedCity) -> None:
        """For the next start with broken files; a controller in the same directory sees to it itself."""
        if controller_pid(self._opened.paths.lock) is None:
            ConfigFiles(self._opened.paths, self._opened.clock).accepted(config)

    def _load(self) -> LoadedCity:
        """The city as its files say it, with rigs where this machine has them. Raises ConfigInvalid, NotFound."""
        return self._with_rigs(load_city(self._opened.paths.root, env=self._opened.settings.env))

    def _with_rigs(self, loaded: LoadedCity) -> LoadedCity:
        return replace(loaded, city=_placed(loaded.city, self._wanted.rigs))

    def _rigs(self, city: City) -> dict[str, str]:
        if not self._wanted.rigs:
            return rigs_here(city)
        return {name: str(path) for name, path in self._wanted.rigs.items()}


@dataclass
class _Reading:
    """Reads the configuration again when its files change; one that is wrong leaves the old one in force."""

    current: LoadedCity
    load: Callable[[], LoadedCity]
    apply: Callable[[LoadedCity], Awaitable[None]]

    def __post_init__(self) -> None:
        self._watch = Watch(self.current.sources)

    async def run(self) -> None:
        async for _ in self._watch.changes():
            await self._look()

    async def stop(self) -> None:
        self._watch.close()

    async def _look(self) -> None:
        try:
            new = await asyncio.to_thread(self.load)
        except LampError as error:
            log.get().warning("config.rejected", reason=error.message)
            return
        match judge(self.current, new):
            case Refused(why):
                log.get().warning("config.rejected", reason=why)
            case Swap(changed):
                await self.apply(new)
                self.current = new
                self._watch.refresh(new.sources)
                log.get().info("config.reloaded", changed=list(changed))
            case _:
                return


def _placed(city: City, paths: Mapping[str, Path]) -> City:
    """Raises NotFound for a rig that the city does not know."""
    known = [rig.name for rig in city.rigs]
    for name in paths:
        if name not in known:
            raise NotFound(
                f"There is no rig `{name}`{full_stop(name, known)}",
                hint="--rig names one of city.toml; `lamp rig list` shows those there are.",
            )
    rigs = tuple(replace(rig, path=str(paths[rig.name])) if rig.name in paths else rig for rig in city.rigs)
    return replace(city, rigs=rigs)


def _nothing(_working: Working) -> None:
    return
