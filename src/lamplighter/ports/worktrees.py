"""Git worktrees: a working directory for each run, so that agents do not disturb each other or a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lamplighter.kit.counting import counted
from lamplighter.kit.errors import Conflict, LampError


@dataclass(frozen=True)
class Worktree:
    """`work_dir` is where the run works: the rig's directory inside its repository, mapped to the worktree.

    A worktree found by `all` has its root as `work_dir`.
    """

    run: str
    path: Path
    branch: str
    repository: Path
    work_dir: Path


@dataclass(frozen=True)
class Changes:
    """Differences from the commit where the run began, committed or not; `untracked` files are counted separately."""

    commits: int = 0
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    untracked: int = 0

    @property
    def none(self) -> bool:
        return self == Changes()

    def __str__(self) -> str:
        if self.none:
            return "no changes"
        parts = [
            counted(self.commits, "commit") if self.commits else "",
            f"{counted(self.files, 'file')} changed, +{self.insertions} -{self.deletions}" if self.files else "",
            counted(self.untracked, "new file") if self.untracked else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Removed:
    """The worktree is gone: all its commits are on other branches, or there was no worktree."""


@dataclass(frozen=True)
class Kept:
    """The worktree was not removed; `why` is `uncommitted` or `unmerged`."""

    worktree: Worktree
    why: str
    changes: Changes


class NoWorktree(LampError):
    """The directory cannot have a worktree: it is not in a git repository, or the repository has no commit."""


class DoesNotApply(Conflict):
    def __init__(self, worktree: Worktree, said: str) -> None:
        super().__init__(
            f"The changes do not fit what is in {worktree.repository} now: {said}.",
            hint=f"Nothing was changed there. Merge by hand, from {worktree.path} or its branch {worktree.branch}.",
        )


class GitFailed(LampError):
    def __init__(self, what: str, said: str) -> None:
        super().__init__(f"`git {what}` failed: {said}.", hint="Look at the repository; it is tried again.")
        self.said = said


class Worktrees(Protocol):
    async def ensure(self, run: str, directory: Path) -> Worktree:
        """Make the run's worktree, or return the one an earlier try made, with its contents unchanged.

        Raises NoWorktree, GitFailed.
        """
        ...

    async def changes(self, worktree: Worktree) -> Changes: ...

    async def release(self, worktree: Worktree) -> Removed | Kept:
        """Remove it if it is clean and all its commits are on another branch, else keep it. May be repeated."""
        ...

    async def discard(self, worktree: Worktree) -> str | None:
        """Remove it with its uncommitted changes; unmerged commits stay on its branch, which is returned then.

        May be repeated.
        """
        ...

    async def size(self, worktree: Worktree) -> int | None:
        """How many bytes it takes on the disk; None if it is not on this machine."""
        ...

    async def shed(self, worktree: Worktree) -> list[str]:
        """Remove directories of dependencies and caches that git ignores, which a setup makes anew; returns them."""
        ...

    async def patch(self, worktree: Worktree) -> str:
        """All that differs from where the run began, committed or not, new files included, as a patch of git."""
        ...

    async def apply(self, worktree: Worktree) -> bool:
        """Bring that into the repository's own checkout, uncommitted: all of it or nothing. False if it was there.

        Raises DoesNotApply.
        """
        ...

    async def all(self) -> Sequence[Worktree]:
        """All existing worktrees, sorted by run."""
        ...
