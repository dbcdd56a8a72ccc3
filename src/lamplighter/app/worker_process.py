"""The worker process: runs only the run pipeline, with or without a controller; fires nothing, keeps no agents."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.last_good import ConfigFiles
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.adapters.files.watch import Watch
from lamplighter.app.automation_loops import Tools, loops_of
from lamplighter.app.automations import rules_of
from lamplighter.app.config_in_force import InForce, in_force
from lamplighter.app.config_watch import ConfigWatch
from lamplighter.app.daemon_host import WorkerHost, operations_of
from lamplighter.app.http import HttpServer, KeptListener
from lamplighter.app.lifetime import Lifetime
from lamplighter.app.membership import Membership, become_member, join, peer_watch, rigs_here
from lamplighter.app.settings import Settings
from lamplighter.app.traces import open_traces
from lamplighter.app.wiring import OpenCity, locate
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.daemon.cluster.leader_duties import LeaderDuties
from lamplighter.daemon.cluster.rig_claims import RigClaims
from lamplighter.daemon.housekeeping import Housekeeping, check_descriptors
from lamplighter.daemon.reload import Candidate, Reloader
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.domain.city.limits import plain_name
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City
from lamplighter.domain.city.reload import WORKER_BINDS
from lamplighter.domain.cluster.nodes import Node
from lamplighter.kit import aio, descriptors, log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.supervise import Child
from lamplighter.services.runs import review
from lamplighter.store.url import PostgresUrl, parse_store_url

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
    """The command line: rigs with their local paths (empty for all rigs found here), and the name of the node."""

    rigs: Mapping[str, Path]
    name: str | None = None


@dataclass(frozen=True)
class Working:
    """What `lamp worker` tells a person once it runs."""

    city: str
    root: Path
    store: str
    node: Node


def run_worker(settings: Settings, wanted: Wanted, *, started: Callable[[Working], None]) -> None:
    """Work until told to stop. Raises NeedsPostgres, NodeTaken, UsageError, and the errors of the city's files."""
    if wanted.name is not None and (wrong := plain_name(wanted.name)):
        raise UsageError(f"--name: {wrong}.")
    descriptors.raise_limit()
    aio.run(_Worker(settings, locate(settings), wanted).run(started))


