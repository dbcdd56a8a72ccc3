"""The sessions of runs on this machine: started once, looked at, judged, stopped."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from weakref import WeakValueDictionary

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.run_logins import NotSignedIn, RunLogins
from lamplighter.daemon.pipeline.run_places import Place, RunPlaces, told_of
from lamplighter.daemon.pipeline.run_plans import RunPlans
from lamplighter.daemon.pipeline.transcripts import Transcript
from lamplighter.daemon.pipeline.workspaces import SetupFailed
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.city.run_plan import CannotRun, RunPlan
from lamplighter.domain.inbox.fingerprint import last_line
from lamplighter.domain.runs.budget import Spent, midnight
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.domain.runs.verdict import (
    Asks,
    Fail,
    Leave,
    Policy,
    SessionSeen,
    SessionState,
    TimeOut,
    Verdict,
    verdict,
)
from lamplighter.domain.runs.verify import Checked
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.asking import asked_last
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.presets.lines import plain, without_escapes
from lamplighter.domain.sessions.presets.troubles import Heard, Trouble, TroubleKind, waits_for
from lamplighter.kit.clock import Clock, rfc3339
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.tasks import spawn
from lamplighter.ports.run_workshop import Prepared, RunOrder, RunWorkshop
from lamplighter.ports.sessions import GRACE, SessionAlive, SessionProvider, StartFailed
from lamplighter.ports.worktrees import GitFailed
from lamplighter.services.context import acting
from lamplighter.services.runs import budgets, circling, executing, finalizing, review, transcripts, turns, verifying
from lamplighter.services.slack.conversing import is_free, replied
from lamplighter.store.run_days import day_named
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Store, Tx

LOOK_EVERY = timedelta(milliseconds=500)
STATUS_WAIT = timedelta(seconds=2)
TAIL_LINES = 200
TAIL = 16_000
STUCK = "stuck"
NOT_STARTED = "not_started"
FAR_AHEAD = timedelta(minutes=5)
"""A program that waits for a limit that is lifted later than this is ended: it could do nothing until then."""
SILENT_AFTER = timedelta(minutes=15)
"""So is one that has been silent for so long since it told of such trouble; a model may think for some minutes."""
LOG_EVERY = timedelta(seconds=10)
"""So often the own log of a program that is silent is looked at."""


@dataclass(frozen=True)
class Begun:
    """A run whose session is on record; without a plan, its configuration has changed since."""

    row: Run
    plan: RunPlan | None


async def at_once() -> None:
    """Tools that are served already, or by nobody."""


@dataclass
class AgentRuns:
    """The sessions of runs on this machine; a session is named by its run's id, so that it is started only once."""

    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    me: review.Worker
    sessions: SessionProvider
    workshop: RunWorkshop
    provider: str
    api_url: Callable[[], str | None]
    plans: RunPlans
    logins: RunLogins
    places: RunPlaces
    tools_ready: Callable[[], Awaitable[None]] = at_once
    """Returns once the tools at `api_url` are served without any delay."""
    _wakes: WeakValueDictionary[str, asyncio.Event] = field(default_factory=WeakValueDictionary)
    """Set when the session of a run ends; kept as long as somebody works on the run."""
    _listening: "asyncio.Task[None] | None" = None

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def listen_for(self, run: str, wake: asyncio.Event) -> None:
        """Set `wake` when the run's session ends."""
        self._wakes[run] = wake
        self._listen()

    async def begin(self, row: Run) -> Begun | review.Ending:
        """Make sure that the run's session is started and recorded; returns an ending for a run that cannot be started.

        Raises Unavailable while something that it needs is away; then it may be repeated.
        """
        if row.session_id is not None:
            return Begun(row, await self.plans.plan_if_any(row))
        try:
            plan = await self.plans.plan(row)
            return Begun(await self._begun(row, plan), plan)
        except LampError as error:
            if isinstance(error, Unavailable) and not isinstance(error, OutOfDescriptors):
                raise
            return not_begun(error)

    async def _begun(self, row: Run, plan: RunPlan) -> Run:
        """Make sure that the session is started and recorded.

        An earlier try, or a process that died before it recorded the session, may have started it already.
        """
        name = SessionName(row.id)
        seen = await self.sessions.see(name)
        place = Place(Path(), "unknown", "taken up after a crash")
        in_force: Mapping[str, str] | None = None
        if seen is None or _never_ran(seen):
            crash_point(CrashPoint.RUN_BEFORE_SESSION)
            await self._must_be_closed(row)
            await self.logins.must_be_signed_in(plan)
            place = await self.places.place(row, plan)
            seen, in_force = await self._start(row, plan, place, await self.places.made_ready(row, plan, place))
            crash_point(CrashPoint.RUN_AFTER_SESSION)
        fresh = await self._on_record(row, seen, place, in_force)
        crash_point(CrashPoint.RUN_AFTER_PROMPT)
        return fresh

    async def _must_be_closed(self, row: Run) -> None:
        """Raises StillOpen while the person who gave the run back has its program open: two would mix it up."""
        if row.given is not None and await asyncio.to_thread(self.workshop.is_open, row.id):
            raise StillOpen(row)

    async def _on_record(self, row: Run, seen: Seen, place: Place, in_force: Mapping[str, str] | None = None) -> Run:
        """Record the session; the run may have ended by then, since its program can complete it before this record."""
        began = executing.Began(self._session_row(row, seen), place.isolation, place.why, in_force)
        return await self.store.transact(executing.began, row.id, began, acting(self.me.actor, self.clock.now()))

    async def _start(
        self, row: Run, plan: RunPlan, place: Place, env: Mapping[str, str]
    ) -> tuple[Seen, Mapping[str, str]]:
        if plan.preset.has_mcp:
            await self.tools_ready()
        tell, where = await self.store.read(turns.to_tell, row, plan.preset), self.api_url()
        env = {**self.active.handed(row.id, tell.trigger), **env}
        order = RunOrder(
            row.id, row.automation, plan, tell.trigger, place.work_dir, where, tell.turn, tell.notes, tell.cursor, env
        )
        try:
            prepared = await asyncio.to_thread(self.workshop.prepare, self.active.city, order)
        except OSError as error:
            raise StartFailed(SessionName(row.id), told_of(error)) from error
        except Unavailable as error:
            raise StartFailed(SessionName(row.id), error.message.rstrip("."), hint=error.hint) from error
        in_force = {**prepared.in_force, **(row.in_force or {})}
        spec = replace(prepared.spec, env=await self.plans.in_full(plan, prepared.spec.env))
        return await self._started(replace(prepared, spec=spec)), in_force

    async def _started(self, prepared: Prepared) -> Seen:
        spec = prepared.spec
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

    async def settle(self, row: Run, checked: Checked) -> Run:
        """Record the verdict on the claim that waits. Raises LeaseLost, Unavailable."""
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        return await self.store.transact(verifying.settle, row, checked, actor=self.me.actor, ctx=ctx)

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

    async def judge(self, row: Run, transcript: Transcript, seen: SessionSeen) -> Verdict:
        """Read what the session wrote since, and judge the run by what is known."""
        over = seen.state is not SessionState.RUNNING
        await transcript.read(to_the_end=over)
        policy = finalizing.policy_of(review.snapshots_of(row), self.active.city.runs)
        judged = verdict(row, seen, self.clock.now(), policy, spent=transcript.spent)
        if isinstance(judged, Leave) and not over and row.pending is None:
            judged = await self._by_day(row) or _circling(transcript, policy) or judged
        if isinstance(judged, Leave) and not over and not row.ended and transcript.heard is not None:
            trouble = await self._in_the_way(row, transcript, seen, transcript.heard)
            if trouble is not None:
                return Fail(trouble.kind, trouble.message, stop_session=True)
        if isinstance(judged, Leave) and not over and not row.ended:
            what = await self._asked(row, transcript, seen)
            return Asks(what) if what else judged
        return judged

    async def _in_the_way(self, row: Run, transcript: Transcript, seen: SessionSeen, heard: Heard) -> Trouble | None:
        """The trouble that its program could only wait for; None while it may soon go on."""
        now, zone = self.clock.now(), self.active.rules.zone
        trouble, silent = heard.trouble(now, zone), timedelta(0)
        if seen.last_activity is not None:
            silent = now - seen.last_activity
        if trouble is not None and (_is_far(trouble, now) or (heard.ends_with_failure and silent >= SILENT_AFTER)):
            return trouble
        log, looked_at = heard.preset.log, transcript.log_read_at
        if log is None or silent < LOG_EVERY or (looked_at is not None and now - looked_at < LOG_EVERY):
            return None
        transcript.log_read_at = now
        pause = log.pause(await asyncio.to_thread(self.workshop.log_of, row.id, log))
        found = None if pause is None else waits_for(pause, zone, now=now)
        if found is None or not _is_far(found, now):
            return None
        heard.said.append(f"{found.message} (until {rfc3339(found.lifts_at)})" if found.lifts_at else found.message)
        return found

    async def _by_day(self, row: Run) -> Fail | None:
        """How the budgets of the day end a run: what those beside it use counts, too."""
        automation, rules, now = review.snapshots_of(row), self.active.rules, self.clock.now()
        if not budgets.bounded(automation, rules):
            return None
        found = await self.store.read(budgets.over, row.automation_id, automation, rules, now)
        return None if found is None else Fail(found.reason, found.message, stop_session=True)

    async def known(self, row: Run) -> "Known":
        """What is on record of a run whose session is to be followed."""
        return await self.store.read(_known_of, row)

    async def may_be_told(self, row: Run, plan: RunPlan | None, judged: Fail) -> bool:
        """Whether an agent that goes round in circles is told so, once, and goes on; that is then on record."""
        if judged.reason != STUCK or plan is None or not plan.preset.can_resume:
            return False
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        return await self.store.transact(circling.found, row, judged.error, ctx=ctx)

    async def tell(self, row: Run) -> Run:
        """Stop the program and send its run into the next round. May be repeated. Raises StopFailed, Unavailable."""
        crash_point(CrashPoint.STUCK_BEFORE_STOP)
        await self.stop(row.id)
        crash_point(CrashPoint.STUCK_AFTER_STOP)
        ctx = acting(self.me.actor, self.clock.now(), self.ids)
        after = await self.store.transact(circling.tell, row, ctx=ctx)
        crash_point(CrashPoint.STUCK_AFTER_TOLD)
        return after

    async def _asked(self, row: Run, transcript: Transcript, seen: SessionSeen) -> str:
        """What permission its program waits for, once it has long been silent; each silence is looked at once."""
        heard = seen.last_activity
        if review.snapshots_of(row).speaks_to is not None:
            return ""  # the patrol tells of an agent that waits; the run goes on once that is answered
        if heard is None or heard == transcript.silence:
            return ""
        if self.clock.now() - heard < self.active.city.session.permission_wait:
            return ""
        transcript.silence = heard
        return asked_last(await self.tail(row.id))

    async def pause(self, run: Run, wake: asyncio.Event) -> None:
        """Wait for `wake` until the next look is due, or the run's deadline comes."""
        most = LOOK_EVERY
        if run.deadline_at is not None:
            left = run.deadline_at - self.clock.now() + timedelta(microseconds=1)
            most = min(max(left, timedelta(0)), LOOK_EVERY)
        await self.clock.wait(wake, at_most=most)

    async def ending(
        self, row: Run, verdict: Fail | TimeOut | Asks, seen: SessionSeen, heard: Heard | None
    ) -> review.Ending:
        tail = await self.tail(row.id)
        started = row.started_at
        took = None if started is None else self.clock.now() - started
        ending = replace(finalizing.ending_of(verdict), exit_code=seen.exit_status, output_tail=tail, duration=took)
        if isinstance(verdict, Fail) and verdict.reason in _BY_OUTPUT:
            explained = _with_last_words(await self.logins.explained(row, ending, tail, heard))
            return replied(explained) if is_free(row) else explained
        return ending

    async def look(self, row: Run) -> SessionSeen:
        """The session's present state. Raises LampError if the provider cannot tell."""
        seen = await self.sessions.see(SessionName(row.id))
        if seen is None:
            return SessionSeen(SessionState.MISSING)
        state = SessionState.RUNNING if seen.alive else SessionState.ENDED
        return SessionSeen(state, seen.alive or None, seen.last_activity, seen.exit_status)

    async def look_for_status(self, row: Run, wake: asyncio.Event) -> SessionSeen:
        """As `look`, but waits up to STATUS_WAIT for the exit status, which is on disk only after the program's end."""
        seen = await self.look(row)
        if seen.state is SessionState.ENDED and seen.exit_status is None:
            await self.clock.wait(wake, at_most=STATUS_WAIT)
            seen = await self.look(row)
        return seen

    async def tail(self, run: str) -> str:
        said = without_escapes(await self.sessions.peek(SessionName(run), TAIL_LINES))
        return (await self.active.secrets.mask())(said)[-TAIL:].replace("\0", "\ufffd")

    def transcript(self, row: Run, plan: RunPlan | None, reached: transcripts.Reached) -> Transcript:
        session = row.session_id or ""
        heard = None if plan is None else Heard(plan.preset)
        parse = plain if heard is None else heard.parse
        spent = Spent(row.tokens or 0, row.cost)
        return Transcript(
            self.store, self.clock, self.sessions, parse, row.id, session, SessionName(row.id), reached.position,
            spent, heard, self.active.secrets, self._today, reached.circle,
        )  # fmt: skip

    def _today(self) -> str:
        return day_named(midnight(self.clock.now(), self.active.rules.zone))

    # ── releasing ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def last_words(self, run: str, until: float, wake: asyncio.Event) -> bool:
        """Wait for `wake` while the program runs, until that monotonic time; False if there is nothing to wait for."""
        seen = await self.sessions.see(SessionName(run))
        if seen is not None and meta.SPEAKS_TO in seen.meta:
            return False  # an agent of the city goes on for good
        left = timedelta(seconds=until - self.clock.monotonic())
        if seen is None or not seen.alive or left <= timedelta(0):
            return False
        await self.clock.wait(wake, at_most=left)
        return True

    async def release(self, run: str, *, grace: timedelta = GRACE) -> None:
        """Stop and free a run that nobody here works on. May be repeated. Raises StopFailed, Unavailable."""
        await self.stop(run, grace=grace)
        await self.free(run)

    async def stop(self, run: str, *, grace: timedelta = GRACE, plan: RunPlan | None = None) -> str:
        """End the session with its process tree and record its end; returns the tail of its output. May be repeated.

        `plan` spares looking for it once more. Raises StopFailed, Unavailable.
        """
        name = SessionName(run)
        row, reached = await self.store.read(_known, run)
        seen = await self.sessions.see(name)
        if row is not None and row.session_id is None and seen is not None and not _never_ran(seen):
            row = await self._on_record(row, seen, Place(Path(), "unknown", "found after its run had ended"))
        if row is not None and row.session_id is not None and seen is not None:
            plan = plan or await self.plans.plan_if_any(row)
            await self.transcript(row, plan, reached).read(to_the_end=True)
        tail = await self.tail(run) if seen is not None else ""
        crash_point(CrashPoint.SESSION_BEFORE_STOP)
        await self.sessions.stop(name, grace=grace)
        status = None if seen is None else seen.exit_status
        reason = "its program ended" if seen is not None and not seen.alive else "its run ended"
        end = SessionEnd(self.clock.now(), reason, status, tail or None)
        await self.store.transact(executing.session_ended, run, end)
        return tail

    async def free(self, run: str) -> None:
        """Free the run's worktree and files, after its session has ended. May be repeated."""
        row = await self.store.read(lambda tx: tx.runs.get(run))
        is_open = await asyncio.to_thread(self.workshop.is_open, run)
        await asyncio.to_thread(self.workshop.forget, run)  # first, so that no token is in what the worktree keeps
        if row is not None:
            await self.places.leave(row, is_open=is_open)

    async def tidy(self, held: frozenset[str], *, before: datetime) -> None:
        """Release sessions whose run is gone or ended by `before` and not in `held`: their worker died in between.

        The program of a completed run has its LAST_WORDS all the same.
        """
        found = {str(name) for name, seen in (await self.sessions.seen()).items() if seen.meta.get(meta.RUN) == name}
        spoken = self.clock.now() - review.LAST_WORDS
        over = await self.store.read(review.over_among, found - held, before, completed_before=spoken)
        for run in sorted(over):
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
                        wake = self._wakes.get(name)
                        if wake is not None:
                            wake.set()

            self._listening = spawn(hear(), name="run sessions")


