"""Shell commands of automations: started so that they outlive this process, and ended with all their descendants."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record

OUTPUT_BYTES = 64 * 1024
"""How many bytes are kept of a command's output, counted from its end."""


@record
class Command:
    """`key` identifies this one start permanently.

    `files` maps environment variables to contents: each content is written to a file, and the variable holds its path.
    """

    key: str
    line: str
    work_dir: str
    limit: timedelta
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@record
class CommandEnded:
    """`exit_code` is None when the command was ended at its limit, or is unknown because the machine went down."""

    exit_code: int | None
    started_at: datetime
    duration: timedelta
    output: str = ""
    timed_out: bool = False


class CommandNotStarted(LampError):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"The command of {key} did not start: {why}.", hint="Nothing of it ran.")


class CommandNotStopped(LampError):
    def __init__(self, key: str) -> None:
        super().__init__(
            f"Processes of {key} would not end.", hint="Look at them with `ps`; they are tried again at the next start."
        )


class NoDirectory(CommandNotStarted):
    """The command's working directory does not exist."""


class CommandRunner(Protocol):
    async def run(self, command: Command) -> CommandEnded:
        """Start the command, or find the one already started under that key, and wait for its end.

        Until `forget`, a key starts one command only, even if this process dies in between. At its limit the command
        is ended with all its descendants. Cancelling the wait leaves it running. Raises CommandNotStarted, NoDirectory.
        """
        ...

    async def check(self, command: Command) -> CommandEnded:
        """Run a short command that is not resumed after a restart; its output is not kept. Cancelling ends it."""
        ...

    async def stop(self, key: str, *, grace: timedelta) -> None:
        """Ask the command and all its descendants to end, and kill them after `grace`. An unknown key is no error.

        Raises CommandNotStopped if one is left even then.
        """
        ...

    async def forget(self, key: str) -> None:
        """Remove the record and output of an ended command. May be repeated."""
        ...

    async def kept(self) -> list[str]:
        """The keys of all commands that were started and not forgotten."""
        ...

    async def sweep(self, *, checks: bool = True) -> None:
        """Remove half-made records of killed processes and end the checks they left running.

        `checks=False` ends no checks: they may belong to another live process of the node.
        """
        ...

    async def tail(self, key: str) -> str:
        """The end of the command's output so far; empty for an unknown key."""
        ...
