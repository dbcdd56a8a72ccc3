"""Where runs work on this machine: the directory or the worktree, made ready before a run and left after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.daemon.pipeline.run_plans import RunPlans
from lamplighter.daemon.pipeline.workspaces import Workspaces
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.city.run_plan import CannotRun, RunPlan
from lamplighter.domain.runs.model import MESSAGE, Run, RunState
from lamplighter.domain.runs.verify import Checked
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.ports.worktrees import GitFailed, Kept, NoWorktree, Worktree, Worktrees
from lamplighter.services.context import Context, acting
from lamplighter.services.runs import executing, review, turns
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class Place:
    """Where a run works and how it is isolated; `why` explains a missing worktree or an unknown isolation."""

    work_dir: Path
    isolation: str
    why: str = ""


@dataclass(frozen=True)
class Workplace:
    """Where the work of a run is verified, and with which variables of its configuration."""

    directory: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class RunPlaces:
    store: Store
    clock: Clock
    me: review.Worker
    worktrees: Worktrees
    workspaces: Workspaces
    plans: RunPlans

    async def place(self, row: Run, plan: RunPlan) -> Place:
        """Raises CannotRun, GitFailed."""
        if not plan.directory.is_dir():
            raise CannotRun(SkipReason.PROJECT_MISSING, f"{plan.directory} is not a directory.")
        if row.worktree is not None and _worktree(row).work_dir.is_dir():  # of the run that it goes on with
            return Place(_worktree(row).work_dir, "worktree")
        if plan.isolation != "worktree":
            return Place(plan.directory, "none")
        goes_on = row.trigger_kind == MESSAGE or row.continues is not None
        if goes_on and await self.store.read(turns.began_by_hand, row):
            return Place(plan.directory, "none", "a person began the conversation there")
        try:
            made = await self.worktrees.ensure(await self.store.read(turns.first_of, row), plan.directory)
        except NoWorktree as error:
            return Place(plan.directory, "none", error.message)
        except OSError as error:
            raise GitFailed("worktree", told_of(error)) from error
        await self.store.transact(executing.worktree_made, row.id, _told(made))
        return Place(made.work_dir, "worktree")

    async def made_ready(self, row: Run, plan: RunPlan, place: Place) -> dict[str, str]:
        """The variables that the place gives to the run. Raises SetupFailed. A later round finds it as it was left."""
        if row.round > 1 or row.given is not None:
            return self.workspaces.env_of(row)
        return await self.workspaces.ready(row, plan, place.work_dir, worktree=place.isolation == "worktree")

    async def verified_at(self, row: Run) -> Workplace | Checked:
        """Where the run's work is verified; what is told instead if that is gone."""
        plan = await self.plans.plan_if_any(row)
        env = {**({} if plan is None else plan.env), **self.workspaces.env_of(row)}
        if row.worktree is not None:
            return Workplace(_worktree(row).work_dir, env)
        if plan is None:
            return Checked(None, why="where it worked is no longer known, because its configuration is gone")
        return Workplace(plan.directory, env)

    async def leave(self, row: Run, *, is_open: bool) -> None:
        """Free the worktree of a run whose session has ended, or keep it for whoever goes on in it. May be repeated.

        `is_open` says that a person has the program open there.
        """
        if row.worktree is None:
            return
        await self.workspaces.leave(row, await self.plans.plan_if_any(row), _worktree(row).work_dir)
        why = "a person works in it" if is_open else "it waits for an answer" if _awaits(row) else ""
        if why:
            await self._keep(row, why)
        else:
            await self._release(row)

    async def discard(self, row: Run) -> None:
        """Remove a worktree that was kept long enough; unmerged commits stay on their branch."""
        await self.worktrees.discard(_worktree(row))
        await self.store.transact(executing.worktree_settled, row.id, None, self._context())

    async def size(self, row: Run) -> int:
        """How many bytes its worktree takes; 0 if it is gone."""
        return await self.worktrees.size(_worktree(row)) or 0

    async def shed(self, row: Run) -> None:
        """Remove from its worktree what a setup makes anew."""
        removed = await self.worktrees.shed(_worktree(row))
        if removed:
            log.get().info("worktree.shed", run=row.id, removed=removed)

    async def _keep(self, row: Run, why: str) -> None:
        """Record that the worktree is kept, also when it is clean."""
        told = row.worktree or {}
        kept = {"why": why, "path": told.get("path"), "branch": told.get("branch"), "diff": ""}
        await self.store.transact(executing.worktree_settled, row.id, kept, self._context())

    async def _release(self, row: Run) -> None:
        worktree = _worktree(row)
        try:
            done = await self.worktrees.release(worktree)
        except LampError as error:
            log.get().warning("worktree.not_released", run=row.id, error=error.message)
            return
        kept: dict[str, Any] | None = None
        if isinstance(done, Kept):
            kept = {"why": done.why, "path": str(worktree.path), "branch": worktree.branch, "diff": str(done.changes)}
        await self.store.transact(executing.worktree_settled, row.id, kept, self._context())

    def _context(self) -> Context:
        return acting(self.me.actor, self.clock.now())


def _awaits(row: Run) -> bool:
    """Whether a run may still go on with this one, in its place."""
    return row.state is RunState.NEEDS_HUMAN and row.continued_by is None


def told_of(error: OSError) -> str:
    why = error.strerror or str(error)
    return f"{error.filename}: {why}" if error.filename else why


def _told(worktree: Worktree) -> dict[str, str]:
    return {
        "path": str(worktree.path),
        "branch": worktree.branch,
        "repository": str(worktree.repository),
        "work_dir": str(worktree.work_dir),
    }


def _worktree(row: Run) -> Worktree:
    told = row.worktree or {}
    path = Path(told["path"])
    work_dir = Path(told.get("work_dir") or path)
    return Worktree(row.id, path, told["branch"], Path(told["repository"]), work_dir)
