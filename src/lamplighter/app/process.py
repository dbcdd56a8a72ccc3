"""The daemon process: lock first, then store, socket, signals and the supervision tree; and all of it down again."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.control import ControlServer
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.adapters.files.watch import Watch
from lamplighter.app.automations import definitions_of, loops_of, rules_of
from lamplighter.app.beads import close_beads, open_beads
from lamplighter.app.http import HttpServer
from lamplighter.app.patrol import build_patrol
from lamplighter.app.settings import Settings
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, host, locate
from lamplighter.daemon.agent_phases import agent_phases
from lamplighter.daemon.reloader import Reloader
from lamplighter.daemon.shutdown import SessionsLeft, stop_all
from lamplighter.daemon.ticks import Phase
from lamplighter.daemon.tree import Controller
from lamplighter.domain.acts import Act
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.wanted import roster
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit import aio, heap, log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import SystemClock, rfc3339
from lamplighter.kit.errors import Fenced, LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.supervise import Child, Supervisor
from lamplighter.services import owners
from lamplighter.services.agents import View, agent_rows
from lamplighter.store.owners import Owner
from lamplighter.store.place import migrate, open_proofs, open_store, parse_place
from lamplighter.store.proof import Proofs
from lamplighter.store.tx import Store
from lamplighter.store.wakes import Wakes

ACTOR = "controller"
FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)


@dataclass(frozen=True)
class Started:
    """What a person wants to know once the city is up."""

    paths: CityPaths
    config: LoadedCity
    store: str
    took_over: list[Owner]


def run_city(settings: Settings, *, started: Callable[[Started], None]) -> None:
    """Run the city until it is told to stop. Raises ControllerRunning at once when somebody else does."""
    paths = locate(settings)
    lock = ControllerLock(paths.lock)
    lock.take()  # before anything is touched
    try:
        aio.run(_Process(settings, paths).run(started))
    finally:
        lock.release()


@dataclass(frozen=True)
class Pass:
    """What one pass did: the phases that ran, what became of agents, and what stood in the way."""

    phases: list[str]
    done: list[str]
    problems: dict[str, str]


def run_once(settings: Settings) -> Pass:
    """One pass over every phase, and all that follows from it; sessions live on."""
    paths = locate(settings)
    lock = ControllerLock(paths.lock)
    lock.take()
    try:
        return aio.run(_Process(settings, paths).once())
    finally:
        lock.release()


class _Process:
    def __init__(self, settings: Settings, paths: CityPaths) -> None:
        self._settings = settings
        self._paths = paths
        self._clock = SystemClock()
        self._ids = IdSource(self._clock)
        self._stop = asyncio.Event()
        self._since: datetime = self._clock.now()

    async def run(self, started: Callable[[Started], None]) -> None:
        """Until told to stop. A controller that lost its proof of life starts anew, once the database is back."""
        fenced, waits = False, 0
        while not self._stop.is_set():
            try:
                return await self._live(_nothing if fenced else started)
            except Unavailable as error:
                if not fenced and not isinstance(error, Fenced):
                    raise
                fenced, waits = True, 0 if isinstance(error, Fenced) else waits + 1
                log.get().warning("controller.starts_anew", error=error.message)
            await self._clock.wait(self._stop, at_most=doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT))
        return None

    async def _live(self, started: Callable[[Started], None]) -> None:
        async with AsyncExitStack() as stack:
            controller, report = await self._build(stack)
            await self._open_control(stack, controller)
            self._on_signals()
            await self._tell("controller.started", controller, {"pid": os.getpid(), "version": __version__})
            stack.push_async_callback(_if_possible, self._tell, "controller.stopped", controller, {"pid": os.getpid()})
            heap.settle()
            started(report)
            await self._supervise(controller)
            if self._stop.is_set():
                await self._stop_sessions()

    async def once(self) -> Pass:
        async with AsyncExitStack() as stack:
            controller, _ = await self._build(stack)
            phases = await controller.ticks.tick()
            await self._loops.once()
            await self._tower.patrol.settled()
            problems = controller.ticks.problems | self._tower.patrol.problems
            return Pass([*phases, "automations"], self._tower.patrol.hands.done, problems)

    async def _build(self, stack: AsyncExitStack) -> tuple[Controller, Started]:
        """Everything up to the first tick, with its undoing on the stack, last one first."""
        config = load_city(self._paths.root, env=self._settings.env)
        place = parse_place(config.city.store.url, self._paths.runtime)
        migrate(place)
        await self._open_beads(stack)
        wakes = Wakes()
        store = open_store(place, self._paths.city_id(), wakes)
        stack.push_async_callback(store.close)
        owner = Owner(self._ids.make("own"), "controller", host(), os.getpid(), self._clock.now())
        stack.enter_context(listening(place, owner.id, wakes))
        await store.transact(lambda tx: tx.cities.ensure(config.city.name, owner.started_at))
        proofs = open_proofs(place)
        stack.callback(proofs.release, owner.id)
        act = Act(ACTOR, owner.started_at)
        took_over = await owners.enlist(store, proofs, owner, act=act)
        stack.push_async_callback(_if_possible, self._leave, store, proofs, owner)
        await owners.take_control(store, proofs, owner, act=act)
        self._http = HttpServer(
            self._opened, store, config.city.api.host, config.city.api.port, lambda: self._loops.scene.rules
        )
        self._http.open()
        stack.callback(self._http.close)
        self._loops = loops_of(self._opened, config.city, store=store, owner=owner.id, api_url=lambda: self._http.url)
        stack.push_async_callback(self._loops.close)
        controller = Controller.build(
            config.city,
            store=store,
            proofs=proofs,
            clock=self._clock,
            owner=owner.id,
            export=self._paths.events_export,
            automations=self._loops,
        )
        await self._apply_automations(config)
        self._tower = await build_patrol(stack, self._opened, config, store)
        self._reloader = self._reloading(controller, config)
        controller.ticks.phases = self._phases(controller, config)
        controller.ticks.listen(wakes)
        self._loops.listen(wakes)
        return controller, Started(self._paths, config, str(place), took_over)

    async def _leave(self, store: Store, proofs: Proofs, owner: Owner) -> None:
        await owners.leave(store, proofs, owner, clock=self._clock)

    async def _open_beads(self, stack: AsyncExitStack) -> None:
        """The bead store comes up before all that uses it, and goes down after it."""
        city = self._opened = OpenCity(self._settings, self._paths, self._clock, self._ids)
        try:
            await asyncio.to_thread(open_beads, city)
        finally:
            city.close()
        stack.push_async_callback(_if_possible, asyncio.to_thread, close_beads, city)

    async def _apply_automations(self, config: LoadedCity) -> None:
        """The rules and definitions of this configuration, for everything that fires from now on."""
        definitions = await asyncio.to_thread(definitions_of, config.city)
        await self._loops.apply(config.city, rules_of(config.city, self._settings.env), definitions)

    def _reloading(self, controller: Controller, config: LoadedCity) -> Reloader:
        self._watch = Watch(config.sources)

        async def swap(new: LoadedCity) -> None:
            await self._apply_automations(new)
            self._tower.patrol.swap(roster(new))
            controller.ticks.swap(self._phases(controller, new), new.city.daemon.patrol_interval)
            self._watch.refresh(new.sources)

        load = partial(load_city, self._paths.root, env=self._settings.env)
        return Reloader(config, load, swap, controller.store, self._clock)

    def _phases(self, controller: Controller, config: LoadedCity) -> list[Phase]:
        agents = agent_phases(self._tower.patrol)
        return [Phase("reload", self._reloader.tick), *agents, *controller.phases(config.city)]

    async def _notice_changes(self, controller: Controller) -> None:
        early = asyncio.create_task(self._look_once(controller), name="watch is ready")
        try:
            async for _ in self._watch.changes():
                self._look_again(controller)
        finally:
            early.cancel()

    async def _look_once(self, controller: Controller) -> None:
        """What changed after the configuration was read and before the watch began is nobody's news."""
        await self._watch.ready.wait()
        self._look_again(controller)

    def _look_again(self, controller: Controller) -> None:
        self._reloader.touch()
        controller.ticks.rouse("reload")

    async def _open_control(self, stack: AsyncExitStack, controller: Controller) -> None:
        verbs = {
            "stop": self._verb_stop,
            "status": self._verb_status(controller),
            "wake": self._verb_wake(controller),
            "reload": self._verb_reload(controller),
            "agents": self._verb_agents,
            "unquarantine": self._verb_unquarantine,
            "kill": self._verb_kill,
        }
        server = ControlServer(self._paths.socket, verbs)
        await server.start()
        stack.push_async_callback(server.close)
        self._paths.pid_file.write_text(f"{os.getpid()}\n", encoding="ascii")
        self._paths.pid_file.chmod(0o600)
        stack.callback(self._paths.pid_file.unlink, missing_ok=True)

    async def _supervise(self, controller: Controller) -> None:
        """Until told to stop, or until a part fails for good, which is raised."""
        supervisor = Supervisor(self._clock)
        children = [
            Child("patrol", self._tower.patrol.run),
            Child("ticks", controller.ticks.loop),
            Child("watch", partial(self._notice_changes, controller), stop=self._end_watch),
            Child("http", self._http.run, stop=self._http.stop),
            *self._loops.children(),
        ]
        tree = asyncio.create_task(supervisor.run(children), name="tree")
        told = asyncio.create_task(self._stop.wait(), name="stop")
        await asyncio.wait({tree, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if tree.done():
            await tree
        tree.cancel()
        with suppress(asyncio.CancelledError):
            await tree

    async def _stop_sessions(self) -> None:
        """Everything the city started goes down with it; what would not is told, and ends this process in failure."""
        await self._tower.patrol.close()
        within = self._reloader.current.city.daemon.shutdown_timeout
        stopped = await stop_all(self._tower.provider, self._tower.memory, within=within)
        log.get().info("agents.stopped", count=len(stopped.agents))
        if stopped.left:
            raise SessionsLeft(stopped.left)

    async def _end_watch(self) -> None:
        self._watch.close()

    async def _tell(self, event_type: str, controller: Controller, payload: Mapping[str, Any]) -> None:
        fact = Act(ACTOR, self._clock.now()).event(event_type, subject=controller.city.name, payload=dict(payload))
        await controller.store.transact(lambda tx: tx.events.append(fact))

    def _on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last: its terminal was closed
            loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            if number is signal.SIGHUP:
                return  # the terminal closed on a city that is stopping already
            log.get().warning("stop.forced", signal=number.name)
            os._exit(128 + number)  # asked twice: whoever waits has waited long enough
        log.get().info("stop.asked", signal=number.name)
        self._stop.set()

    async def _verb_agents(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        patrol = self._tower.patrol
        view = View(patrol.roster, patrol.sight, patrol.memory.histories, patrol.verdicts, self._clock.now(), kept=True)
        return {"agents": agent_rows(view)}

    async def _verb_unquarantine(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._tower.patrol.memory.cleared(SessionName(str(request["session"])))
        self._tower.patrol.look_soon()
        return {"ok": True}

    async def _verb_kill(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        killed = await self._tower.patrol.kill(SessionName(str(request["session"])), str(request["by"]))
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
                "problems": controller.ticks.problems | self._tower.patrol.problems,
            }

        return status

    def _verb_reload(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        async def reload(_request: Mapping[str, Any]) -> Mapping[str, Any]:
            answer = self._reloader.asked()
            controller.ticks.rouse("reload")
            return {"config_error": await answer}

        return reload

    def _verb_wake(self, controller: Controller) -> Callable[[Mapping[str, Any]], Any]:
        async def wake(_request: Mapping[str, Any]) -> Mapping[str, Any]:
            controller.ticks.rouse_all()
            return {"ok": True}

        return wake


async def _if_possible(farewell: Callable[..., Awaitable[object]], *args: Any) -> None:
    """A city also stops while its database is away: the next controller finds what was left, and buries it."""
    try:
        await farewell(*args)
    except LampError as error:
        log.get().warning("stop.incomplete", error=error.message)


def _nothing(_report: Started) -> None:
    return
