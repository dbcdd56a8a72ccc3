"""The steps of a run whose action is a command; its precheck, which other runs may have too, runs the same way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.jobs import MOST_REPEATS, PRECHECK, Work, verify_key
from lamplighter.daemon.pipeline.run_tokens import NOT_OPENED, RunTokens
from lamplighter.daemon.pipeline.slots import Slots
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.automations.model import Automation, Exec, time_limit
from lamplighter.domain.automations.policies import VERIFY_TIMEOUT
from lamplighter.domain.runs.job import Began, Message, Over, RunEnded, StepDone, ToldToStop
from lamplighter.domain.runs.model import RunState, Stage
from lamplighter.domain.runs.verify import Checked
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import NotFound
from lamplighter.ports.commands import Command, CommandEnded, CommandNotStarted, CommandRunner, NoDirectory
from lamplighter.services.runs import command_ends, review
from lamplighter.store.tx import Store

GRACE = timedelta(seconds=5)
STOPPED = "the city was stopped while it ran"


@dataclass
class ExecSteps:
    store: Store
    clock: Clock
    active: ActiveConfig
    runner: CommandRunner
    slots: Slots

    async def start(self, work: Work) -> Message:
        """Run the precheck, if there is one; it may end the run."""
        automation = review.snapshots_of(work.row)
        return Began() if automation.policies.precheck is None else await work.interruptible(self._check(work))

    async def follow(self, work: Work) -> Message:
        return await work.interruptible(self._follow(work))

    async def _check(self, work: Work) -> Message:
        work.ending = await self.checked(work, review.snapshots_of(work.row))
        return Began() if work.ending is None else Over(gone=True)

    async def _follow(self, work: Work) -> Message:
        """Run the command; one that runs already, or has ended, is not started again."""
        crash_point(CrashPoint.RUN_AFTER_START)
        run = work.row
        automation = review.snapshots_of(run)
        if not isinstance(automation.action, Exec):
            work.ending = review.Ending(RunState.FAILED, "no_command", Stage.EXECUTION)
            return Over(gone=True)
        ended = await self._run(work, automation, automation.action.command)
        work.ending = ended if isinstance(ended, review.Ending) else command_ends.after(run, ended, self.clock.now())
        if work.ending.state is RunState.SUCCEEDED and automation.policies.verify is not None:
            work.ending = await self._verified(work, automation, work.ending)
        return Over(gone=True)

    async def verify(self, work: Work) -> Message:  # noqa: ARG002  the run of a command verifies itself as it ends
        return Over(gone=True)

    async def _verified(self, work: Work, automation: Automation, ending: review.Ending) -> review.Ending:
        """How the run ends whose command ended well: by what the command that verifies says of it."""
        checked = await self.check(work, automation, Path(self.active.dir_of(work.row.rig)))
        return command_ends.after_verify(ending, checked, automation.policies.verify or "")

    async def check(
        self, work: Work, automation: Automation, work_dir: Path, env: Mapping[str, str] | None = None
    ) -> Checked:
        """Run the command that verifies; one that runs already, or has ended, is not started again.

        One of which nobody saw how it ended is run again: it only looks.
        """
        key = verify_key(work.run, work.row.round)
        for _ in range(MOST_REPEATS):
            try:
                command = await self._command(work, automation, automation.policies.verify or "true", "")
            except NOT_OPENED as error:
                return Checked(None, why=error.message.rstrip("."))
            left = None if work.row.deadline_at is None else work.row.deadline_at - self.clock.now()
            limit = automation.policies.verify_timeout or VERIFY_TIMEOUT
            own = {"LAMP_DIR": str(work_dir), "LAMP_ROUND": str(work.row.round)}
            command = replace(
                command,
                key=key,
                work_dir=str(work_dir),
                limit=limit if left is None else min(limit, max(left, timedelta(0))),
                env={**command.env, **(env or {}), **own},
            )
            try:
                ended = await self._shown(await self.slots.run(self.runner.run, command))
            except CommandNotStarted as error:
                return Checked(None, why=error.message.rstrip("."))
            if ended.timed_out:
                took = f"{ended.duration.total_seconds():.1f} s"
                return Checked(None, command_ends.clean(ended.output), f"it was killed at its time limit, after {took}")
            if ended.exit_code is not None:
                return Checked(ended.exit_code, command_ends.clean(ended.output))
            await self.runner.forget(key)
        return Checked(None, why=f"nobody saw how it ended, {MOST_REPEATS} times")

    async def last_words(self, work: Work) -> Message:  # noqa: ARG002  only programs of agents complete their run
        return StepDone()

    async def stop(self, work: Work) -> None:
        """Stop the run's processes, and keep the output that they had written."""
        await self.runner.stop(work.run + PRECHECK, grace=timedelta(0))
        await self.runner.stop(verify_key(work.run, work.row.round), grace=timedelta(0))
        await self.runner.stop(work.run, grace=grace(self.active))
        tail = await self._tail(work)
        match work.cause:
            case RunEnded():
                await self.store.transact(review.keep_output, work.run, tail)
            case ToldToStop():
                work.ending = interrupted(STOPPED, tail)
            case _:
                pass

    async def _tail(self, work: Work) -> str:
        try:
            return command_ends.clean((await self.active.secrets.mask())(await self.runner.tail(work.run)))
        except OSError as error:
            log.get().warning("run.output_lost", run=work.run, error=str(error))
            return ""

    async def release(self, work: Work) -> None:
        """Forget the run's commands. Those of an adopted run are kept until a process of this node starts again.

        Whoever held the run before may be alive all the same, and about to start them; it finds that they have run.
        """
        if work.adopted:
            return
        await self.runner.forget(work.run)
        await self.forget_checks(work)

    async def forget_checks(self, work: Work) -> None:
        await self.runner.forget(work.run + PRECHECK)
        if review.snapshots_of(work.row).policies.verify is not None:
            for number in range(1, work.row.round + 1):
                await self.runner.forget(verify_key(work.run, number))

    async def checked(self, work: Work, automation: Automation) -> review.Ending | None:
        """Run the precheck: how it ends the run, or None if the run goes on."""
        precheck = automation.policies.precheck
        if precheck is None:
            return None
        ended = await self._run(work, automation, precheck, PRECHECK)
        return ended if isinstance(ended, review.Ending) else command_ends.after_precheck(ended)

    async def _run(
        self, work: Work, automation: Automation, line: str, suffix: str = ""
    ) -> CommandEnded | review.Ending:
        """How the command ended, or how the run ends because the command cannot be started."""
        try:
            command = await self._command(work, automation, line, suffix)
            return await self._shown(await self.slots.run(self.runner.run, command))
        except NOT_OPENED as error:
            return review.Ending(RunState.FAILED, error.reason, Stage.EXECUTION, error=error.message)
        except (NoDirectory, NotFound) as error:
            return review.Ending(RunState.SKIPPED, SkipReason.PROJECT_MISSING, Stage.EXECUTION, error=error.message)
        except CommandNotStarted as error:
            run = work.row
            log.get().warning("run.not_started", run=run.id, automation=run.automation, error=error.message)
            return review.Ending(RunState.FAILED, "not_started", Stage.EXECUTION, error=error.message, nothing_ran=True)

    async def _shown(self, ended: CommandEnded) -> CommandEnded:
        """How it ended, with the values of secrets masked in what it printed."""
        return replace(ended, output=(await self.active.secrets.mask())(ended.output))

    async def _command(self, work: Work, automation: Automation, line: str, suffix: str) -> Command:
        row = work.row
        trigger = work.trigger or await self.store.read(review.trigger_of, row)
        limit = time_limit(automation, self.active.rules.cap)
        tokens = await RunTokens(self.store, self.active).env(automation)
        own = tokens | await self.active.secrets.opened(automation.policies.env)
        env = (
            self.active.env_of(row.rig)
            | self.active.handed(row.id, trigger or {})
            | own
            | {
                "LAMP_RUN_ID": row.id,
                "LAMP_AUTOMATION": row.automation,
                "LAMP_ACTOR": f"automation:{row.automation}",
            }
        )
        if automation.path is not None:
            env["AUTOMATION_DIR"] = automation.path.rpartition("/")[0]
        return Command(
            key=row.id + suffix,
            line=line,
            work_dir=self.active.dir_of(row.rig),
            limit=command_ends.until_deadline(row, limit or timedelta(minutes=5)),
            env=env,
            files={"LAMP_TRIGGER_FILE": json.dumps(trigger)},
        )


def grace(active: ActiveConfig) -> timedelta:
    """How long the processes of a run may take to end by themselves when they are stopped."""
    return min(GRACE, active.city.daemon.shutdown_timeout)


def interrupted(error: str, tail: str = "") -> review.Ending:
    return review.Ending(RunState.FAILED, "interrupted", Stage.EXECUTION, error=error, output_tail=tail)