@dataclass(frozen=True)
class Known:
    """What is on record of a run as it is begun to be followed."""

    row: Run | None
    is_to_be_told: bool
    """That it goes round in circles: a process died before it could do so."""
    reached: transcripts.Reached


def _known_of(tx: Tx, row: Run) -> Known:
    return Known(tx.runs.get(row.id), circling.is_to_be_told(tx, row), transcripts.reached(tx, row.session_id or ""))


def _known(tx: Tx, run: str) -> tuple[Run | None, transcripts.Reached]:
    row = tx.runs.get(run)
    return row, transcripts.reached(tx, row.session_id) if row is not None and row.session_id else transcripts.Reached()


_BY_OUTPUT = frozenset({"no_completion", *TroubleKind})
"""Reasons of a failure that the program's output may explain better."""


def _with_last_words(ending: review.Ending) -> review.Ending:
    """With the last line that a failed program wrote, where that is words and not a record of its stream."""
    said = last_line(ending.output_tail)
    if ending.reason != "no_completion" or not ending.exit_code or not said or said.startswith(("{", "[")):
        return ending
    return replace(ending, error=f"{ending.error} It wrote last: {said}")


class StillOpen(Unavailable):
    def __init__(self, row: Run) -> None:
        super().__init__(
            f"The program of run {row.id} is still open in the terminal of whoever gave it back.",
            hint="Close it there: the run goes on by itself.",
        )


