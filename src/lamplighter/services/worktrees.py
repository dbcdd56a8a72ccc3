"""What can be asked about the worktrees of runs: which there are, and to remove them."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.model import Run, RunState, said
from lamplighter.kit.errors import Conflict, LampError
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.shapes import given
from lamplighter.ports.runs import RunUnknown
from lamplighter.ports.worktrees import Kept, Worktree
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, effect
from lamplighter.services.runs import executing
from lamplighter.services.runs.changes import worktree_of
from lamplighter.store.tx import Tx

if TYPE_CHECKING:
    from lamplighter.services.host import Host

MEASURED_WITHIN = 5.0
ANSWER_S = 10.0
"""Seconds that measuring may take, and that a command waits for the daemon before it looks itself."""


@dataclass(frozen=True)
class WorktreeView:
    """`waits` says that its run waits for an answer, which will go on in it."""

    run: str
    automation: str
    state: RunState
    waits: bool
    node: str | None
    path: str
    branch: str
    repository: str
    ended_at: datetime | None
    size: int | None
    """Bytes on the disk; null where it is on another machine, or could not be measured in time."""


@dataclass(frozen=True)
class ListWorktrees:
    """The worktrees of runs that are still there, the newest first."""

    limit: int = given("At most so many.", default=50, least=1, most=1000)


@dataclass(frozen=True)
class CleanWorktrees:
    """Remove worktrees of ended runs on this machine: what holds no work that is nowhere else, or all of it.

    Those that wait for an answer stay, unless their run is named.
    """

    run: str | None = given("Only that of this run.", default=None, positional=True, metavar="RUN")
    discard: bool = given("Also those with uncommitted changes, which are lost.", default=False)


@dataclass(frozen=True)
class CleanedView:
    """`removed` is false for one that was kept, and `why` says why."""

    run: str
    path: str
    removed: bool
    why: str | None = None


class StillAtWork(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} {said(run.state)}; its worktree is in use.", hint=f"`lamp run cancel {run.id}` ends it."
        )


async def list_worktrees(host: "Host", ask: ListWorktrees, _ctx: Context) -> list[WorktreeView]:
    rows = await host.store.read(lambda tx: tx.runs.worktrees(limit=ask.limit))
    sizes: dict[str, int | None] = {}
    with contextlib.suppress(TimeoutError):
        async with TimeLimit(MEASURED_WITHIN):
            for row in rows:
                sizes[row.id] = await host.worktrees.size(worktree_of(row))
    return [_view(row, sizes.get(row.id)) for row in rows]


async def clean_worktrees(host: "Host", ask: CleanWorktrees, ctx: Context) -> list[CleanedView]:
    """Raises RunUnknown, StillAtWork, NoChangesKept. What cannot be removed is told with the reason."""
    host.need_own()
    cleaned = []
    for row in await host.store.read(_wanted, ask.run):
        worktree = worktree_of(row)
        kept = await _kept(host, worktree, discard=ask.discard)
        if kept is None:
            await host.store.transact(executing.worktree_settled, row.id, None, ctx)
        cleaned.append(CleanedView(row.id, str(worktree.path), kept is None, kept))
    return cleaned


async def _kept(host: "Host", worktree: Worktree, *, discard: bool) -> str | None:
    """Remove it; returns why it was kept, None if it is gone."""
    if not await asyncio.to_thread(worktree.repository.is_dir):
        return f"{worktree.repository} is not on this machine"
    try:
        if discard:
            await host.worktrees.discard(worktree)
            return None
        done = await host.worktrees.release(worktree)
    except LampError as error:
        return error.message.rstrip(".")
    return f"{done.why} ({done.changes})" if isinstance(done, Kept) else None


def _wanted(tx: Tx, run: str | None) -> Sequence[Run]:
    if run is None:
        rows = [row for row in tx.runs.worktrees(limit=1000) if row.ended and not is_awaited(row)]
        return not_in_use(tx, rows)
    row = tx.runs.get(run)
    if row is None:
        raise RunUnknown(run)
    if not row.ended:
        raise StillAtWork(row)
    if not not_in_use(tx, [row]):
        raise StillAtWork(tx.runs.get(tx.runs.in_worktrees()[str(worktree_of(row).path)]) or row)
    return [row]


def left_behind(tx: Tx, node: str, *, before: datetime, limit: int) -> list[Run]:
    """Runs of that node that ended before `before`, each with a worktree that no active run works in."""
    return not_in_use(tx, tx.runs.with_worktree(node, before=before, limit=limit))


def not_in_use(tx: Tx, rows: Sequence[Run]) -> list[Run]:
    """Those of the ended runs in whose worktree no active run works."""
    used = tx.runs.in_worktrees()
    return [row for row in rows if str(worktree_of(row).path) not in used]


def is_awaited(row: Run) -> bool:
    """Whether its worktree is kept for the run that will go on with it."""
    return row.state is RunState.NEEDS_HUMAN and row.continued_by is None


def _view(row: Run, size: int | None) -> WorktreeView:
    told = row.worktree or {}
    return WorktreeView(
        row.id, row.automation, row.state, is_awaited(row), row.node, told.get("path", ""), told.get("branch", ""),
        told.get("repository", ""), row.ended_at, size,
    )  # fmt: skip


LIST = effect(
    "worktree.list", Verb.READ, ListWorktrees, list[WorktreeView], list_worktrees, here_after=ANSWER_S,
    http=Http("GET", "/worktrees"),
)  # fmt: skip
CLEAN = effect(
    "worktree.clean", Verb.CONTROL_AGENTS, CleanWorktrees, list[CleanedView], clean_worktrees,
    http=Http("POST", "/worktrees/clean"),
)  # fmt: skip
