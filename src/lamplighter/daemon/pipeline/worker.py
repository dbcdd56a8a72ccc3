"""Runs under way in this process: their leases, their slots, and each run's job carried out step by step."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lamplighter.daemon.active_config import ActiveConfig, Tasks
from lamplighter.daemon.pipeline.agent_job import AgentSteps
from lamplighter.daemon.pipeline.agent_sessions import AgentRuns
from lamplighter.daemon.pipeline.exec_job import ExecSteps, interrupted
from lamplighter.daemon.pipeline.jobs import Steps, Work, run_of
from lamplighter.daemon.pipeline.slots import Reservation, Slots
from lamplighter.daemon.ticks import Waker
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.delivery.outbox import STAGES, Item
from lamplighter.domain.runs.job import (
    AT_WORK,
    Broke,
    Claimed,
    Message,
    RunEnded,
    Step,
    StepDone,
    StepFailed,
    TakenByPerson,
    TakenOver,
    ToldToStop,
    TryAgain,
    decide,
    listens,
)
from lamplighter.domain.runs.job import Phase as JobPhase
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import By, IllegalMove, Mover, Run, Stage
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.ports.commands import CommandRunner
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import nodes, owners
from lamplighter.services.automations.firing import ByHand, Fired, run_by_hand
from lamplighter.services.context import Context, acting
from lamplighter.services.runs import review, taking
from lamplighter.services.runs.workers import Started
from lamplighter.store.runs import StaleRun
from lamplighter.store.tx import Store, Tx

RENEW_EVERY = timedelta(seconds=60)
SPARED = timedelta(seconds=60)
STOP_TRIES = 4
FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)
RELEASED_KEPT = 1000


@dataclass
class Worker:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    runner: CommandRunner
    me: review.Worker
    agents: AgentRuns | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    room_made: Callable[[], None] = lambda: None
    """Called when a slot becomes free: when a run's work is over, and when the worker is done with the run."""
    doubted: Callable[[], None] = lambda: None
    """Called when an answer of the database was lost."""
    tasks: Tasks = field(default_factory=Tasks)
    _released: deque[str] = field(default_factory=lambda: deque(maxlen=RELEASED_KEPT))
    """Runs whose sessions were ended and freed here of late."""
    _doubted_at: datetime | None = None
    _room: Slots = field(init=False)
    _works: dict[str, Work] = field(default_factory=dict)
    _renewed: float = 0.0

    def __post_init__(self) -> None:
        self._room = Slots(self.clock, answer_lost=self.doubt)

    @property
    def room(self) -> int:
        return self._room.left

    def start_grant(self, most: int) -> Reservation:
        """Reserve slots for a transaction that fires; see `Slots.reserve`. None where runs have to be counted first."""
        return self._room.reserve(self.me, self.active.reach, 0 if self.active.bounds_commands else most)

    def holds(self, run: str) -> bool:
        return run in self._works

    def has_released(self, run: str) -> bool:
        """Whether this process has stopped the session of the run and freed all that belonged to it."""
        return run in self._released

    @property
    def released(self) -> frozenset[str]:
        """The runs of which `has_released` is true."""
        return frozenset(self._released)

    def doubt(self) -> None:
        """Note that an answer of the database was lost, so that this process may hold work that it does not know of."""
        self._doubted_at = self.clock.now()
        self.doubted()

    async def give_back(self, handled: Collection[Item]) -> int:
        """After a lost answer, give up what this process has on record and does not work on; returns how many runs.

        `handled` are the outbox items at work here. While a transaction fires, nothing is given up: it may just have
        started runs that are not begun yet.
        """
        doubted_at = self._doubted_at
        if doubted_at is None or self._room.promised:
            return 0
        runs = {str(item.payload.get("run")) for item in handled if item.kind in STAGES}
        held = owners.HeldWork(frozenset(runs | self._works.keys()), frozenset(item.id for item in handled))
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        left = await self.store.transact(owners.give_back, self.me.owner, held, before=doubted_at, ctx=ctx)
        left.tell(self.me.owner)
        if self._doubted_at == doubted_at:
            self._doubted_at = None
        return left.leases

    def listen(self, waker: Waker) -> None:
        waker.watch((review.TAKEN, review.TOLD), self.wake.set, self)

    async def loop(self) -> None:
        await every(lambda: RENEW_EVERY, self.tick, clock=self.clock, wake=self.wake)

    async def tick(self) -> None:
        """Renew the leases, and tell the jobs whose run has ended or went to another holder."""
        held = {run: work.row.lease.version for run, work in self._works.items()}
        if not held:
            return
        now = self.clock.monotonic()
        if now - self._renewed >= RENEW_EVERY.total_seconds():
            await self.store.transact(review.renew, held, self.me.owner, self.clock.now())
            self._renewed = now
        works = {run: self._works[run] for run in held if self._awaits(run)}
        followed = {run for run, work in works.items() if self._follows(run, work)}
        news = await self.store.read(_news, held, followed, self.me.owner)
        for run, fate in news.fates.items():
            if (
                run in works and self._works.get(run) is works[run] and self._awaits(run)
            ):  # newer work has its own lease
                works[run].tell(fate)
        for run, taken in news.called.items():
            if self._works.get(run) is works[run] and self._follows(run, works[run]):
                works[run].tell(TakenByPerson() if taken else Claimed())

    def _follows(self, run: str, work: Work) -> bool:
        return work.row.action == ActionKind.AGENT and work.job.phase is JobPhase.FOLLOWING and self._awaits(run)

    def _awaits(self, run: str) -> bool:
        """Whether the run is being worked on and nothing has been told to its job yet."""
        work = self._works.get(run)
        return work is not None and work.job.phase in AT_WORK and not work.inbox

    async def fire(self, wanted: ByHand, *, ctx: Context) -> Fired:
        """Fire an automation by hand, and start its run at once if possible. Raises what `run_by_hand` raises."""
        rules = self.active.rules
        with self.start_grant(1) as start_grant:
            fired = await self.store.transact(run_by_hand, wanted, rules=rules, ctx=ctx, start_grant=start_grant)
            self.begin_all([fired.started] if fired.started is not None else [])
        return fired

    def begin_all(self, started: Iterable[Started]) -> None:
        for one in started:
            self.begin(one.row, one.trigger)

    def begin(self, row: Run, trigger: dict[str, Any] | None = None, *, adopted: bool = False) -> None:
        """Start working on a run whose lease this process holds, from the run's current stage."""
        work = self._works[row.id] = Work(row, trigger, adopted)
        if row.action == ActionKind.AGENT and row.id in self._released:
            self._released.remove(row.id)  # it goes on, in a session that is to be stopped again
        self._room.busy += 1
        self._room.held += 1
        work.task = asyncio.create_task(self._work(work), name=row.id)
        work.task.add_done_callback(lambda _task: self._done_with(work))
        self.tasks.add(work.task)

    async def adopt(self) -> int:
        """Adopt the running runs of dead processes of this node; returns how many."""
        now, rigs, room = self.clock.now(), self.active.rigs, self.room
        if room <= 0 or not await self.store.read(lambda tx: tx.runs.has_orphans(self.me.node, now, rigs=rigs)):
            return 0
        rows = await self.store.transact(review.adopt, self.me, self.clock.now(), limit=room, rigs=rigs)
        for row in rows:
            log.get().info("run.adopted", run=row.id, automation=row.automation)
            self.begin(row, adopted=True)
        return len(rows)

    async def tidy(self) -> None:
        """Remove all that a dead process of this node left behind."""
        await self.sweep()
        await self.clear()

    async def sweep(self) -> None:
        """Remove what dead processes left half made, and end their checks if this process is alone on its node.

        Beside other processes checks are left alone, because they may belong to a living one.
        """
        await self.runner.sweep(checks=await self._alone())

    async def clear(self) -> None:
        """End and forget commands and sessions of runs that have ended: their worker died in between.

        If other processes share the node, runs that ended less than SPARED ago are skipped: their holder may still be
        cleaning up.
        """
        before = self.clock.now() - (timedelta(0) if await self._alone() else SPARED)
        held = frozenset(self._works)
        if self.agents is not None:
            await self.agents.tidy(held, before=before)
        kept = await self.runner.kept()
        over = await self.store.read(review.over_among, {run_of(key) for key in kept} - held, before)
        # Together: each looks for its processes, and those that look at the same time share one listing of all.
        cleared = await asyncio.gather(
            *(self._cleared(key) for key in kept if run_of(key) in over), return_exceptions=True
        )
        for failure in cleared:
            if failure is not None:
                raise failure

    async def _cleared(self, key: str) -> None:
        await self.runner.stop(key, grace=timedelta(0))
        await self.runner.forget(key)

    async def _alone(self) -> bool:
        return await self.store.read(nodes.alone, self.me.owner, self.me.node)

    async def stop(self) -> None:
        """End all runs under way as interrupted; a run's processes end before the run."""
        for work in tuple(self._works.values()):
            work.tell(ToldToStop())
        await self.tasks.all_done()

    # ── one job ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _work(self, work: Work) -> None:
        """Carry out one step after another; `decide` says which, after each message."""
        steps = self._steps_of(work.row)
        waits = 0
        while (step := work.job.step) is not None:
            message = await self._carried_out(work, step, steps)
            after = decide(work.job, message)
            if after is work.job:
                await self._pause(work, waits)
                waits += 1
                if not work.inbox:
                    continue
                message = work.inbox.popleft()
                after = decide(work.job, message)
            if work.cause is None and after.phase not in AT_WORK:
                self._tell_end(work, message)
                work.cause = message
                self._over(work)
            if after is not work.job:
                work.job, waits = after, 0

    async def _carried_out(self, work: Work, step: Step, steps: Steps) -> Message:  # noqa: PLR0911  a table of steps
        """Carry out the step; returns what came of it, or a message that arrived before it."""
        if work.inbox and listens(work.job):
            return work.inbox.popleft()
        match step:
            case Step.START:
                return await self._at_work(work, steps.start)
            case Step.FOLLOW:
                return await self._at_work(work, steps.follow)
            case Step.VERIFY:
                return await self._at_work(work, steps.verify)
            case Step.RECORD_END:
                return await self._record_end(work)
            case Step.HAND_OVER:
                return await self._hand_over(work)
            case _:
                return await self._tidied(work, step, steps)

    async def _at_work(self, work: Work, step: Callable[[Work], Awaitable[Message]]) -> Message:
        try:
            return await step(work)
        except Unavailable as error:
            log.get().warning("run.waits", run=work.run, error=error.message)
            return TryAgain()
        except LeaseLost as error:
            log.get().info("run.ended_elsewhere", run=work.run, error=error.message)
            return await self._what_became_of(work)
        except Exception as error:  # noqa: BLE001  a run must not stay `running` because something here broke
            log.get().error("run.broke", run=work.run, automation=work.row.automation, exc_info=error)
            told = error.message if isinstance(error, LampError) else f"{type(error).__name__}: {error}"
            work.ending = interrupted(told)
            return Broke()

    async def _tidied(self, work: Work, step: Step, steps: Steps) -> Message:
        """Carry out a step that stops or frees something; what fails is logged."""
        try:
            match step:
                case Step.LAST_WORDS:
                    return await steps.last_words(work)
                case Step.RELEASE:
                    await steps.release(work)
                    if not work.failures and work.row.action == ActionKind.AGENT:
                        self._released.append(work.run)
                case _:
                    await steps.stop(work)
        except Exception as error:
            if step is Step.TRY_TO_STOP:
                log.get().warning("run.not_stopped", run=work.run, error=str(error))
                work.failures += 1
                return StepDone()
            if not isinstance(error, (LampError, OSError)):
                raise
            log.get().warning("run.not_tidied", run=work.run, error=str(error))
            work.failures += 1
            return TryAgain() if step is Step.STOP and work.failures < STOP_TRIES else StepFailed()
        return StepDone()

    async def _record_end(self, work: Work) -> Message:
        """Record the run's end; the action has run, so its result must not be lost while the database is away."""
        row, ending = work.row, work.ending
        assert ending is not None  # noqa: S101  set by whatever led to this step
        crash_point(CrashPoint.RUN_BEFORE_END)
        mover = Mover.FINALIZER if ending.stage is Stage.FINALIZER else Mover.WORKER
        by = By(mover, self.me.actor, row.lease.version)
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        try:
            if row.action == ActionKind.EXEC:
                await self.store.transact(review.end_held, row, ending, by, ctx=ctx)
            else:
                await self.store.transact(review.end, row.id, ending, by, ctx=ctx)
        except Unavailable as error:
            log.get().warning("run.end_waits", error=error.message)
            return TryAgain()
        except (LeaseLost, IllegalMove, StaleRun, RunUnknown) as error:
            log.get().info("run.ended_elsewhere", run=row.id, error=error.message)
            return await self._what_became_of(work)
        crash_point(CrashPoint.RUN_AFTER_END)
        return StepDone()

    async def _hand_over(self, work: Work) -> Message:
        """Let go of a run that a person has taken: from now on they may open its program."""
        crash_point(CrashPoint.TAKE_BEFORE_HAND_OVER)
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        try:
            after = await self.store.transact(taking.hand_over, work.run, work.row.lease.version, ctx=ctx)
        except Unavailable as error:
            log.get().warning("run.end_waits", run=work.run, error=error.message)
            return TryAgain()
        except (LeaseLost, RunUnknown) as error:
            log.get().info("run.ended_elsewhere", run=work.run, error=error.message)
            return await self._what_became_of(work)
        crash_point(CrashPoint.TAKE_AFTER_HAND_OVER)
        return RunEnded.of(after) if after.ended else StepDone()

    async def _what_became_of(self, work: Work) -> Message:
        try:
            return (await self.store.read(_fates, [work.run]))[work.run]
        except Unavailable as error:
            log.get().warning("run.end_waits", error=error.message)
            return TryAgain()  # then the end is refused once more, and this is asked again

    async def _pause(self, work: Work, waits: int) -> None:
        await self.clock.wait(work.wake, at_most=doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT))
        work.wake.clear()

    def _steps_of(self, row: Run) -> Steps:
        commands = ExecSteps(self.store, self.clock, self.active, self.runner, self._room)
        if row.action == ActionKind.AGENT and self.agents is not None:
            return AgentSteps(self.agents, commands)
        return commands

    def _tell_end(self, work: Work, message: Message) -> None:
        match message:
            case RunEnded():
                log.get().debug("run.let_go", run=work.run)  # an agent that completed its run is the usual case
            case TakenOver():
                log.get().info("run.taken_over", run=work.run)
            case TakenByPerson():
                log.get().info("run.taken_by_person", run=work.run)
            case ToldToStop():
                log.get().info("run.called_off", run=work.run, why="interrupted")
            case _:
                pass

    def _over(self, work: Work) -> None:
        """The work is over and only the last steps are left: free its busy slot, once."""
        if work.busy:
            work.busy = False
            self._room.busy -= 1
            self.room_made()

    def _done_with(self, work: Work) -> None:
        """Free the slots however the task ended; a task cancelled before its first step never ran `_work`."""
        self._over(work)
        self._room.held -= 1
        if self._works.get(work.run) is work:  # newer work on the same run keeps its own entry
            del self._works[work.run]
        self.room_made()


@dataclass(frozen=True)
class _News:
    """What others did with the runs that this process works on."""

    fates: Mapping[str, Message]
    called: Mapping[str, bool]
    """Those whose agent claims a success that is to be verified or, with True, which a person takes over."""


def _news(tx: Tx, held: Mapping[str, int], followed: Collection[str], owner: str) -> _News:
    return _News(_fates(tx, review.lost_among(tx, held, owner)), tx.runs.called(followed) if followed else {})


def _fates(tx: Tx, runs: Iterable[str]) -> dict[str, Message]:
    """What became of runs that are no longer this process's: ended, or taken over by another one."""
    rows = {run: tx.runs.get(run) for run in runs}
    return {run: TakenOver() if row is not None and not row.ended else RunEnded.of(row) for run, row in rows.items()}
