"""What is done with the worktree that a run left: its changes are shown, taken into the checkout, or thrown away."""

from dataclasses import dataclass
from pathlib import Path

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.model import NotEnded, Run
from lamplighter.kit.errors import NotFound
from lamplighter.kit.shapes import given
from lamplighter.ports.worktrees import Worktree
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, effect
from lamplighter.services.runs import review
from lamplighter.services.runs.queries import RUN_ID
from lamplighter.store.run_rows import NewRunEvent, RunEvent
from lamplighter.store.tx import Tx

WITHIN_S = 300.0
APPLIED = "worktree_applied"
DISCARDED = "worktree_discarded"


class NoChangesKept(NotFound):
    """`settled` is the event that tells that a person has applied or discarded the changes, where one did."""

    def __init__(self, run: str, settled: RunEvent | None = None) -> None:
        if settled is not None and settled.type == APPLIED:
            hint = f"Its changes were applied already, to {settled.data['repository']}."
        elif settled is not None:
            hint = "Its changes were discarded."
        else:
            hint = "It worked in place, changed nothing, or its worktree was removed after a while."
        super().__init__(f"Run {run} has no worktree.", hint=hint)


@dataclass(frozen=True)
class RunChanges:
    """`patch` has everything that differs from where the run began, committed or not."""

    id: str
    path: str
    branch: str
    repository: str
    summary: str
    patch: str


@dataclass(frozen=True)
class WorktreeSettled:
    """`applied`: the changes are in the checkout now, uncommitted. `kept_branch` has commits that are nowhere else."""

    id: str
    repository: str
    path: str
    applied: bool
    removed: bool
    kept_branch: str | None


@dataclass(frozen=True)
class DiffRun:
    """What a run changed in its worktree, as a patch: committed or not, new files included."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class ApplyRun:
    """Take a run's changes over into the rig's checkout, uncommitted, and remove its worktree; all of them or none."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class DiscardRun:
    """Remove a run's worktree and what is not committed in it; commits of its own stay on its branch."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


async def diff_run(host: Host, ask: DiffRun, _ctx: Context) -> RunChanges:
    """Raises RunUnknown, NoChangesKept, NoWorktree, GitFailed."""
    row = await host.store.read(_with_worktree, ask.run)
    worktree = worktree_of(row)
    patch = await host.worktrees.patch(worktree)
    told = str(await host.worktrees.changes(worktree))
    return RunChanges(row.id, str(worktree.path), worktree.branch, str(worktree.repository), told, patch)


async def apply_run(host: Host, ask: ApplyRun, ctx: Context) -> WorktreeSettled:
    """May be repeated: changes that are in the checkout already are not made twice.

    Raises RunUnknown, NotEnded, NoChangesKept, NoWorktree, DoesNotApply, GitFailed.
    """
    row = await host.store.read(_ended, ask.run)
    worktree = worktree_of(row)
    applied = await host.worktrees.apply(worktree)
    return await _removed(host, row, worktree, ctx, applied=applied)


async def discard_run(host: Host, ask: DiscardRun, ctx: Context) -> WorktreeSettled:
    """May be repeated. Raises RunUnknown, NotEnded, NoChangesKept, GitFailed."""
    row = await host.store.read(_ended, ask.run)
    return await _removed(host, row, worktree_of(row), ctx, applied=None)


async def _removed(host: Host, row: Run, worktree: Worktree, ctx: Context, *, applied: bool | None) -> WorktreeSettled:
    branch = await host.worktrees.discard(worktree)
    await host.store.transact(_settled, row.id, DISCARDED if applied is None else APPLIED, ctx)
    return WorktreeSettled(
        row.id, str(worktree.repository), str(worktree.path), applied is not None, removed=True, kept_branch=branch
    )


def _with_worktree(tx: Tx, run: str) -> Run:
    row = review.get(tx, run)
    if not row.worktree:
        settled = (one for one in reversed(tx.runs.events(row.id)) if one.type in {APPLIED, DISCARDED})
        raise NoChangesKept(row.id, next(settled, None))
    return row


def _ended(tx: Tx, run: str) -> Run:
    row = review.get(tx, run)
    if not row.ended:
        raise NotEnded(row)
    return _with_worktree(tx, run)


def _settled(tx: Tx, run: str, how: str, ctx: Context) -> None:
    row = tx.runs.lock(run)
    if row is not None and row.worktree is not None:
        tx.runs.set_worktree(run, None)
        tx.runs.add_event(NewRunEvent(run, ctx.now, how, ctx.actor.name, data=dict(row.worktree)))


def worktree_of(row: Run) -> Worktree:
    """Raises NoChangesKept."""
    told = row.worktree
    if not told:
        raise NoChangesKept(row.id)
    path = Path(told["path"])
    return Worktree(row.id, path, told["branch"], Path(told["repository"]), Path(told.get("work_dir") or path))


DIFF_RUN = effect(
    "run.diff", Verb.READ, DiffRun, RunChanges, diff_run, within=WITHIN_S, http=Http("GET", "/runs/{run}/diff")
)
APPLY_RUN = effect(
    "run.apply", Verb.WRITE_CITY, ApplyRun, WorktreeSettled, apply_run,
    within=WITHIN_S, http=Http("POST", "/runs/{run}/apply"),
)  # fmt: skip
DISCARD_RUN = effect(
    "run.discard", Verb.WRITE_CITY, DiscardRun, WorktreeSettled, discard_run,
    within=WITHIN_S, http=Http("POST", "/runs/{run}/discard"),
)  # fmt: skip
