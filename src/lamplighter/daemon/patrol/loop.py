"""The patrol: looks at sessions, lets the pure `plan` decide, has actions carried out, and reacts at once to ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lamplighter.daemon.patrol.busy import BusyInstances
from lamplighter.daemon.patrol.clock_back import CorrectedTimes
from lamplighter.daemon.patrol.demand import Demand
from lamplighter.daemon.patrol.executor import CRASH_LINES, ActionExecutor
from lamplighter.daemon.patrol.history import ACTOR, PatrolHistory
from lamplighter.daemon.patrol.prompts import PermissionPrompts
from lamplighter.domain.city.wanted import Roster, wanted
from lamplighter.domain.sessions.actions import Action, AgentState, Verdict
from lamplighter.domain.sessions.idle import draining
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import Sight, Wanted, agent_of, former_sessions, is_runs, pool_of
from lamplighter.domain.sessions.patrol import plan
from lamplighter.kit import log
from lamplighter.kit.clock import Clock, Reading
from lamplighter.kit.errors import LampError
from lamplighter.kit.loop import every
from lamplighter.kit.tasks import spawn
from lamplighter.ports.agents import PoolCheck, Work, Workshop
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.sessions import Prompted
from lamplighter.store.sessions import SessionEnd

FEW = 8  # up to this many ended sessions are looked at one by one; for more, a look at all is cheaper
SOONEST = timedelta(milliseconds=20)
LATEST = timedelta(hours=1)
AGAIN = timedelta(seconds=1)
ADOPTED = "found running"
PROMPTS = SessionName("prompts")
"""The turn of facts about all agents that stand at a prompt."""


@dataclass
class Patrol:
    """`tick` looks at everything; `run` reacts to ends and due times between ticks.

    A tick and a relight may overlap; their decisions cannot, because `_decide` does not await.
    """

    roster: Roster
    provider: SessionProvider
    patrol_history: PatrolHistory
    executor: ActionExecutor
    demand: Demand
    busy: BusyInstances
    clock: Clock
    sight: dict[SessionName, Seen]
    prompts: PermissionPrompts
    one_pass: bool = False
    verdicts: dict[SessionName, Verdict] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    _times: CorrectedTimes = field(default_factory=CorrectedTimes)
    _busy: frozenset[SessionName] = frozenset()
    _under_way: dict[SessionName, asyncio.Task[None]] = field(default_factory=dict)
    _ended: set[SessionName] = field(default_factory=set)  # reported as ended, and not yet looked at
    _done: set[SessionName] = field(default_factory=set)  # changed by an action, and not yet decided upon
    _later: set[SessionName] = field(default_factory=set)  # reported as ended while an action was under way
    _touched: set[SessionName] = field(default_factory=set)  # changed since the last look at all began
    _left_draining: set[SessionName] = field(default_factory=set)  # no longer there, and draining when last seen
    _former: frozenset[SessionName] = frozenset()  # living, of agents that are wanted under another session name
    _look_at: datetime | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _ticking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _loaded: bool = False
    _closed: bool = False
    _problem: str | None = None

    @staticmethod
    def build(
        roster: Roster,
        *,
        provider: SessionProvider,
        workshop: Workshop,
        work: Work,
        check: PoolCheck,
        patrol_history: PatrolHistory,
    ) -> "Patrol":
        clock = patrol_history.clock
        sight: dict[SessionName, Seen] = {}
        executor = ActionExecutor(provider, workshop, work, patrol_history, clock, lambda: patrol.roster, sight)
        demand = Demand(check, work, clock, lambda: patrol.look_soon())  # noqa: PLW0108  it is made below
        busy = BusyInstances(work, lambda: patrol.look_soon())  # noqa: PLW0108  it is made below
        prompts = PermissionPrompts(provider)
        patrol = Patrol(roster, provider, patrol_history, executor, demand, busy, clock, sight, prompts)
        return patrol

    @property
    def problems(self) -> dict[str, str]:
        """Problems of single agents and pools, of records and of the provider, for `lamp status`."""
        found = dict(self.executor.problems)
        found |= {f"pool {name}": text for name, text in self.demand.problems.items()}
        if self.busy.problem:
            found["beads"] = self.busy.problem
        if self.patrol_history.problem:
            found["agents' records"] = self.patrol_history.problem
        if self._problem:
            found["sessions"] = self._problem
        return found

    @property
    def unknown_pools(self) -> dict[str, str]:
        """Pools whose demand is not known, each with the reason; what runs of them is kept."""
        pools = [pool.qualified_name for pool in self.roster.pools if pool.pool is not None and pool.pool.max > 0]
        asked = {name: self.demand.problems.get(name, "it is being asked") for name in pools}
        return {name: why for name, why in asked.items() if self.demand.known.get(name) is None}

    def swap(self, roster: Roster) -> None:
        """Use another configuration from now on; histories are kept."""
        self.roster = roster
        known = {f"agent {name}" for name in roster.declared}
        for name in self.executor.problems.keys() - known:
            del self.executor.problems[name]

    # ── deciding ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def tick(self) -> None:
        """Look at all sessions once and start the actions that follow. Raises ProviderUnavailable."""
        async with self._ticking:
            await self._load()
            self.demand.refresh(self.roster.loaded, self.roster.pools, self.roster.city.daemon.patrol_interval)
            self._forget_changes()  # before the look: changes during it are newer than what it finds
            self._keep(self._times.all(await self.provider.seen(), self._read_clocks()))
            self._adopt()
            await self._look_for_prompts()
            busy = await self._busy_instances()
            waiting = self.prompts.waiting.keys()  # one that stands at a prompt does not work, whatever it has claimed
            found = {seen.name for seen in self.sight.values() if agent_of(seen) in busy}
            self._busy = frozenset(found - waiting)
            wish = wanted(self.roster, self.demand.known, self.sight, busy)
            self.wanted = replace(wish, one_pass=self.one_pass)
            self._former = former_sessions(self.wanted, self.sight)
            self._left_draining &= {agent.session for agent in self.wanted.agents}
            self._decide(self.wanted, self.sight, whole=True)
        await self.patrol_history.flush()

    async def relight(self, ended: set[SessionName], done: Iterable[SessionName] = ()) -> None:
        """Look only at the sessions that ended, and decide for them and for those in `done`, which an action changed.

        With more than FEW of them, agents that depend on others or that wait for the end of a former session, it makes
        a whole tick instead.
        """
        report = set(ended)
        if len(report) > FEW or self._former or any(agent.depends_on for agent in self.wanted.agents):
            await self.tick()
            return
        self._touched |= report
        await asyncio.gather(*map(self._look_at_one, report))
        self._adopt(report)
        chosen = report | set(done)
        agents = tuple(agent for agent in self.wanted.agents if agent.session in chosen)
        sight = {name: self.sight[name] for name in chosen if name in self.sight}
        self._decide(replace(self.wanted, agents=agents), sight, whole=False)

    async def kill(self, session: SessionName, by: str) -> bool:
        """End a session without grace, because a person asked for it; False if there is no such session.

        Waits first for an action under way with the session. It is started again if it is wanted.
        """
        seen = None
        while seen is None or session in self._under_way:
            while (busy := self._under_way.get(session)) is not None:
                await asyncio.wait({busy})
            seen = await self.provider.see(session)
            if seen is None:
                return False
        self.sight[session] = self._times.one(seen, self._read_clocks())
        task = spawn(self._guard(session, self.executor.kill(session, agent_of(seen), by)), name=f"kill {session}")
        self._under_way[session] = task
        await asyncio.wait({task})
        return True

    def look_soon(self) -> None:
        self._look_again(self.clock.now())

    async def run(self) -> None:
        """Until cancelled, look at sessions as soon as they end, and at all sessions when something falls due."""
        endings = self.provider.ended()  # before the first look, so that no end after it is missed
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(endings), name="endings")
            group.create_task(every(lambda: LATEST, self._react, clock=self.clock, wake=self._wake), name="react")
            group.create_task(every(self._until_due, self._look_if_due, clock=self.clock, wake=self._due), name="due")

    async def settled(self) -> None:
        """Tick until no more actions follow: for a patrol that makes a single pass."""
        await self._rest()
        while self._ended or self._done or self._is_due():
            await self.tick()
            await self._rest()
        await self.patrol_history.flush()

    async def _rest(self) -> None:
        await self.demand.settled()
        while self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    async def close(self) -> None:
        """Decide nothing more and cancel the actions under way; the next controller adopts their sessions."""
        self._closed = True
        await self.demand.close()
        await self.busy.close()
        await self.executor.close()
        for task in list(self._under_way.values()):
            task.cancel()
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()), timeout=10)
        await self.patrol_history.flush()

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _load(self) -> None:
        if not self._loaded:
            settings = self.roster.city.daemon
            await self.patrol_history.load(settings.restart_window, keep_quarantine=settings.keep_quarantine)
            self._loaded = True

    def _keep(self, found: Mapping[SessionName, Seen]) -> None:
        """Put what was found into `sight`, except for sessions that changed meanwhile: their entries are newer."""
        newer = self._touched | self._under_way.keys()
        for name in [name for name in self.sight if name not in found and name not in newer]:
            self._forget(name)
        self.sight.update({name: seen for name, seen in found.items() if name not in newer})

    def _forget(self, name: SessionName) -> None:
        """Drop a session that is gone, but remember whether it was asked to finish: its end is then no crash."""
        seen = self.sight.pop(name, None)
        if seen is not None and draining(seen) is not None:
            self._left_draining.add(name)

    def _forget_changes(self) -> None:
        self._put_off(self._ended)
        self._ended.clear()
        self._done.clear()
        self._touched.clear()

    def _adopt(self, names: Iterable[SessionName] | None = None) -> None:
        """Record living sessions without a recorded start.

        Another controller started them, or one that died before it recorded the start.
        """
        for name in list(self.sight) if names is None else names:
            seen = self.sight.get(name)
            if seen is None or not seen.alive or is_runs(seen) or name in self._under_way:
                continue
            known = self.patrol_history.open_ids.get(name)
            if known == seen.session_id:
                continue
            at = seen.started_at or self.clock.now()
            if known is not None:
                self.patrol_history.ended(name, SessionEnd(at, "ended unseen"), wished=False)
            counted = self.patrol_history.of(name).next_start_counts
            self.patrol_history.began(agent_of(seen), seen, ADOPTED, at=at, counted=counted, told=False)
            log.get().info("agent.adopted", agent=agent_of(seen), session=name, pid=seen.pid)

    async def _look_at_one(self, name: SessionName) -> None:
        """Look at one session and, if it was alive, read its last output at the same time: a relight needs both."""
        before = self.sight.get(name)
        if before is None or not before.alive:
            seen = await self.provider.see(name)
        else:
            seen, words = await asyncio.gather(self.provider.see(name), self.provider.peek(name, CRASH_LINES))
            if seen is not None and not seen.alive and seen.session_id == before.session_id:
                self.executor.last_words[name] = words
        if seen is None:
            self._forget(name)
        else:
            self.sight[name] = self._times.one(seen, self._read_clocks())

    async def _look_for_prompts(self) -> None:
        if self.one_pass:
            return
        now = self.clock.now()
        await self.prompts.look(self.sight, now)
        news = self.prompts.news(self.roster.city.session.permission_wait, now)
        if news is not None:
            self.patrol_history.add(PROMPTS, Prompted(news, now, ACTOR))

    def _read_clocks(self) -> Reading:
        return Reading(self.clock.now(), self.clock.monotonic())

    async def _busy_instances(self) -> frozenset[str]:
        """The names of instances at work; all members of pools that run while the bead store cannot tell."""
        asked = self.one_pass or bool(self.roster.pools) or any(draining(seen) for seen in self.sight.values())
        members = frozenset(agent_of(seen) for seen in self.sight.values() if seen.alive and pool_of(seen))
        return await self.busy.ask(members) if asked else frozenset()

    def _decide(self, wish: Wanted, seen: Mapping[SessionName, Seen], *, whole: bool) -> None:
        if self._closed:
            return
        now = self.clock.now()
        self._left_draining -= self.sight.keys()
        sight = Sight(seen, self._busy, frozenset(self._under_way), frozenset(self._left_draining))
        made = plan(wish, sight, self.patrol_history.histories, now)
        verdicts = {name: self._told(name, verdict) for name, verdict in made.verdicts.items()}
        if whole:
            self.verdicts = verdicts
        else:
            self.verdicts.update(verdicts)
        dues = [
            verdict.until for verdict in self.verdicts.values() if verdict.until is not None and verdict.until > now
        ]
        if not whole and self._look_at is not None:
            dues.append(self._look_at)  # a look at a few does not replace a look at all that was asked for
        self._look_again(min(dues, default=None))
        grouped: dict[SessionName, list[Action]] = {}
        for action in made.actions:
            grouped.setdefault(action.session, []).append(action)
        for session, actions in grouped.items():
            self.patrol_history.turn(session)
            task = spawn(self._guard(session, self.executor.carry_out(actions)), name=f"agent {session}")
            self._under_way[session] = task

    def _told(self, session: SessionName, verdict: Verdict) -> Verdict:
        """The verdict on an agent at a permission prompt says so."""
        waits = self.prompts.waiting.get(session)
        if waits is None or verdict.state is not AgentState.RUNNING or verdict.reason:
            return verdict
        return replace(verdict, reason=f"waits at a permission prompt: {waits.what}")

    async def _guard(self, session: SessionName, work: Awaitable[bool]) -> None:
        """Await the work on a session and contain its errors; if it was done, have the session decided upon anew."""
        worth_a_look = False
        try:
            worth_a_look = await work
        except LampError as error:
            log.get().warning("agent.action_failed", session=session, error=error.message)
            self._problem = error.message
        except Exception as error:  # noqa: BLE001  one agent's trouble must not end the others' patrol
            log.get().error("agent.action_broke", session=session, exc_info=error)
            self._problem = f"{session}: {type(error).__name__}: {error}"
        finally:
            self._under_way.pop(session, None)
            self._touched.add(session)
            if session in self._later:
                self._later.discard(session)
                self._ended.add(session)
            if worth_a_look:
                self._done.add(session)
            self._wake.set()

    # ── between ticks ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, endings: AsyncIterator[SessionName]) -> None:
        async for name in endings:
            self._ended.add(name)
            self._wake.set()

    def _put_off(self, ended: set[SessionName]) -> None:
        """Sessions with an action under way are looked at when that action is done."""
        self._later |= ended & self._under_way.keys()

    def _until_due(self) -> timedelta:
        if self._look_at is None:
            return LATEST
        return min(max(self._look_at - self.clock.now(), SOONEST), LATEST)

    def _is_due(self) -> bool:
        return self._look_at is not None and self._look_at <= self.clock.now()

    async def _look_if_due(self) -> None:
        if self._is_due():
            self._look_at = None
            await self._tried(self.tick())

    async def _react(self) -> None:
        self._put_off(self._ended)
        ended, self._ended = self._ended - self._under_way.keys(), set()
        done, self._done = self._done, set()
        if (ended or done) and self._loaded:
            await self._tried(self.relight(ended, done))

    async def _tried(self, look: Awaitable[None]) -> None:
        """Await a look; if it fails with a LampError, look at all sessions again after AGAIN."""
        try:
            await look
        except LampError as error:
            self._problem = error.message
            self._look_again(self.clock.now() + AGAIN)
            log.get().warning("patrol.failed", error=error.message, hint=error.hint)
        else:
            self._problem = None

    def _look_again(self, at: datetime | None) -> None:
        self._look_at = at
        self._due.set()
