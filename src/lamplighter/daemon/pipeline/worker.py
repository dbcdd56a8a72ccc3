"""Runs under way: commands and agents started once, adopted after a crash, stopped when called off, and ended."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lamplighter.daemon.active_config import ActiveConfig, Tasks
from lamplighter.daemon.pipeline.agent_job import AgentRuns
from lamplighter.daemon.pipeline.slots import Reservation, Slots
from lamplighter.daemon.ticks import Waker
from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.automations.model import ActionKind, Automation, Exec, time_limit
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import By, IllegalMove, Mover, RunState, Stage
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, NotFound, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.ports.commands import Command, CommandEnded, CommandNotStarted, CommandRunner, NoDirectory
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import nodes
from lamplighter.services.automations.firing import ByHand, Fired, run_by_hand
from lamplighter.services.runs import command_ends, review
from lamplighter.services.runs.workers import Started
from lamplighter.store.run_rows import RunRow
from lamplighter.store.runs import StaleRun
from lamplighter.store.tx import Store

RENEW_EVERY = timedelta(seconds=60)
PRECHECK = ".precheck"
GRACE = timedelta(seconds=5)
SPARED = timedelta(seconds=60)
FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)


class CalledOff(StrEnum):
    LOST = "lost"  # the run ended, so only its processes must end; or another process of this node holds it now
    INTERRUPTED = "interrupted"  # this process stops, and ends the run


@dataclass
class _Job:
    row: RunRow
    trigger: dict[str, Any] | None = None
    """The trigger's data for the action, if already known."""
    task: "asyncio.Task[None] | None" = None
    called_off: CalledOff | None = None
    over: bool = False
    leaving: bool = False
    """The run has ended or went to another holder, and only clean-up is left: the job can no longer be called off."""


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
    tasks: Tasks = field(default_factory=Tasks)
    _room: Slots = field(init=False)
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _renewed: float = 0.0

    def __post_init__(self) -> None:
        self._room = Slots(self.clock)

    @property
    def room(self) -> int:
        return self._room.left

    def start_grant(self, most: int) -> Reservation:
        """Reserve slots for a transaction that fires; see `Slots.reserve`."""
        return self._room.reserve(self.me, self.active.reach, most)

    def holds(self, run: str) -> bool:
        return run in self._jobs

    def listen(self, waker: Waker) -> None:
        waker.watch((review.TAKEN,), self.wake.set, self)

    async def loop(self) -> None:
        await every(lambda: RENEW_EVERY, self.tick, clock=self.clock, wake=self.wake)

    async def tick(self) -> None:
        """Renew the leases, and stop work on runs that have ended or went to another holder."""
        held = {run: job.row.run.lease.version for run, job in self._jobs.items()}
        if not held:
            return
        now = self.clock.monotonic()
        if now - self._renewed >= RENEW_EVERY.total_seconds():
            lost = await self.store.transact(review.renew, held, self.me.owner, self.clock.now())
            self._renewed = now
        else:
            lost = await self.store.read(review.lost_among, held, self.me.owner)
        for run in lost:
            self._call_off(run, CalledOff.LOST)

    async def fire(self, wanted: ByHand, *, act: Act) -> Fired:
        """Fire an automation by hand, and start its run at once if possible. Raises what `run_by_hand` raises."""
        rules = self.active.rules
        with self.start_grant(1) as start_grant:
            fired = await self.store.transact(
                run_by_hand, wanted, rules=rules, ids=self.ids, act=act, start_grant=start_grant
            )
            self.begin_all([fired.started] if fired.started is not None else [])
        return fired

    def begin_all(self, started: Iterable[Started]) -> None:
        for one in started:
            self.begin(one.row, one.trigger)

    def begin(self, row: RunRow, trigger: dict[str, Any] | None = None) -> None:
        """Start working on a run whose lease this process holds, from the run's current stage."""
        job = self._jobs[row.run.id] = _Job(row, trigger)
        self._room.busy += 1
        self._room.held += 1
        job.task = asyncio.create_task(self._work(job), name=row.run.id)
        job.task.add_done_callback(lambda _task: self._done_with(job))
        self.tasks.add(job.task)

    async def adopt(self) -> int:
        """Adopt the running runs of dead processes of this node; returns how many."""
        now, rigs = self.clock.now(), self.active.rigs
        if self.room <= 0 or not await self.store.read(lambda tx: tx.runs.has_orphans(self.me.node, now, rigs=rigs)):
            return 0
        rows = await self.store.transact(review.adopt, self.me, self.clock.now(), limit=self.room, rigs=rigs)
        for row in rows:
            log.get().info("run.adopted", run=row.run.id, automation=row.run.automation)
            self.begin(row)
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
        held = frozenset(self._jobs)
        if self.agents is not None:
            await self.agents.tidy(held, before=before)
        kept = await self.runner.kept()
        over = await self.store.read(review.over_among, {key.removesuffix(PRECHECK) for key in kept} - held, before)
        for key in kept:
            if key.removesuffix(PRECHECK) in over:
                await self.runner.stop(key, grace=timedelta(0))
                await self.runner.forget(key)

    async def _alone(self) -> bool:
        return await self.store.read(nodes.alone, self.me.owner, self.me.node)

    async def stop(self) -> None:
        """End all runs under way as interrupted; a run's processes end before the run."""
        if self.agents is not None:
            self.agents.hurry()
        for run in tuple(self._jobs):
            self._call_off(run, CalledOff.INTERRUPTED)
        await self.tasks.all_done()

    def _call_off(self, run: str, why: CalledOff) -> None:
        job = self._jobs.get(run)
        if job is not None and job.called_off is None and job.task is not None and not job.leaving:
            job.called_off = why
            job.task.cancel()

    async def _work(self, job: _Job) -> None:
        try:
            ending = await self._ending(job)
            self._over(job)
            mine = ending is not None and await self._end(job.row, ending)
            job.leaving = True
            await (self._forget(job.row) if mine else self._forget_ended(job.row))
        except asyncio.CancelledError:
            if job.called_off is None:
                raise  # this process is being torn down: the next one on this node adopts the run
            await self._forget_ended(job.row)  # called off while its end was being recorded, or just after

    def _over(self, job: _Job) -> None:
        """The work is over and only the end must be recorded: free the job's busy slot, once."""
        if not job.over:
            job.over = True
            self._room.busy -= 1
            self.room_made()

    def _done_with(self, job: _Job) -> None:
        """Free the job's slots however its task ended; a task cancelled before its first step never ran `_work`."""
        self._over(job)
        self._room.held -= 1
        if self._jobs.get(job.row.run.id) is job:  # a newer job of the same run keeps its own entry
            del self._jobs[job.row.run.id]
        self.room_made()

    async def _ending(self, job: _Job) -> review.Ending | None:
        """Carry out the job; returns how it ended, or None for a run that this process must not end."""
        try:
            return await self._carried_out(job)
        except asyncio.CancelledError:
            if job.called_off is None:
                raise
            return await self._called_off(job)
        except Exception as error:  # noqa: BLE001  a run must not stay `running` because something here broke
            log.get().error("run.broke", run=job.row.run.id, automation=job.row.run.automation, exc_info=error)
            return await self._broken_off(job, error)

    async def _carried_out(self, job: _Job) -> review.Ending | None:
        """Carry out the job, waiting while something is unavailable (the database, descriptors).

        A command that is already running is then followed further, not started again.
        """
        for waits in itertools.count():
            try:
                return await self._carry_out(job)
            except Unavailable as error:
                log.get().warning("run.waits", run=job.row.run.id, error=error.message)
                pause = doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT)
                await self.clock.wait(asyncio.Event(), at_most=pause)
        return None

    async def _broken_off(self, job: _Job, error: Exception) -> review.Ending:
        """Stop the run's processes after an unexpected error; returns the ending that then fails the run."""
        run = job.row.run.id
        told = error.message if isinstance(error, LampError) else f"{type(error).__name__}: {error}"
        try:
            await self.runner.stop(run + PRECHECK, grace=timedelta(0))
            await self.runner.stop(run, grace=GRACE)
            if _is_agent(job.row) and self.agents is not None:
                await self.agents.release(run)
        except (LampError, OSError) as failed:
            log.get().warning("run.not_stopped", run=run, error=str(failed))
        return review.Ending(RunState.FAILED, "interrupted", Stage.EXECUTION, error=told)

    async def _called_off(self, job: _Job) -> review.Ending | None:
        run = job.row.run.id
        if job.called_off is CalledOff.LOST and await self._runs_on(run):
            log.get().info("run.taken_over", run=run)
            return None  # another process of this node took the run over, with its processes
        grace = min(GRACE, self.active.city.daemon.shutdown_timeout)
        await self.runner.stop(run + PRECHECK, grace=timedelta(0))
        if _is_agent(job.row) and self.agents is not None:
            tail = await self._call_off_agent(job, self.agents, grace)
        else:
            tail = await self.runner.tail(run)
            await self.runner.stop(run, grace=grace)
        if job.called_off is CalledOff.LOST:
            log.get().debug("run.let_go", run=run)  # an agent that completed its run is the usual case
            if not _is_agent(job.row):
                await self.store.transact(review.keep_output, run, command_ends.clean(tail))
            return None
        log.get().info("run.called_off", run=run, why=job.called_off)
        error = "the city was stopped while it ran"
        return review.Ending(
            RunState.FAILED, "interrupted", Stage.EXECUTION, error=error, output_tail=command_ends.clean(tail)
        )

    async def _call_off_agent(self, job: _Job, agents: AgentRuns, grace: timedelta) -> str:
        """Returns the session's output tail. An interrupted run's session is released here, before the run ends.

        A lost run's session is released afterwards, by `_forget_ended`.
        """
        run = job.row.run.id
        tail = await agents.tail(run)
        if job.called_off is CalledOff.INTERRUPTED:
            await agents.release(run, grace=grace)
        return tail

    async def _carry_out(self, job: _Job) -> review.Ending | None:
        """Run the precheck and the action; returns how the run ended, or None for an agent run ended elsewhere."""
        row = job.row
        automation = review.snapshots_of(row.run)
        try:
            precheck = automation.policies.precheck
            if precheck is not None and row.run.session_id is None:
                ending = command_ends.after_precheck(await self._run(job, automation, precheck, PRECHECK))
                if ending is not None:
                    return ending
            crash_point(CrashPoint.RUN_AFTER_START)
            if _is_agent(row) and self.agents is not None:
                return await self.agents.work(row)
            if not isinstance(automation.action, Exec):
                return review.Ending(RunState.FAILED, "no_command", Stage.EXECUTION)
            ended = await self._run(job, automation, automation.action.command)
            return command_ends.after(row.run, ended, self.clock.now())
        except (NoDirectory, NotFound) as error:
            return review.Ending(RunState.SKIPPED, SkipReason.PROJECT_MISSING, Stage.EXECUTION, error=error.message)
        except CommandNotStarted as error:
            log.get().warning("run.not_started", run=row.run.id, automation=row.run.automation, error=error.message)
            return review.Ending(RunState.FAILED, "not_started", Stage.EXECUTION, error=error.message)

    async def _run(self, job: _Job, automation: Automation, line: str, suffix: str = "") -> CommandEnded:
        row = job.row
        trigger = job.trigger or await self.store.read(review.trigger_of, row)
        limit = time_limit(automation, self.active.rules.cap)
        env = self.active.env_of(row.facts.rig) | {
            "LAMP_RUN_ID": row.run.id,
            "LAMP_AUTOMATION": row.run.automation,
            "LAMP_ACTOR": f"automation:{row.run.automation}",
        }
        if automation.path is not None:
            env["AUTOMATION_DIR"] = automation.path.rpartition("/")[0]
        command = Command(
            key=row.run.id + suffix,
            line=line,
            work_dir=self.active.dir_of(row.facts.rig),
            limit=command_ends.until_deadline(row.run, limit or timedelta(minutes=5)),
            env=env,
            files={"LAMP_TRIGGER_FILE": json.dumps(trigger)},
        )
        return await self._room.run(self.runner.run, command)

    async def _end(self, row: RunRow, ending: review.Ending) -> bool:
        """Record the run's end; False if another process has ended the run or taken it over."""
        crash_point(CrashPoint.RUN_BEFORE_END)
        mover = Mover.FINALIZER if ending.stage is Stage.FINALIZER else Mover.WORKER
        by = By(mover, self.me.actor, row.run.lease.version)

        try:
            await self._write_end(row, ending, by)
        except (LeaseLost, IllegalMove, StaleRun, RunUnknown) as error:
            log.get().info("run.ended_elsewhere", run=row.run.id, error=error.message)
            return False
        crash_point(CrashPoint.RUN_AFTER_END)
        return True

    async def _write_end(self, row: RunRow, ending: review.Ending, by: By) -> None:
        """Record the end, waiting while the database is away: the action has run, so its result must not be lost."""
        for waits in range(1_000_000):
            act = Act(self.me.actor, self.clock.now())
            try:
                if row.facts.action == ActionKind.EXEC:
                    await self.store.transact(review.end_held, row, ending, by, ids=self.ids, act=act)
                else:
                    await self.store.transact(review.end, row.run.id, ending, by, ids=self.ids, act=act)
            except Unavailable as error:
                log.get().warning("run.end_waits", error=error.message)
                await self.clock.wait(asyncio.Event(), at_most=doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT))
            else:
                return

    async def _forget_ended(self, row: RunRow) -> None:
        if not await self._runs_on(row.run.id):
            await self._forget(row)

    async def _runs_on(self, run: str) -> bool:
        states = await self.store.read(lambda tx: tx.runs.states([run]))
        return run in states and states[run][0] is RunState.RUNNING

    async def _forget(self, row: RunRow) -> None:
        run = row.run.id
        try:
            if _is_agent(row) and self.agents is not None:
                await self._release(run, self.agents)
            else:
                await self.runner.forget(run)
            await self.runner.forget(run + PRECHECK)
        except (LampError, OSError) as error:
            log.get().warning("run.not_tidied", run=run, error=str(error))

    async def _release(self, run: str, agents: AgentRuns) -> None:
        """Release an ended run's session; the program of a completed run may finish first.

        A run that has not ended went to another holder and keeps its session.
        """
        row = await self.store.read(lambda tx: tx.runs.get(run))
        if row is not None and not row.run.ended:
            return
        if row is not None and row.run.completion_id is not None:
            await agents.stop_after_grace(run)
        else:
            await agents.release(run)


def _is_agent(row: RunRow) -> bool:
    return row.facts.action == ActionKind.AGENT
