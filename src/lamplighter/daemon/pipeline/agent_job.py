"""Agent runs under way: starts a run's session once, follows and judges it to its end, and releases what it used."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.transcripts import Transcript
from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.city.run_plan import CannotRun, RunPlan, run_plan
from lamplighter.domain.runs.budget import Spent
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.domain.runs.verdict import Leave, SessionSeen, SessionState, Verdict, verdict
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.presets.lines import plain
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.tasks import spawn
from lamplighter.ports.run_workshop import RunOrder, RunWorkshop
from lamplighter.ports.sessions import GRACE, SessionAlive, SessionProvider, StartFailed
from lamplighter.ports.worktrees import GitFailed, Kept, NoWorktree, Worktree, Worktrees
from lamplighter.services import configurations
from lamplighter.services.runs import executing, finalizing, review
from lamplighter.store.run_rows import RunRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Store

LOOK_EVERY = timedelta(milliseconds=500)
FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)
STATUS_WAIT = timedelta(seconds=2)
TAIL_LINES = 200
TAIL = 16_000


@dataclass(frozen=True)
class _Place:
    """Where a run works and how it is isolated; `why` explains a missing worktree or an unknown isolation."""

    work_dir: Path
    isolation: str
    why: str = ""


@dataclass
class AgentRuns:
    """The sessions of runs on this machine; a session is named by its run's id, so that it is started only once."""

    store: Store
    clock: Clock
    active: ActiveConfig
    me: review.Worker
    sessions: SessionProvider
    workshop: RunWorkshop
    worktrees: Worktrees
    provider: str
    api_url: Callable[[], str | None]
    _ended: dict[str, asyncio.Event] = field(default_factory=dict)
    _listening: "asyncio.Task[None] | None" = None
    _hurried: bool = False

    # ── working ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def work(self, row: RunRow) -> review.Ending | None:
        """Carry the run from its current stage to its end; None if something else ended it.

        While something it needs is unavailable, it waits and tries again.
        """
        self._listen()
        for waits in itertools.count():
            try:
                return await self._work(row)
            except Unavailable as error:
                log.get().warning("run.waits", run=row.run.id, error=error.message)
                pause = doubling(waits, first=FIRST_WAIT, most=LONGEST_WAIT)
                await self.clock.wait(asyncio.Event(), at_most=pause)
        return None

    async def _work(self, row: RunRow) -> review.Ending | None:
        fresh = await self.store.read(review.get, row.run.id)
        if fresh.run.ended:
            return None
        if fresh.run.session_id is not None:
            return await self._follow(fresh, await self._plan_if_any(fresh))
        try:
            plan = await self._plan(fresh)
            begun = await self._begun(fresh, plan)
        except LampError as error:
            if isinstance(error, Unavailable) and not isinstance(error, OutOfDescriptors):
                raise  # `work` waits and tries again
            return _not_begun(error)
        return await self._follow(begun, plan)

    async def _plan_if_any(self, row: RunRow) -> RunPlan | None:
        """None if the run can no longer be planned: its session goes on even if its configuration changed meanwhile."""
        try:
            return await self._plan(row)
        except CannotRun as error:
            log.get().warning("run.plan_gone", run=row.run.id, error=error.message)
            return None

    async def _plan(self, row: RunRow) -> RunPlan:
        known = await self.store.read(configurations.known)
        automation = review.snapshots_of(row.run)
        chosen = known.get(row.facts.configuration or "")
        if row.facts.configuration is not None and chosen is None:
            raise CannotRun("missing_configuration", f"Configuration `{row.facts.configuration}` is gone.")
        env = (chosen or Configuration(name="-")).env
        # In a thread: it searches PATH for programs, and PATH may include slow disks.
        return await asyncio.to_thread(
            run_plan, self.active.city, automation, chosen, lambda command: self.workshop.installed(command, env)
        )

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _begun(self, row: RunRow, plan: RunPlan) -> RunRow:
        """Make sure that the session is started and recorded.

        An earlier try, or a process that died before it recorded the session, may have started it already.
        """
        name = SessionName(row.run.id)
        seen = await self.sessions.see(name)
        place = _Place(Path(), "unknown", "taken up after a crash")
        if seen is None or _never_ran(seen):
            crash_point(CrashPoint.RUN_BEFORE_SESSION)
            place = await self._place(row, plan)
            seen = await self._start(row, plan, place)
            crash_point(CrashPoint.RUN_AFTER_SESSION)
        fresh = await self._on_record(row, seen, place)
        crash_point(CrashPoint.RUN_AFTER_PROMPT)
        return fresh

    async def _on_record(self, row: RunRow, seen: Seen, place: _Place) -> RunRow:
        """Record the session; the run may have ended by then, since its program can complete it before this record."""
        began = executing.Began(self._session_row(row.run, seen), place.isolation, place.why)
        return await self.store.transact(executing.began, row.run.id, began, Act(self.me.actor, self.clock.now()))

    async def _start(self, row: RunRow, plan: RunPlan, place: _Place) -> Seen:
        trigger = await self.store.read(review.trigger_of, row)
        order = RunOrder(row.run.id, row.run.automation, plan, trigger, place.work_dir, self.api_url())
        try:
            spec = await asyncio.to_thread(self.workshop.prepare, self.active.city, order)
        except OSError as error:
            raise StartFailed(SessionName(row.run.id), _told_of(error)) from error
        except Unavailable as error:
            raise StartFailed(SessionName(row.run.id), error.message.rstrip("."), hint=error.hint) from error
        starting = asyncio.ensure_future(self.sessions.start(spec))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})  # called off meanwhile: the stop that follows must find the session
            starting.exception()
            raise
        except SessionAlive:
            seen = await self.sessions.see(spec.name)
            if seen is None:
                raise
            return seen

    async def _place(self, row: RunRow, plan: RunPlan) -> _Place:
        if not plan.directory.is_dir():
            raise CannotRun(SkipReason.PROJECT_MISSING, f"{plan.directory} is not a directory.")
        if plan.isolation != "worktree":
            return _Place(plan.directory, "none")
        try:
            made = await self.worktrees.ensure(row.run.id, plan.directory)
        except NoWorktree as error:
            return _Place(plan.directory, "none", error.message)
        except OSError as error:
            raise GitFailed("worktree", _told_of(error)) from error
        await self.store.transact(executing.worktree_made, row.run.id, _told(made))
        return _Place(made.work_dir, "worktree")

    def _session_row(self, run: Run, seen: Seen) -> SessionRow:
        return SessionRow(
            id=seen.session_id,
            name=seen.name,
            agent=None,
            run=run.id,
            provider=self.provider,
            node=self.me.node,
            pid=seen.pid,
            started_at=seen.started_at or self.clock.now(),
        )

    # ── following ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _follow(self, row: RunRow, plan: RunPlan | None) -> review.Ending | None:
        ended = self._ended.setdefault(row.run.id, asyncio.Event())
        transcript = await self._transcript(row, plan)
        seen = await self._look(row, ended)
        while isinstance(judged := await self._judged(row, transcript, seen), Leave):
            await self.clock.wait(ended, at_most=self._pause(row.run))
            ended.clear()  # before the look, so that an end during the look is not lost
            seen = await self._look(row, ended)
        if (await self.store.read(review.get, row.run.id)).run.ended:
            return None
        return await self._ending(row, finalizing.ending_of(judged), seen)

    async def _judged(self, row: RunRow, transcript: Transcript, seen: SessionSeen) -> Verdict:
        over = seen.state is not SessionState.RUNNING
        await transcript.read(to_the_end=over)
        policy = finalizing.policy_of(review.snapshots_of(row.run), self.active.city.runs)
        return verdict(row.run, seen, self.clock.now(), policy, spent=transcript.spent)

    def _pause(self, run: Run) -> timedelta:
        if run.deadline_at is None:
            return LOOK_EVERY
        left = run.deadline_at - self.clock.now() + timedelta(microseconds=1)
        return min(max(left, timedelta(0)), LOOK_EVERY)

    async def _ending(self, row: RunRow, ending: review.Ending, seen: SessionSeen) -> review.Ending:
        tail = await self.tail(row.run.id)
        started = row.run.started_at
        took = None if started is None else self.clock.now() - started
        return replace(ending, exit_code=seen.exit_status, output_tail=tail, duration=took)

    async def look(self, row: RunRow) -> SessionSeen:
        """The session's present state. Raises LampError if the provider cannot tell."""
        seen = await self.sessions.see(SessionName(row.run.id))
        if seen is None:
            return SessionSeen(SessionState.MISSING)
        state = SessionState.RUNNING if seen.alive else SessionState.ENDED
        return SessionSeen(state, seen.alive or None, seen.last_activity, seen.exit_status)

    async def _look(self, row: RunRow, ended: asyncio.Event) -> SessionSeen:
        """As `look`, but waits up to STATUS_WAIT for the exit status, which is on disk only after the program's end."""
        seen = await self.look(row)
        if seen.state is SessionState.ENDED and seen.exit_status is None:
            await self.clock.wait(ended, at_most=STATUS_WAIT)
            seen = await self.look(row)
        return seen

    async def tail(self, run: str) -> str:
        return (await self.sessions.peek(SessionName(run), TAIL_LINES))[-TAIL:].replace("\0", "\ufffd")

    async def _transcript(self, row: RunRow, plan: RunPlan | None) -> Transcript:
        session = row.run.session_id or ""
        position = await self.store.read(lambda tx: tx.transcripts.position(session))
        parse = plain if plan is None else plan.preset.parse
        spent = Spent(row.facts.tokens or 0, row.run.cost)
        return Transcript(
            self.store, self.clock, self.sessions, parse, row.run.id, session, SessionName(row.run.id), position or 0,
            spent,
        )  # fmt: skip

    # ── releasing ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def stop_after_grace(self, run: str) -> None:
        """Give the program of a completed run LAST_WORDS to finish by itself, then release the run."""
        ended = self._ended.setdefault(run, asyncio.Event())
        until = self.clock.monotonic() + review.LAST_WORDS.total_seconds()
        while (seen := await self.sessions.see(SessionName(run))) is not None and seen.alive:
            left = timedelta(seconds=until - self.clock.monotonic())
            if left <= timedelta(0) or self._hurried:
                break
            await self.clock.wait(ended, at_most=left)
            ended.clear()
        await self.release(run)

    def hurry(self) -> None:
        """End all waits of `stop_after_grace`, because the city stops."""
        self._hurried = True
        for ended in self._ended.values():
            ended.set()

    async def release(self, run: str, *, grace: timedelta = GRACE) -> None:
        """End the session with its process tree, record the end, free the run's worktree and files. May be repeated.

        Raises StopFailed, Unavailable.
        """
        name = SessionName(run)
        row = await self.store.read(lambda tx: tx.runs.get(run))
        seen = await self.sessions.see(name)
        if row is not None and row.run.session_id is None and seen is not None and not _never_ran(seen):
            row = await self._on_record(row, seen, _Place(Path(), "unknown", "found after its run had ended"))
        if row is not None and row.run.session_id is not None and seen is not None:
            await self._last_words(row)
        tail = await self.tail(run) if seen is not None else ""
        crash_point(CrashPoint.SESSION_BEFORE_STOP)
        await self.sessions.stop(name, grace=grace)
        status = None if seen is None else seen.exit_status
        reason = "its program ended" if seen is not None and not seen.alive else "its run ended"
        end = SessionEnd(self.clock.now(), reason, status, tail or None)
        await self.store.transact(executing.session_ended, run, end)
        if row is not None and row.facts.worktree is not None:
            await self._release(row)
        await asyncio.to_thread(self.workshop.forget, run)
        self._ended.pop(run, None)

    async def _last_words(self, row: RunRow) -> None:
        transcript = await self._transcript(row, await self._plan_if_any(row))
        await transcript.read(to_the_end=True)

    async def _release(self, row: RunRow) -> None:
        worktree = _worktree(row)
        try:
            done = await self.worktrees.release(worktree)
        except LampError as error:
            log.get().warning("worktree.not_released", run=row.run.id, error=error.message)
            return
        kept: dict[str, Any] | None = None
        if isinstance(done, Kept):
            kept = {"why": done.why, "path": str(worktree.path), "branch": worktree.branch, "diff": str(done.changes)}
        act = Act(self.me.actor, self.clock.now())
        await self.store.transact(executing.worktree_settled, row.run.id, kept, act)

    async def discard(self, row: RunRow) -> None:
        """Remove a worktree that was kept long enough; unmerged commits stay on their branch."""
        await self.worktrees.discard(_worktree(row))
        act = Act(self.me.actor, self.clock.now())
        await self.store.transact(executing.worktree_settled, row.run.id, None, act)

    async def tidy(self, held: frozenset[str], *, before: datetime) -> None:
        """Release sessions whose run is gone or ended by `before` and not in `held`: their worker died in between."""
        found = {str(name) for name, seen in (await self.sessions.seen()).items() if seen.meta.get(meta.RUN) == name}
        for run in sorted(await self.store.read(review.over_among, found - held, before)):
            await self.release(run)

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
            self._listening = None
        await self.sessions.close()

    # ── listening ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _listen(self) -> None:
        if self._listening is None or self._listening.done():
            endings = self.sessions.ended()

            async def hear() -> None:
                with contextlib.suppress(LampError):
                    async for name in endings:
                        self._ended.setdefault(name, asyncio.Event()).set()

            self._listening = spawn(hear(), name="run sessions")


