"""Session providers: where agents and runs live, on this machine or on others."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.errors import Conflict, LampError, NotFound, Unavailable

GRACE = timedelta(seconds=5)


class SessionAlive(Conflict):
    def __init__(self, name: SessionName) -> None:
        super().__init__(f"Session {name} is already running.", hint="Stop it first, or let it be.")


class SessionUnknown(NotFound):
    def __init__(self, name: SessionName) -> None:
        super().__init__(f"There is no session {name}.", hint="`lamp session list` shows those there are.")


class StartFailed(LampError):
    """The program did not come up; `output` is the last of what it said."""

    def __init__(self, name: SessionName, why: str, *, output: str = "", hint: str = "") -> None:
        said = f" It said: {output.strip()[-500:]}" if output.strip() else ""
        super().__init__(f"Session {name} did not start: {why}.{said}", hint=hint)
        self.output = output


class StopFailed(LampError):
    def __init__(self, name: SessionName, why: str) -> None:
        super().__init__(f"Session {name} would not stop: {why}.", hint="Look at its processes; it is tried again.")


class NoInput(Conflict):
    def __init__(self, name: SessionName) -> None:
        super().__init__(f"Session {name} takes no input.", hint="It runs headless; start a new turn instead.")


class ProviderUnavailable(Unavailable):
    """What the provider needs is away or does not answer; not the fault of any one session."""


class SessionProvider(Protocol):
    """The sessions of one city. A session is the city's by the city id it was started with, never by its name.

    Names that are not there are no error where the wish is already true: stop, interrupt, nudge, send_keys,
    clear_scrollback and remove_meta of an unknown session do nothing.
    """

    async def start(self, spec: SessionSpec) -> Seen:
        """Start it and wait until it is ready; a dead session of that name is replaced, its metadata with it.

        Raises SessionAlive where one of that name lives, StartFailed where the program does not come up.
        """
        ...

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        """End the program and all its descendants: asked first, killed after `grace`. Nothing of it is left.

        Raises StopFailed where a process outlives even that.
        """
        ...

    async def interrupt(self, name: SessionName) -> None:
        """What Ctrl-C does."""
        ...

    async def nudge(self, name: SessionName, text: str) -> None:
        """Type `text` and Enter. Two nudges never mix. Raises NoInput for a session that reads nothing."""
        ...

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        """Press keys by their tmux names (`Enter`, `C-c`, `Down`), or type them as they stand; no Enter is added."""
        ...

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        """The last lines of its output or screen; all that is kept for 0. Empty for an unknown session."""
        ...

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        """What a person's terminal must run to see it. Raises SessionUnknown."""
        ...

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        """Raises SessionUnknown. Metadata lives and dies with the session."""
        ...

    async def get_meta(self, name: SessionName, key: str) -> str:
        """Empty where the session or the key is not there."""
        ...

    async def remove_meta(self, name: SessionName, key: str) -> None: ...

    async def seen(self) -> Mapping[SessionName, Seen]:
        """The state of all sessions of this city, at the cost of one look."""
        ...

    async def see(self, name: SessionName) -> Seen | None:
        """The state of one session of this city, at the cost of that one alone; None where there is none."""
        ...

    def ended(self) -> AsyncIterator[SessionName]:
        """Names of sessions whose program ended, as it happens, from this call on; called inside the running loop.

        A hint: what ended before, or while nobody listened, is found by `seen`.
        """
        ...

    async def clear_scrollback(self, name: SessionName) -> None: ...

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        """Copy a file or directory to `destination`, relative to its working directory. Raises SessionUnknown."""
        ...

    async def cleanup(self) -> None:
        """Housekeeping, called now and then: bound what is kept of outputs."""
        ...

    async def close(self) -> None:
        """Let go of watches and connections; the sessions live on."""
        ...


@dataclass(frozen=True)
class Output:
    """A part of a session's output. `base` is where it begins in the present file; below 0 in the one before it."""

    data: bytes
    base: int


@runtime_checkable
class KeepsOutput(Protocol):
    """A provider whose sessions' output can be read on from a place; that of others is read whole, at their end."""

    async def read(self, name: SessionName, position: int) -> Output:
        """What came after `position`, a bounded part of it. Empty where there is nothing more, or no session."""
        ...
