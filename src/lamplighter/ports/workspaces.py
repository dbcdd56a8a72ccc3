"""The files of workspaces: what a worktree gets from its rig, and whether ports are free."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Laying:
    """`source` is the rig's own directory, `target` the worktree's; `copy` and `cache` are paths below both."""

    rig: str
    source: Path
    target: Path
    copy: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()


class WorkspaceFiles(Protocol):
    """Called on a thread. Every call may be repeated."""

    def lay(self, laying: Laying) -> list[str]:
        """Copy the files and link the shared directories; returns what was left as it was, each with the reason.

        What the worktree has already stays. Raises OSError.
        """
        ...

    def clear(self, laying: Laying) -> None:
        """Take out the links and the copies that nobody changed, so that they do not count as work of the run."""
        ...

    def declared(self, directory: Path) -> Mapping[str, Any] | None:
        """The tree of the `.lamplighter.toml` there, which is sound; None if there is none. Raises ConfigInvalid."""
        ...

    def are_free(self, base: int, count: int) -> bool:
        """Whether nothing listens on these ports of the loopback addresses."""
        ...
