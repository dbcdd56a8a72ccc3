"""The daemon process: takes the lock, opens store, socket, signals and supervision tree, and closes it all again."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.control import ControlServer
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.city_id import record_home
from lamplighter.adapters.files.last_good import ConfigFiles
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.adapters.files.watch import Watch
from lamplighter.app.automations import definitions_of, loops_of, rules_of
from lamplighter.app.beads import close_beads, open_beads
from lamplighter.app.config_in_force import InForce, in_force
from lamplighter.app.config_watch import ConfigWatch
from lamplighter.app.create import prepare_start
from lamplighter.app.http import HttpServer, KeptListener
from lamplighter.app.lifetime import Lifetime, if_possible
from lamplighter.app.membership import SAVED_COPY, become_member, join, migrate_own, peer_watch, rigs_here
from lamplighter.app.patrol import build_patrol
from lamplighter.app.settings import Settings
from lamplighter.app.status import on_record, whole
from lamplighter.app.wiring import OpenCity, host
from lamplighter.daemon.automation_loops import log_synced
from lamplighter.daemon.cluster.leader_duties import LeaderDuties
from lamplighter.daemon.cluster.rig_claims import RigClaims
from lamplighter.daemon.controller import Controller
from lamplighter.daemon.patrol.executor import Deed
from lamplighter.daemon.patrol.phases import agent_phases
from lamplighter.daemon.reload import Candidate, Reloader
from lamplighter.daemon.shutdown import SessionsLeft, stop_all
from lamplighter.daemon.store_watch import StoreWatch
from lamplighter.daemon.ticks import Phase
from lamplighter.domain.acts import Act
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.wanted import roster
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState, Verdict
from lamplighter.domain.sessions.model import SessionName, session_name
from lamplighter.kit import aio, descriptors, heap, log
from lamplighter.kit.clock import SystemClock, rfc3339
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.supervise import Child
from lamplighter.services import owners
from lamplighter.services.agents import View, agent_rows
from lamplighter.services.automations.definitions import Synced
from lamplighter.services.declared import Declared
from lamplighter.services.overview import Overview, overview
from lamplighter.services.runs import review
from lamplighter.store.engine.sqlite import SqliteStore
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import PostgresUrl, parse_store_url

ACTOR = "controller"
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Started:
    """What `lamp up` tells a person once the city runs."""

    paths: CityPaths
    config: LoadedCity
    store: str
    took_over: list[Owner]
    peek: Overview


def run_city(settings: Settings, *, started: Callable[[Started], None], warn: Warn | None = None) -> None:
    """Run the city until it is told to stop. Raises ControllerRunning at once if another process runs it.

    `warn` gets one line, before anything starts, if the files are broken and the last good configuration is in force.
    """
    paths = prepare_start(settings)
    lock = ControllerLock(paths.lock)
    lock.take()  # before anything is changed
    descriptors.raise_limit()
    try:
        record_home(paths.root, host())
        aio.run(_Process(settings, paths, lock, warn).run(started))
    finally:
        lock.release()


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
    def __init__(self, settings: Settings, paths: CityPaths, lock: ControllerLock, warn: Warn | None) -> None:
        self._settings = settings
        self._paths = paths
        self._lock = lock
        self._warn = warn or _logged
        self._clock = SystemClock()
        self._ids = IdSource(self._clock)
        self._lifetime = Lifetime(self._clock, "controller")
        self._stop = self._lifetime.told
        self._since: datetime = self._clock.now()
        self._listener = KeptListener()

    async def run(self, started: Callable[[Started], None]) -> None:
        """Run until told to stop. A controller that lost its proof of life starts anew once the database is back."""
        try:
            await self._lifetime.run(lambda first: self._live(started if first else _nothing))
        finally:
            self._listener.close()

    async def _live(self, started: Callable[[Started], None]) -> None:
        async with AsyncExitStack() as stack:
            controller, report = await self._build(stack)
            await self._open_control(stack, controller)
            self._lifetime.on_signals()
            await self._tell("controller.started", controller, {"pid": os.getpid(), "version": __version__})
            stack.push_async_callback(if_possible, self._tell, "controller.stopped", controller, {"pid": os.getpid()})
            heap.settle()
            started(report)
            await self._supervise(controller)
            if self._stop.is_set():
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
        place = self._place = parse_store_url(config.city.store.url, self._paths.runtime)
        migrate_own(place, self._paths.city_id())
        await self._open_beads(stack, found)
        member = self._member = await become_member(stack, self._opened, place, ACTOR, config.city.name)
        store, owner = member.store, member.owner
        await owners.take_control(store, member.proofs, owner, act=member.act)
        lost_after = config.city.workers.lost_after
        node = await join(member, self._opened, rigs_here(config.city), lost_after=lost_after)
        api = config.city.api
        self._http = HttpServer(
            self._opened, store, api.host, api.port, lambda: self._loops.active, kept=self._listener
        )
        self._http.open()
        stack.callback(self._http.close)
        me = review.Worker(owner.id, node.name)
        self._loops = loops_of(self._opened, config.city, store=store, me=me, api_url=lambda: self._http.url)
        stack.push_async_callback(self._loops.close)
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
        log_synced(await store.transact(self._loops.write, await self._declared(config)))
        self._patrol_parts = await build_patrol(stack, self._opened, config, store, node.name)
        self._config_watch = self._reloading(controller, config)
        self._reloader = self._config_watch.reloader
        await self._reloader.begin(found.problem)
        controller.ticks.phases = self._phases(controller, config)
        controller.ticks.listen(member.wakes)
        self._loops.listen(member.wakes)
        peek = await store.read(overview, self._clock.now())
        return controller, Started(self._paths, config, str(place), member.took_over, peek)

    def _watching(self, store: Store) -> StoreWatch | None:
        """The watch of the database file; None on PostgreSQL, which has no file here."""
        if not isinstance(store, SqliteStore):
            return None
        copy = self._paths.runtime / SAVED_COPY
        return StoreWatch(store, self._clock, lambda: self._lock.in_place, copy)

    async def _open_beads(self, stack: AsyncExitStack, found: InForce) -> None:
        """Open the bead store before everything that uses it; it is closed after all of that."""
        city = self._opened = OpenCity(self._settings, self._paths, self._clock, self._ids)
        city.use(found)
        try:
            await asyncio.to_thread(open_beads, city)
        finally:
            city.close()
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
                log_synced(reports[0])

            return Candidate(write, swap)

        load = partial(load_city, self._paths.root, env=self._settings.env)
        record = ConfigFiles(self._paths, self._clock)
        reloader = Reloader(config, load, build, controller.store, self._clock, record=record)
        return ConfigWatch(watch, reloader, controller.ticks)

    def _phases(self, controller: Controller, config: LoadedCity) -> list[Phase]:
        agents = agent_phases(self._patrol_parts.patrol)
        own = [*controller.phases(config.city), *self._nodes.phases(config.city)]
        shared = [self._rig_claims.phase(), self._nodes.for_node(self._loops.tidy_phase())] if self._shared else []
        return [self._config_watch.phase(), *agents, *shared, *own]

    async def _open_control(self, stack: AsyncExitStack, controller: Controller) -> None:
        verbs = {
            "stop": self._verb_stop,
            "status": self._verb_status(controller),
            "wake": self._verb_wake(controller),
            "reload": self._verb_reload(controller),
            "agents": self._verb_agents,
            "overview": self._verb_overview(controller),
            "unquarantine": self._verb_unquarantine,
            "kill": self._verb_kill,
        }
        server = ControlServer(self._paths.socket, verbs)
        await server.start()
        stack.push_async_callback(server.close)
        try:
            self._paths.pid_file.write_text(f"{os.getpid()}\n", encoding="ascii")
            self._paths.pid_file.chmod(0o600)
        except OSError as error:  # it is for discovery only
            log.get().warning("pid_file.not_written", error=str(error))
        stack.callback(self._paths.pid_file.unlink, missing_ok=True)

    async def _supervise(self, controller: Controller) -> None:
        children = [
            Child("patrol", self._patrol_parts.patrol.run),
            Child("ticks", controller.ticks.loop),
            Child("watch", self._config_watch.run, stop=self._config_watch.stop),
            Child("http", self._http.run, stop=self._http.stop),
            *([Child("store watch", self._store_watch.loop)] if self._store_watch is not None else []),
            *([Child("vigil", self._peer_watch.loop)] if self._peer_watch is not None else []),
            *self._loops.children(),
        ]
        await self._lifetime.supervise(children)

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
        fact = Act(ACTOR, self._clock.now()).event(event_type, subject=controller.city.name, payload=dict(payload))
        await controller.store.transact(lambda tx: tx.events.append(fact))

    async def _verb_agents(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        patrol = self._patrol_parts.patrol
        view = View(
            patrol.roster, patrol.sight, patrol.patrol_history.histories, patrol.verdicts, self._clock.now(), kept=True
        )
        return {"agents": agent_rows(view)}

    def _verb_overview(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        """All that `lamp status` shows, so that the command need not load what this process has loaded already."""
        status = self._verb_status(controller)

        async def tell(request: Mapping[str, Any]) -> Mapping[str, Any]:
            now, paths = self._clock.now(), self._paths
            known = {
                "suspended": self._reloader.current.city.workspace.suspended,
                "controller": await status(request),
                "agents": (await self._verb_agents(request))["agents"],
            }
            recorded = await controller.store.read(on_record, paths.root, now)
            return await asyncio.to_thread(self._with_nodes, recorded, known)

        return tell

    def _with_nodes(self, recorded: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        city = OpenCity(self._settings, self._paths, self._clock, self._ids)
        city.__dict__["place"] = self._place  # city.toml may name another store by now, or be broken
        try:
            return whole(recorded, city, **known)
        finally:
            city.close()

    async def _verb_unquarantine(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._patrol_parts.patrol.patrol_history.cleared(_session(request))
        self._patrol_parts.patrol.look_soon()
        return {"ok": True}

    async def _verb_kill(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        killed = await self._patrol_parts.patrol.kill(_session(request), str(request.get("by", "somebody")))
        return {"killed": killed}

    async def _verb_stop(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._stop.set()
        return {"ok": True, "pid": os.getpid()}

    def _verb_status(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        async def status(_request: Mapping[str, Any]) -> Mapping[str, Any]:
            last = controller.ticks.last_tick_at
            return {
                "running": True,
                "pid": os.getpid(),
                "version": __version__,
                "since": rfc3339(self._since),
                "last_tick_at": None if last is None else rfc3339(last),
                "api": self._http.url,
                "config_error": self._reloader.error,
                "descriptors": {"open": descriptors.count_open(), "limit": descriptors.limit()},
                "problems": self._store_problem() | controller.ticks.problems | self._patrol_parts.patrol.problems,
            }

        return status

    def _store_problem(self) -> dict[str, str]:
        problem = None if self._store_watch is None else self._store_watch.problem
        return {} if problem is None else {"database": problem}

    def _verb_reload(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        async def reload(_request: Mapping[str, Any]) -> Mapping[str, Any]:
            answer = self._reloader.asked()
            controller.ticks.wake_phase("reload")
            return {"config_error": await answer}

        return reload

    def _verb_wake(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        async def wake(_request: Mapping[str, Any]) -> Mapping[str, Any]:
            controller.ticks.wake_all()
            return {"ok": True}

        return wake


def _logged(note: str) -> None:
    log.get().warning("config.last_good_in_force", note=note)


def _session(request: Mapping[str, Any]) -> SessionName:
    """Raises UsageError."""
    try:
        return session_name(str(request.get("session", "")))
    except ValueError as error:
        raise UsageError(f"{error}.", hint="`lamp session list` shows those there are.") from error


def _nothing(_report: Started) -> None:
    return
