"""A working directory of its own for each run, so that agents do not step on each other or on a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lamplighter.kit.errors import LampError


@dataclass(frozen=True)
class Worktree:
    """`work_dir` is where the run works: the place in the worktree that the rig's directory has in its repository."""

    run: str
    path: Path
    branch: str
    repository: Path
    work_dir: Path


@dataclass(frozen=True)
class Changes:
    """What differs from where the run began, committed or not; `untracked` files are counted apart."""

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
    """All of it is elsewhere, or there was nothing."""


@dataclass(frozen=True)
class Kept:
    """`why`: `uncommitted` or `unmerged`."""

    worktree: Worktree
    why: str
    changes: Changes


class NoWorktree(LampError):
    """The directory cannot have one: it is not in a git repository, or nothing was ever committed there."""


class GitFailed(LampError):
    def __init__(self, what: str, said: str) -> None:
        super().__init__(f"`git {what}` failed: {said}.", hint="Look at the repository; it is tried again.")
        self.said = said


class Worktrees(Protocol):
    async def ensure(self, run: str, directory: Path) -> Worktree:
        """Make it, or find it where an earlier try made it; whatever is in it then stays.

        Raises NoWorktree, GitFailed.
        """
        ...

    async def changes(self, worktree: Worktree) -> Changes: ...

    async def release(self, worktree: Worktree) -> Removed | Kept:
        """Remove it when nothing would be lost: clean, and every commit on some other branch. May be repeated."""
        ...

    async def discard(self, worktree: Worktree) -> None:
        """Remove it with what is uncommitted in it; unmerged commits stay on its branch. May be repeated."""
        ...

    async def all(self) -> Sequence[Worktree]:
        """Those that are there, by run."""
        ...