def _never_ran(seen: Seen) -> bool:
    """Whether the session has a record but its program was never started: the starting process died in between."""
    return not seen.alive and seen.pid is None and seen.exit_status is None


def _not_begun(error: LampError) -> review.Ending:
    reason = _reason(error)
    state = RunState.SKIPPED if reason == SkipReason.PROJECT_MISSING else RunState.FAILED
    tail = error.output[-TAIL:] if isinstance(error, StartFailed) else ""
    return review.Ending(state, reason, Stage.EXECUTION, error=error.message, output_tail=tail)


def _reason(error: LampError) -> str:
    match error:
        case CannotRun():
            return error.reason
        case GitFailed():
            return "worktree_failed"
        case _:
            return "not_started"


def _told_of(error: OSError) -> str:
    why = error.strerror or str(error)
    return f"{error.filename}: {why}" if error.filename else why


def _told(worktree: Worktree) -> dict[str, str]:
    return {
        "path": str(worktree.path),
        "branch": worktree.branch,
        "repository": str(worktree.repository),
        "work_dir": str(worktree.work_dir),
    }


def _worktree(row: RunRow) -> Worktree:
    told = row.facts.worktree or {}
    path = Path(told["path"])
    work_dir = Path(told.get("work_dir") or path)
    return Worktree(row.run.id, path, told["branch"], Path(told["repository"]), work_dir)
