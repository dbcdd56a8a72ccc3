"""Makes a run's workspace ready before its agent starts, and leaves it when the run has ended."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.jobs import MOST_REPEATS, SETUP, TEARDOWN
from lamplighter.domain.city.repository import FILE, joined, on_record
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.city.run_sections import RigWorkspace
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.domain.runs.ports import Block
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.ports.commands import Command, CommandEnded, CommandNotStarted, CommandRunner
from lamplighter.ports.workspaces import Laying, WorkspaceFiles
from lamplighter.services.context import acting
from lamplighter.services.runs import command_ends, review, workspaces
from lamplighter.store.tx import Store

REASON = "setup"
READ = "workspace_read"
"""The run event of what its repository says of its workspace."""
MOST_TRIES = 50


class SetupFailed(LampError):
    """The workspace could not be made ready; `ending` is how the run ends."""

    def __init__(self, ending: review.Ending) -> None:
        super().__init__(ending.error)
        self.ending = ending


@dataclass
class Workspaces:
    store: Store
    clock: Clock
    active: ActiveConfig
    runner: CommandRunner
    files: WorkspaceFiles
    me: review.Worker

    async def ready(self, row: Run, plan: RunPlan, work_dir: Path, *, worktree: bool) -> dict[str, str]:
        """Make the place ready; returns the variables that the run gets. Raises SetupFailed.

        In place, where the directory is a person's own, only ports are given, and what the repository says is not read.
        Each part may be repeated after a crash; the command is run once.
        """
        if plan.workspace is None:
            return {}
        if worktree:
            plan = await self._with_own(row, plan, work_dir)
        wanted = _wanted(plan)
        env = await self._ports(row, wanted.ports) if wanted.ports else {}
        if not worktree:
            return env
        if wanted.copy or wanted.cache:
            try:
                left = await asyncio.to_thread(self.files.lay, _laying(plan, work_dir))
            except OSError as error:
                raise SetupFailed(_failed(f"{error.filename or work_dir}: {error.strerror or error}")) from error
            if left:
                await self._tell(row, "workspace_left_out", {"left": left})
        if wanted.setup:
            await self._set_up(row, plan, work_dir, env)
        return env

    def env_of(self, row: Run) -> dict[str, str]:
        """The variables of a run whose place was made ready."""
        return {} if row.ports is None else _port_env(Block.of(row.ports))

    async def leave(self, row: Run, plan: RunPlan | None, work_dir: Path) -> None:
        """Run the teardown, once, and take out what was laid out. What fails is told and leaves the rest as it is."""
        if plan is None or plan.workspace is None or not await asyncio.to_thread(work_dir.is_dir):
            return
        plan = await self._as_made_ready(row, plan)
        wanted = _wanted(plan)
        if wanted.teardown and not await self.store.read(workspaces.is_told, row.id, "teardown_done"):
            ended = await self._run(row, plan, work_dir, TEARDOWN, self.env_of(row))
            data = _data(ended)
            if not data["ok"]:
                log.get().warning("workspace.teardown_failed", run=row.id, why=data["why"])
            await self._tell(row, "teardown_done", data)
        await self.runner.forget(row.id + TEARDOWN)
        if wanted.copy or wanted.cache:
            try:
                await asyncio.to_thread(self.files.clear, _laying(plan, work_dir))
            except OSError as error:
                log.get().warning("workspace.not_cleared", run=row.id, error=str(error))

    async def _with_own(self, row: Run, plan: RunPlan, work_dir: Path) -> RunPlan:
        """The plan with what the repository says of its workspace, where the rig allows it. Raises SetupFailed.

        It is read once for a run, so that what an agent changes in the file has no effect on its own run.
        """
        if not _wanted(plan).from_repository:
            return plan
        if await self.store.read(workspaces.is_told, row.id, READ):
            return await self._as_made_ready(row, plan)
        try:
            tree = await asyncio.to_thread(self.files.declared, work_dir)
        except ConfigInvalid as error:
            raise SetupFailed(_failed("; ".join(str(one) for one in error.problems))) from error
        if tree is None:
            return plan
        await self._tell(row, READ, {"file": FILE, **tree})
        return replace(plan, workspace=joined(_wanted(plan), on_record(tree)))

    async def _as_made_ready(self, row: Run, plan: RunPlan) -> RunPlan:
        """The plan with what the repository said when the place was made ready."""
        tree = await self.store.read(workspaces.told, row.id, READ)
        if tree is None or not _wanted(plan).from_repository:
            return plan
        own = on_record({key: value for key, value in tree.items() if key != "file"})
        return replace(plan, workspace=joined(_wanted(plan), own))

    async def _set_up(self, row: Run, plan: RunPlan, work_dir: Path, env: Mapping[str, str]) -> None:
        crash_point(CrashPoint.SETUP_BEFORE_COMMAND)
        ended = await self._run(row, plan, work_dir, SETUP, env)
        crash_point(CrashPoint.SETUP_AFTER_COMMAND)
        data = _data(ended)
        if data["ok"]:
            await self._tell(row, "setup_done", data)
            return
        await self._tell(row, "setup_failed", data)
        if isinstance(ended, CommandEnded):
            tail = command_ends.clean(ended.output)
            raise SetupFailed(_failed(str(data["why"]), ended.exit_code, tail))
        raise SetupFailed(_failed(str(data["why"])))

    async def _run(
        self, row: Run, plan: RunPlan, work_dir: Path, suffix: str, env: Mapping[str, str]
    ) -> CommandEnded | CommandNotStarted:
        wanted = _wanted(plan)
        line, limit = (
            (wanted.setup, wanted.setup_timeout) if suffix == SETUP else (wanted.teardown, wanted.teardown_timeout)
        )
        if suffix == SETUP and row.deadline_at is not None:
            limit = min(limit, max(row.deadline_at - self.clock.now(), timedelta(0)))
        own = {
            "LAMP_RUN_ID": row.id, "LAMP_AUTOMATION": row.automation, "LAMP_ACTOR": f"automation:{row.automation}",
            "LAMP_DIR": str(work_dir), "LAMP_RIG_DIR": str(plan.directory),
        }  # fmt: skip
        for _ in range(MOST_REPEATS):
            command = Command(
                row.id + suffix, line, str(work_dir), limit, {**self.active.env_of(plan.rig), **plan.env, **env, **own}
            )
            try:
                ended = await self.runner.run(command)
                ended = replace(ended, output=(await self.active.secrets.mask())(ended.output))
            except CommandNotStarted as error:
                return error
            if ended.exit_code is not None or ended.timed_out:
                return ended
            await self.runner.forget(row.id + suffix)  # nobody saw how it ended: the machine went down
        return CommandNotStarted(row.id + suffix, f"nobody saw how it ended, {MOST_REPEATS} times")

    async def _ports(self, row: Run, count: int) -> dict[str, str]:
        busy: set[int] = set()
        for _ in range(MOST_TRIES):
            found = await self.store.transact(workspaces.allot_ports, row.id, self.me.node, count, busy=frozenset(busy))
            if found is None:
                break
            if await asyncio.to_thread(self.files.are_free, found.base, found.count):
                return _port_env(found)
            busy.add(found.base)
        raise SetupFailed(_failed(f"there are no {count} free ports"))

    async def _tell(self, row: Run, kind: str, data: Mapping[str, object]) -> None:
        ctx = acting(self.me.actor, self.clock.now())
        await self.store.transact(workspaces.tell, row.id, kind, data, ctx)


def _port_env(block: Block) -> dict[str, str]:
    return {"LAMP_PORT_BASE": str(block.base), "LAMP_PORTS": str(block.count)}


def _wanted(plan: RunPlan) -> RigWorkspace:
    assert plan.workspace is not None  # noqa: S101  whoever calls has one
    return plan.workspace


def _laying(plan: RunPlan, work_dir: Path) -> Laying:
    wanted = _wanted(plan)
    return Laying(plan.rig or "-", plan.directory, work_dir, wanted.copy, wanted.cache)


def _data(ended: CommandEnded | CommandNotStarted) -> dict[str, object]:
    if isinstance(ended, CommandNotStarted):
        return {"ok": False, "why": ended.message, "exit_code": None}
    took = round(ended.duration.total_seconds(), 3)
    why = "it was killed at its time limit" if ended.timed_out else f"it ended with exit code {ended.exit_code}"
    ok = ended.exit_code == 0 and not ended.timed_out
    told: dict[str, object] = {"ok": ok, "why": why, "exit_code": ended.exit_code, "seconds": took}
    return told if ok else told | {"output_tail": command_ends.clean(ended.output)[-review.LONGEST_ERROR :]}


def _failed(why: str, exit_code: int | None = None, tail: str = "") -> review.Ending:
    error = f"Its workspace could not be made ready: {why.rstrip('.')}."
    return review.Ending(RunState.FAILED, REASON, Stage.SETUP, error, exit_code, tail)
