"""The daemon process: takes the lock, opens store, socket, signals and supervision tree, and closes it all again."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.control_server import ControlServer, Handler
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.city_id import record_home
from lamplighter.adapters.files.last_good import ConfigFiles
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.adapters.files.watch import Watch
from lamplighter.app import store_record
from lamplighter.app.automation_loops import Tools, loops_of, polls_of
from lamplighter.app.automations import definitions_of, rules_of
from lamplighter.app.bead_readiness import BeadReadiness
from lamplighter.app.config_in_force import InForce, in_force
from lamplighter.app.config_record import CityConfigRecord
from lamplighter.app.config_watch import ConfigWatch
from lamplighter.app.control_verbs import ControlVerbs
from lamplighter.app.create import prepare_start
from lamplighter.app.daemon_host import DaemonHost, LivingParts, asked_by_command, operations_of
from lamplighter.app.http import HttpServer, KeptListener
from lamplighter.app.lifetime import Lifetime, if_possible
from lamplighter.app.membership import SAVED_COPY, become_member, join, migrate_own, peer_watch, rigs_here
from lamplighter.app.open_beads import close_beads
from lamplighter.app.patrol import build_patrol
from lamplighter.app.service_units import is_service, program
from lamplighter.app.settings import Settings
from lamplighter.app.traces import TracesVerb, open_traces, traces_of
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.daemon.cluster.leader_duties import LeaderDuties
from lamplighter.daemon.cluster.rig_claims import RigClaims
from lamplighter.daemon.controller import Controller
from lamplighter.daemon.patrol.executor import Deed
from lamplighter.daemon.patrol.phases import agent_phases
from lamplighter.daemon.reload import Candidate, Reloader
from lamplighter.daemon.shutdown import SessionsLeft, stop_all
from lamplighter.daemon.store_watch import StoreWatch
from lamplighter.daemon.ticks import Phase
from lamplighter.domain.access import owner as owner_named
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.wanted import roster
from lamplighter.domain.events import Event, EventFilter
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState, Verdict
from lamplighter.kit import aio, descriptors, heap, log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.supervise import Child
from lamplighter.services import owners
from lamplighter.services.automations.definitions import Synced
from lamplighter.services.console import console_url, link_to
from lamplighter.services.context import acting
from lamplighter.services.declared import Declared
from lamplighter.services.events import head
from lamplighter.services.overview import Overview, overview
from lamplighter.services.runs import review
from lamplighter.store.errors import StoreLost
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, PostgresUrl, file_of, parse_store_url

ACTOR = "controller"
Warn = Callable[[str], None]
Tell = Callable[[Event], None]


@dataclass(frozen=True)
class Started:
    """What `lamp up` tells a person once the city runs."""

    paths: CityPaths
    config: LoadedCity
    store: str
    took_over: list[Owner]
    peek: Overview
    console: str | None
    """The address of the web console."""
    sign_in: Callable[[], str]
    """Makes a link to the console that signs a browser in, once."""
    port: int
    """The configured one of the API."""
    port_before: int | None
    """The one that the API had last."""
    api: str | None


def run_city(
    settings: Settings, *, started: Callable[[Started], None], warn: Warn | None = None, tell: Tell | None = None
) -> bool:
    """Run the city until it is told to stop; returns whether it left its agents to the next process.

    Raises ControllerRunning at once if another process runs it. A process of the service manager that leaves its agents
    begins again itself, with the program as it is installed now: the service manager goes on watching it.

    `tell` gets every event from the start on, as it comes; it must not block. `warn` gets one line, before anything
    starts, if the files are broken and the last good configuration is in force.
    """
    paths = prepare_start(settings)
    lock = ControllerLock(paths.lock)
    lock.take()  # before anything is changed
    descriptors.raise_limit()
    try:
        record_home(paths.root, host())
        process = _Process(settings, paths, lock, warn, tell)
        aio.run(process.run(started))
    finally:
        lock.release()
    if process.left and is_service(settings.env, os.getpid()):
        os.execv(sys.executable, [*program(), "--city", str(paths.root), "daemon", "run"])  # noqa: S606  no shell
    return process.left


@dataclass(frozen=True)
class Pass:
    """What one pass did: the phases that ran, the actions on agents, the agents it left as they are, and problems."""

    phases: list[str]
    done: list[Deed]
    left: list[Verdict]
    running: int
    problems: dict[str, str]


def run_once(settings: Settings, *, warn: Warn | None = None) -> Pass:
    """Bring the agents to their wanted state, once. No automation fires, no run is executed; sessions keep running."""
    paths = prepare_start(settings)
    lock = ControllerLock(paths.lock)
    lock.take()
    descriptors.raise_limit()
    try:
        record_home(paths.root, host())
        return aio.run(_Process(settings, paths, lock, warn).once())
    finally:
        lock.release()


class _Process:
    def __init__(
        self,
        settings: Settings,
        paths: CityPaths,
        lock: ControllerLock,
        warn: Warn | None,
        tell: Tell | None = None,
    ) -> None:
        self._settings = settings
        self._paths = paths
        self._lock = lock
        self._warn = warn or _logged
        self._tells = tell
        self._clock = SystemClock()
        self._ids = IdSource(self._clock)
        self._lifetime = Lifetime(self._clock, "controller")
        self._stop = self._lifetime.told
        self._since: datetime = self._clock.now()
        self._listener = KeptListener()

    @property
    def left(self) -> bool:
        return self._lifetime.leaving

    async def run(self, started: Callable[[Started], None]) -> None:
        """Run until told to stop. A controller that lost its proof of life starts anew once the database is back."""
        try:
            await self._lifetime.run(lambda first: self._live(started if first else _nothing))
        finally:
            self._listener.close()

    async def _live(self, started: Callable[[Started], None]) -> None:
        async with AsyncExitStack() as stack:
            controller, report = await self._build(stack)
            await self._open_control(stack)
            self._lifetime.on_signals()
            await self._tell("controller.started", controller, {"pid": os.getpid(), "version": __version__})
            stack.push_async_callback(if_possible, self._tell, "controller.stopped", controller, {"pid": os.getpid()})
            heap.settle()
            started(report)
            await self._supervise(controller)
            if self._stop.is_set() and not self._lifetime.leaving:
                await self._stop_sessions()

    async def once(self) -> Pass:
        async with AsyncExitStack() as stack:
            stack.callback(self._listener.close)
            controller, report = await self._build(stack)
            patrol = self._patrol_parts.patrol
            patrol.one_pass = True
            firing = {phase.name for phase in self._loops.phases(report.config.city)}
            controller.ticks.phases = [phase for phase in controller.ticks.phases if phase.name not in firing]
            phases = await controller.ticks.tick()
            await patrol.settled()
            left = [one for one in patrol.verdicts.values() if one.reason or one.state is not AgentState.RUNNING]
            running = sum(one.state is AgentState.RUNNING for one in patrol.verdicts.values())
            problems = controller.ticks.problems | patrol.problems
            return Pass(phases, list(patrol.executor.done), left, running, problems)

    async def _build(self, stack: AsyncExitStack) -> tuple[Controller, Started]:
        """Build everything that the first tick needs; `stack` undoes it in reverse order."""
        found = in_force(self._paths.root, self._settings.env)
        if found.note is not None:
            self._warn(found.note)
        config = found.config
        place = parse_store_url(config.city.store.url, self._paths.runtime)
        told = self._begin_on(place)
        if told is not None:
            self._warn(told)
        await self._open_beads(stack, found)
        member = self._member = await become_member(stack, self._opened, place, ACTOR, config.city.name)
        store, owner = member.store, member.owner
        await owners.take_control(store, member.proofs, owner, ctx=member.context)
        lost_after = config.city.workers.lost_after
        node = await join(member, self._opened, rigs_here(config.city), lost_after=lost_after)
        api = config.city.api
        section = config.table.get("api")
        chosen = section is not None and bool(section.get("port"))  # the default port and 0 are nobody's choice
        self._seen = await store.read(head)
        host = self._host = DaemonHost(
            self._opened, store, lambda: self._loops.active, member.wakes, lambda: self._living
        )
        self._operations = operations_of(host)
        self._http = HttpServer(
            self._opened,
            store,
            self._operations,
            api.host,
            api.port,
            lambda: self._loops.active,
            must=chosen,
            kept=self._listener,
        )
        self._http.open()
        stack.callback(self._http.close)
        me = review.Worker(owner.id, node.name)
        told_of_traces = await self._open_loops(stack, config, store, me)
        controller = Controller.build(
            config.city,
            store=store,
            proofs=member.proofs,
            clock=self._clock,
            owner=owner.id,
            export=self._paths.events_export,
            automations=self._loops,
        )
        self._nodes = LeaderDuties(store, self._clock, self._ids, me)
        self._rig_claims = RigClaims(store, self._loops.active, me, rigs_here, whole_city=True)
        self._shared = isinstance(place, PostgresUrl)
        self._peer_watch = peer_watch(stack, member, self._opened)
        self._store_watch = self._watching(store)
        if self._shared:
            await self._rig_claims.tick()
        self._loops.tell_synced(await store.transact(self._loops.write, await self._declared(config)))
        self._patrol_parts = await build_patrol(stack, self._opened, config, store, node.name)
        self._config_watch = self._reloading(controller, config)
        self._reloader = self._config_watch.reloader
        self._loops.inbox.config_problem = lambda: (self._reloader.current.city.name, self._reloader.error)
        await self._reloader.begin(found.problem)
        controller.ticks.phases = self._phases(controller, config)
        self._verbs = ControlVerbs(
            self._lifetime,
            self._since,
            controller,
            self._reloader,
            self._patrol_parts.patrol,
            self._http,
            self._store_watch,
            self._loops,
            self._paths,
            told_of_traces,
            again=is_service(self._settings.env, os.getpid()),
        )
        self._living = LivingParts(
            place, member.proofs, self._patrol_parts.patrol, self._loops.agents.sessions, self._verbs
        )
        controller.ticks.listen(member.wakes)
        self._loops.listen(member.wakes)
        peek = await store.read(overview, self._clock.now())
        console = None if self._http.url is None else console_url(api.public_url, self._http.url)

        def sign_in() -> str:
            return link_to(console or "", host.sign_in_link(owner_named(self._settings.actor))[0])

        return controller, Started(
            self._paths, config, str(place), member.took_over, peek, console, sign_in, api.port,
            self._http.port_before, self._http.url,
        )  # fmt: skip

    async def _open_loops(
        self, stack: AsyncExitStack, config: LoadedCity, store: Store, me: review.Worker
    ) -> TracesVerb:
        """The loops that fire and run automations, and the one that reports spans of runs where they are asked for."""
        outlet = await open_traces(stack, self._settings.env)
        tools = Tools(lambda: self._http.url, self._http.tools_ready, outlet.sink)
        self._loops: AutomationLoops = loops_of(self._opened, config.city, store=store, me=me, tools=tools)
        stack.push_async_callback(self._loops.close)
        self._traces = await traces_of(outlet, store, self._clock, lambda: self._loops.active.city)
        return TracesVerb(outlet, self._traces)

    def _begin_on(self, place: Place) -> str | None:
        """Migrate the database and record that it is in use; returns what to tell if the history is in another one.

        Raises EarlierStore, and as `migrate_own` does.
        """
        try:
            empty = migrate_own(place, self._paths.city_id())
        except StoreLost as error:
            before = store_record.earlier(self._paths, place)
            if before is not None:
                raise store_record.EarlierStore(place, before) from error
            raise
        return store_record.begun(self._paths, place, empty=empty)

    def _watching(self, store: Store) -> StoreWatch | None:
        """The watch of the database file; None on PostgreSQL, which has no file here."""
        file = file_of(store)
        if file is None:
            return None
        copy = self._paths.runtime / SAVED_COPY
        return StoreWatch(file, self._clock, lambda: self._lock.in_place, copy)

    async def _open_beads(self, stack: AsyncExitStack, found: InForce) -> None:
        """Make the bead store ready before everything that uses it, if it can be; it is closed after all of that."""
        city = self._opened = OpenCity(self._settings, self._paths, self._clock, self._ids)
        city.use(found)
        own = OpenCity(self._settings, self._paths, self._clock, self._ids)
        own.use(found)
        self._bead_readiness = BeadReadiness(own)
        await self._bead_readiness.begin()
        stack.push_async_callback(if_possible, asyncio.to_thread, close_beads, city)

    async def _declared(self, config: LoadedCity) -> Declared:
        rules = rules_of(config.city, self._settings.env)
        return Declared(config.city.configurations, await asyncio.to_thread(definitions_of, config.city), rules)

    def _reloading(self, controller: Controller, config: LoadedCity) -> ConfigWatch:
        watch = Watch(config.sources)

        async def build(new: LoadedCity) -> Candidate:
            declared, agents = await self._declared(new), roster(new)
            phases = self._phases(controller, new)
            reports: list[Synced] = []

            def write(tx: Tx) -> None:
                reports[:] = [self._loops.write(tx, declared)]

            def swap() -> None:
                self._opened.use(InForce(new))
                self._loops.active.swap(new.city, declared.rules)
                self._patrol_parts.patrol.swap(agents)
                controller.ticks.swap(phases, new.city.daemon.patrol_interval)
                watch.refresh(new.sources)
                self._loops.tell_synced(reports[0])

            return Candidate(write, swap)

        load = partial(load_city, self._paths.root, env=self._settings.env)
        record = CityConfigRecord(ConfigFiles(self._paths, self._clock), self._opened)
        reloader = Reloader(config, load, build, controller.store, self._clock, record=record)
        return ConfigWatch(watch, reloader, controller.ticks)

    def _phases(self, controller: Controller, config: LoadedCity) -> list[Phase]:
        agents = agent_phases(self._patrol_parts.patrol)
        own = [*controller.phases(config.city), *self._nodes.phases(config.city)]
        shared = [self._rig_claims.phase(), self._nodes.for_node(self._loops.tidy_phase())] if self._shared else []
        life = Phase("sign_of_life", self._sign_of_life)
        return [self._config_watch.phase(), *agents, self._bead_readiness.phase(), *shared, *own, life]

    async def _open_control(self, stack: AsyncExitStack) -> None:
        verbs: dict[str, Handler] = {**self._verbs.handlers(), "do": partial(asked_by_command, self._operations)}
        server = ControlServer(self._paths.socket, verbs)
        await server.start()
        stack.push_async_callback(server.close)
        try:
            self._paths.pid_file.write_text(f"{os.getpid()}\n", encoding="ascii")
            self._paths.pid_file.chmod(0o600)
        except OSError as error:  # it is for discovery only
            log.get().warning("pid_file.not_written", error=str(error))
        stack.callback(self._paths.pid_file.unlink, missing_ok=True)

    async def _sign_of_life(self) -> int:
        """The time of the pid file tells when a process was last seen that has died since."""
        with suppress(OSError):
            os.utime(self._paths.pid_file)
        return 0

    async def _supervise(self, controller: Controller) -> None:
        polls = polls_of(self._opened, controller.store)
        polls.listen(self._member.wakes)
        if self._traces is not None:
            self._traces.listen(self._member.wakes)
        children = [
            Child("patrol", self._patrol_parts.patrol.run),
            Child("ticks", controller.ticks.loop),
            Child("watch", self._config_watch.run, stop=self._config_watch.stop),
            Child("http", self._http.run, stop=self._http.stop),
            *([Child("store watch", self._store_watch.loop)] if self._store_watch is not None else []),
            *([Child("vigil", self._peer_watch.loop)] if self._peer_watch is not None else []),
            *([Child("narrator", self._narrate)] if self._tells is not None else []),
            Child("polls", polls.loop),
            *([Child("traces", self._traces.loop)] if self._traces is not None else []),
            *self._loops.children(),
        ]
        await self._lifetime.supervise(children)

    async def _narrate(self) -> None:
        """Pass on every event since the start, once; after a failure it goes on where it was."""
        async with aclosing(self._host.event_tail.follow(EventFilter(after=self._seen))) as events:
            async for event in events:
                self._seen = event.seq
                if self._tells is not None:
                    self._tells(event)

    async def _stop_sessions(self) -> None:
        """Stop every session that the city started. Raises SessionsLeft for those that do not stop."""
        await self._patrol_parts.patrol.close()
        within = self._reloader.current.city.daemon.shutdown_timeout
        spared = await self._spared()
        stopped = await stop_all(
            self._patrol_parts.provider, self._patrol_parts.patrol_history, within=within, spared=spared
        )
        log.get().info("agents.stopped", count=len(stopped.agents))
        if stopped.left:
            raise SessionsLeft(stopped.left)

    async def _spared(self) -> frozenset[str]:
        """Sessions of other processes, which must not be stopped.

        If the database cannot say whose they are: the sessions of all runs. This process has ended its own by now.
        """
        try:
            return await owners.runs_of_the_living(self._member.store, self._member.proofs, self._member.owner.id)
        except LampError:
            seen = await self._patrol_parts.provider.seen()
            return frozenset(name for name, session in seen.items() if session.meta.get(meta.RUN))

    async def _tell(self, event_type: str, controller: Controller, payload: Mapping[str, Any]) -> None:
        fact = acting(ACTOR, self._clock.now()).event(event_type, subject=controller.city.name, payload=dict(payload))
        await controller.store.transact(lambda tx: tx.events.append(fact))


def _logged(note: str) -> None:
    log.get().warning("config.last_good_in_force", note=note)


def _nothing(_report: Started) -> None:
    return