class _Worker:
    def __init__(self, settings: Settings, paths: CityPaths, wanted: Wanted) -> None:
        clock = SystemClock()
        self._opened = OpenCity(settings, paths, clock, IdSource(clock))
        self._wanted = wanted
        self._lifetime = Lifetime(clock, KIND)
        self._listener = KeptListener()

    async def run(self, started: Callable[[Working], None]) -> None:
        self._opened.need_own()
        try:
            await self._lifetime.run(lambda first: self._live(started if first else _nothing))
        finally:
            self._listener.close()

    async def _live(self, started: Callable[[Working], None]) -> None:
        config = self._in_force()
        place = parse_store_url(config.city.store.url, self._opened.paths.runtime)
        if not isinstance(place, PostgresUrl):
            raise NeedsPostgres
        async with AsyncExitStack() as stack:
            member = await become_member(stack, self._opened, place, KIND, config.city.name)
            wanted, lost_after = self._wanted.name, config.city.workers.lost_after
            rigs = self._rigs(config.city)
            node = await join(member, self._opened, rigs, wanted=wanted, lost_after=lost_after)
            children = await self._build(stack, member, node, config)
            self._lifetime.on_signals()
            started(Working(config.city.name, self._opened.paths.root, str(place), node))
            await self._lifetime.supervise(children)

    async def _build(self, stack: AsyncExitStack, member: Membership, node: Node, config: LoadedCity) -> list[Child]:
        """Build the children in their starting order; `stack` undoes what is opened here."""
        opened, city = self._opened, config.city
        operations = operations_of(WorkerHost(opened, member.store, lambda: loops.active, member.wakes))
        http = HttpServer(
            opened, member.store, operations, LOOPBACK, 0, lambda: loops.active, shared=True, kept=self._listener
        )
        http.open()
        stack.callback(http.close)
        me = review.Worker(member.owner.id, node.name)
        outlet = await open_traces(stack, opened.settings.env)
        tools = Tools(lambda: http.url, http.tools_ready, outlet.sink)
        loops = loops_of(opened, city, store=member.store, me=me, tools=tools)
        stack.push_async_callback(loops.close)
        rig_claims = RigClaims(member.store, loops.active, me, self._rigs)
        await rig_claims.tick()
        ticks = Ticks([], opened.clock, city.daemon.patrol_interval)
        watch = self._config_watch(config, member, loops, rig_claims, ticks)
        ticks.phases = [watch.phase(), *self._phases(city, member, loops, rig_claims)]
        ticks.listen(member.wakes)
        loops.worker.listen(member.wakes)
        loops.dispatcher.listen(member.wakes)
        watching = peer_watch(stack, member, opened)
        return [
            *([Child("vigil", watching.loop)] if watching is not None else []),
            Child("ticks", ticks.loop),
            Child("watch", watch.run, stop=watch.stop),
            Child("http", http.run, stop=http.stop),
            *loops.pipeline(),
        ]

    def _phases(self, city: City, member: Membership, loops: AutomationLoops, rig_claims: RigClaims) -> list[Phase]:
        """The phases of a tick; without a controller the oldest worker does the duties for the whole city too."""
        upkeep = Housekeeping(member.store, member.proofs, self._opened.clock, member.owner.id, actor=KIND)
        shared = LeaderDuties(member.store, self._opened.clock, self._opened.ids, rig_claims.me)
        for_city = [
            *loops.endings(city), *shared.phases(city), *loops.inbox.phases(), *loops.upkeep().of_city(city),
        ]  # fmt: skip
        for_node = [*loops.upkeep().of_node(city), loops.tidy_phase()]
        return [
            Phase("clock", upkeep.check_clock),
            Phase("descriptors", check_descriptors),
            Phase("owners", upkeep.expire_dead),
            rig_claims.phase(),
            *map(shared.for_node, for_node),
            *map(shared.for_city, for_city),
        ]

    def _config_watch(
        self, config: LoadedCity, member: Membership, loops: AutomationLoops, rig_claims: RigClaims, ticks: Ticks
    ) -> ConfigWatch:
        files = Watch(config.sources)

        async def build(new: LoadedCity) -> Candidate:
            rules, phases = (
                rules_of(new.city, self._opened.settings.env),
                self._phases(new.city, member, loops, rig_claims),
            )

            def swap() -> None:
                self._opened.use(InForce(new))
                loops.active.swap(new.city, rules)
                ticks.swap([watch.phase(), *phases], new.city.daemon.patrol_interval)
                files.refresh(new.sources)

            return Candidate(None, swap)

        record = self._record() if controller_pid(self._opened.paths.lock) is None else None
        reloader = Reloader(
            config, self._load, build, member.store, self._opened.clock, bound=WORKER_BINDS, tells=False, record=record
        )
        watch = ConfigWatch(files, reloader, ticks)
        return watch

    def _record(self) -> ConfigFiles:
        return ConfigFiles(self._opened.paths, self._opened.clock)

    def _in_force(self) -> LoadedCity:
        """The configuration to start with: the last good one if the files are broken."""
        found = in_force(self._opened.paths.root, self._opened.settings.env)
        if found.note is not None:
            log.get().warning("config.last_good_in_force", reason=found.problem, note=found.note)
        else:
            self._keep(found.config)
        self._opened.use(found)
        return self._with_rigs(found.config)

    def _keep(self, config: LoadedCity) -> None:
        """Keep the configuration as the last good one, unless a controller in the same directory does so itself."""
        if controller_pid(self._opened.paths.lock) is None:
            self._record().accepted(config)

    def _load(self) -> LoadedCity:
        """Load the files, with this machine's paths of rigs. Raises ConfigInvalid, NotFound."""
        return self._with_rigs(load_city(self._opened.paths.root, env=self._opened.settings.env))

    def _with_rigs(self, loaded: LoadedCity) -> LoadedCity:
        return replace(loaded, city=_placed(loaded.city, self._wanted.rigs))

    def _rigs(self, city: City) -> dict[str, str]:
        if not self._wanted.rigs:
            return rigs_here(city)
        return {name: str(path) for name, path in self._wanted.rigs.items()}


def _placed(city: City, paths: Mapping[str, Path]) -> City:
    """The city with these paths of rigs. Raises NotFound for an unknown rig."""
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
