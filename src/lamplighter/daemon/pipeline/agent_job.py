"""The steps of an agent run: its session is started once, followed and judged to its end, and let go of once."""

from dataclasses import dataclass
from datetime import timedelta

from lamplighter.daemon.pipeline.agent_sessions import AgentRuns
from lamplighter.daemon.pipeline.exec_job import STOPPED, ExecSteps, grace, interrupted
from lamplighter.daemon.pipeline.jobs import PRECHECK, SETUP, Work, verify_key
from lamplighter.domain.runs.job import (
    Began,
    Claimed,
    Message,
    NextRound,
    Over,
    RunEnded,
    StepDone,
    TakenByPerson,
    ToldToStop,
)
from lamplighter.domain.runs.model import MESSAGE, Run
from lamplighter.domain.runs.verdict import Asks, Fail, Leave, SessionSeen, TimeOut
from lamplighter.domain.runs.verify import Checked
from lamplighter.domain.sessions.presets.troubles import Heard
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.records import changed
from lamplighter.ports.sessions import GRACE
from lamplighter.services.runs import command_ends, review


@dataclass
class AgentSteps:
    agents: AgentRuns
    commands: ExecSteps
    """Runs the precheck."""

    async def start(self, work: Work) -> Message:
        self.agents.listen_for(work.run, work.wake)
        return await work.interruptible(self._start(work))

    async def _start(self, work: Work) -> Message:  # noqa: PLR0911  each way a start may go
        """Run the precheck and start the session, unless it is on record; the run may have ended meanwhile."""
        if work.row.session_id is None and _is_first_turn(work.row):
            work.ending = await self.commands.checked(work, review.snapshots_of(work.row))
            if work.ending is not None:
                return Over()
        crash_point(CrashPoint.RUN_AFTER_START)
        fresh = await self._fresh(work)
        if fresh is None or fresh.ended:
            return RunEnded.of(fresh)
        if fresh.taken_by is not None:
            return TakenByPerson()
        if fresh.pending is not None:
            return Claimed()
        begun = await self.agents.begin(fresh)
        if isinstance(begun, review.Ending):
            work.ending = begun
            return Over()
        # The lease stays the one this process claimed: by it a process that lost the run is refused.
        work.row, work.plan = changed(begun.row, lease=work.row.lease), begun.plan
        if begun.row.ended:
            return RunEnded.of(begun.row)
        return Began() if begun.row.pending is None else Claimed()

    async def follow(self, work: Work) -> Message:
        """Watch the session until it is judged, or until a message arrives: that is how a completed run ends."""
        agents, row = self.agents, work.row
        known = await agents.known(row)
        now = known.row  # taken before this was the step that is told of it
        if now is not None and not now.ended and now.taken_by is not None:
            return TakenByPerson()
        if known.is_to_be_told:
            return await self._tell(work)
        transcript = agents.transcript(row, work.plan, known.reached)
        seen = await agents.look_for_status(row, work.wake)
        while isinstance(judged := await agents.judge(row, transcript, seen), Leave):
            await agents.pause(row, work.wake)
            work.wake.clear()  # before the inbox and the session are looked at, so that nothing is overlooked
            if work.inbox:
                return work.inbox.popleft()
            seen = await agents.look_for_status(row, work.wake)
        return await self._judged(work, judged, seen, transcript.heard)

    async def _judged(
        self, work: Work, judged: Fail | TimeOut | Asks, seen: SessionSeen, heard: Heard | None
    ) -> Message:
        agents, row, fresh = self.agents, work.row, await self._fresh(work)
        if fresh is None or fresh.ended:
            return RunEnded.of(fresh)
        if fresh.taken_by is not None:
            return TakenByPerson()
        if fresh.pending is not None and not isinstance(judged, TimeOut):
            return Claimed()
        if isinstance(judged, Fail) and await agents.may_be_told(row, work.plan, judged):
            return await self._tell(work)
        work.ending = await agents.ending(row, judged, seen, heard)
        return Over()

    async def _tell(self, work: Work) -> Message:
        """Tell an agent that it goes round in circles: in the next round of its run."""
        after = await self.agents.tell(work.row)
        if after.ended:
            return RunEnded.of(after)
        if after.pending is not None:
            return Claimed()
        work.row = changed(after, lease=work.row.lease)
        return NextRound()

    async def verify(self, work: Work) -> Message:
        """Verify the claim that waits, once its program has ended: what it still did would make the verdict worthless.

        Each part may be repeated after a crash; the verdict is recorded once.
        """
        return await work.interruptible(self._verify(work))

    async def _verify(self, work: Work) -> Message:
        agents = self.agents
        fresh = await self._fresh(work)
        if fresh is None or fresh.ended:
            return RunEnded.of(fresh)
        work.row = changed(fresh, lease=work.row.lease)
        if fresh.pending is None:
            return NextRound()
        until = agents.clock.monotonic() + review.LAST_WORDS.total_seconds()
        while await agents.last_words(work.run, until, work.wake):
            work.wake.clear()
        await agents.stop(work.run, plan=work.plan)
        crash_point(CrashPoint.VERIFY_BEFORE_COMMAND)
        automation = review.snapshots_of(fresh)
        place = await agents.places.verified_at(fresh)
        if isinstance(place, Checked):
            checked = place
        else:
            checked = await self.commands.check(work, automation, place.directory, place.env)
        crash_point(CrashPoint.VERIFY_AFTER_COMMAND)
        after = await agents.settle(work.row, checked)
        crash_point(CrashPoint.VERIFY_AFTER_VERDICT)
        work.row = changed(after, lease=work.row.lease)
        return RunEnded() if after.ended else NextRound()

    async def last_words(self, work: Work) -> Message:
        """Let the program of a completed run end by itself, for a while: a message cuts it short."""
        until = self.agents.clock.monotonic() + review.LAST_WORDS.total_seconds()
        while await self.agents.last_words(work.run, until, work.wake):
            work.wake.clear()
            if work.inbox:
                return work.inbox.popleft()
        return StepDone()

    async def stop(self, work: Work) -> None:
        if not isinstance(work.cause, Over):
            await self.commands.runner.stop(work.run + PRECHECK, grace=timedelta(0))
            await self.commands.runner.stop(work.run + SETUP, grace=timedelta(0))
            await self.commands.runner.stop(verify_key(work.run, work.row.round), grace=timedelta(0))
        told = isinstance(work.cause, ToldToStop)
        patience = grace(self.commands.active) if told else GRACE
        tail = await self.agents.stop(work.run, grace=patience, plan=work.plan)
        if told:
            work.ending = interrupted(STOPPED, command_ends.clean(tail))

    async def release(self, work: Work) -> None:
        await self.agents.free(work.run)
        await self.commands.runner.forget(work.run + SETUP)
        await self.commands.forget_checks(work)

    async def _fresh(self, work: Work) -> Run | None:
        return await self.agents.store.read(lambda tx: tx.runs.get(work.run))


def _is_first_turn(row: Run) -> bool:
    began = row.trigger_kind != MESSAGE and (row.continues is None or review.snapshots_of(row).session is not None)
    return began and row.round == 1 and row.pending is None and row.given is None