def _circling(transcript: Transcript, policy: Policy) -> Fail | None:
    told = transcript.circle.told(policy.stuck_after)
    return Fail(STUCK, told, stop_session=True) if told else None


def _is_far(trouble: Trouble, now: datetime) -> bool:
    return trouble.lifts_at is not None and trouble.lifts_at > now + FAR_AHEAD


def _never_ran(seen: Seen) -> bool:
    """Whether the session has a record but its program was never started: the starting process died in between."""
    return not seen.alive and seen.pid is None and seen.exit_status is None


def not_begun(error: LampError) -> review.Ending:
    if isinstance(error, SetupFailed):
        return error.ending
    reason = _reason(error)
    state = RunState.SKIPPED if reason == SkipReason.PROJECT_MISSING else RunState.FAILED
    tail = error.output[-TAIL:] if isinstance(error, StartFailed) else ""
    login = error.login if isinstance(error, NotSignedIn) else None
    return review.Ending(
        state,
        reason,
        Stage.EXECUTION,
        error=error.message,
        output_tail=tail,
        login=login,
        nothing_ran=reason == NOT_STARTED and not tail,
    )


def _reason(error: LampError) -> str:
    match error:
        case CannotRun():
            return error.reason
        case GitFailed():
            return "worktree_failed"
        case NotSignedIn():
            return SkipReason.LOGIN
        case _:
            return NOT_STARTED
