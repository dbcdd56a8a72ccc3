"""Git worktrees: a working directory for each run, so that agents do not disturb each other or a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lamplighter.kit.errors import LampError


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
        told = f"{self.commits} commits, {self.files} files changed, +{self.insertions} -{self.deletions}"
        return f"{told}, {self.untracked} new files" if self.untracked else told


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

    async def discard(self, worktree: Worktree) -> None:
        """Remove it with its uncommitted changes; unmerged commits stay on its branch. May be repeated."""
        ...

    async def all(self) -> Sequence[Worktree]:
        """All existing worktrees, sorted by run."""
        ...
