"""Shell commands of automations: started so that they outlive this process, and ended with all their descendants."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from lamplighter.kit.errors import LampError

OUTPUT_BYTES = 64 * 1024
"""How much of a command's output is kept: its end."""


@dataclass(frozen=True)
class Command:
    """`key` names this one start for good. Each of `files` is written beside it, its path told in that variable."""

    key: str
    line: str
    work_dir: str
    limit: timedelta
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandEnded:
    """`exit_code` is none where it was ended at its limit, or where nobody can know it: the machine went down."""

    exit_code: int | None
    started_at: datetime
    duration: timedelta
    output: str = ""
    timed_out: bool = False


class CommandNotStarted(LampError):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"The command of {key} did not start: {why}.", hint="Nothing of it ran.")


class NoDirectory(CommandNotStarted):
    """The directory it should work in is not there."""


class CommandRunner(Protocol):
    async def run(self, command: Command) -> CommandEnded:
        """Start it, or take up the one of that key that was started before, and wait for its end.

        A command is started once for its key, whatever happens to this process, until `forget`. At its limit it is
        ended with all descendants. Cancelling the wait leaves the command running. Raises CommandNotStarted, or
        NoDirectory.
        """
        ...

    async def check(self, command: Command) -> CommandEnded:
        """Run a short one that nobody will take up again; its output is not kept. Cancelling ends it."""
        ...

    async def stop(self, key: str, *, grace: timedelta) -> None:
        """End it with all its descendants: asked first, killed after `grace`. An unknown key is no error."""
        ...

    async def forget(self, key: str) -> None:
        """Remove what is kept of an ended one. May be repeated."""
        ...

    async def kept(self) -> list[str]:
        """The keys of all that were started and not forgotten."""
        ...

    async def sweep(self, *, checks: bool = True) -> None:
        """End checks that a killed process left behind, and remove what it left half made."""
        ...

    async def tail(self, key: str) -> str:
        """The end of its output so far; empty for an unknown key."""
        ...
