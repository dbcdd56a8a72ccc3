"""Session providers: they run the sessions of agents and runs, on this machine or on others."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.errors import Conflict, LampError, NotFound, Unavailable
from lamplighter.kit.records import record

GRACE = timedelta(seconds=5)


class SessionAlive(Conflict):
    def __init__(self, name: SessionName) -> None:
        super().__init__(f"Session {name} is already running.", hint="Stop it first, or let it be.")


class SessionUnknown(NotFound):
    def __init__(self, name: SessionName) -> None:
        super().__init__(f"There is no session {name}.", hint="`lamp session list` shows those there are.")


class StartFailed(LampError):
    """The program did not start; `output` is the end of its output."""

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


class NotDelivered(LampError):
    """A nudge did not arrive."""

    def __init__(self, name: SessionName, why: str) -> None:
        super().__init__(
            f"The message did not reach session {name}: {why}.",
            hint="`lamp agent peek` shows its screen; send the message again when it waits for input.",
        )


class ProviderUnavailable(Unavailable):
    """Something the provider needs is missing or does not answer; no single session is at fault."""


class SessionProvider(Protocol):
    """The sessions of one city. A session belongs to a city by the city id it was started with, never by its name.

    For an unknown session stop, interrupt, nudge, send_keys, clear_scrollback and remove_meta do nothing and raise
    nothing.
    """

    async def start(self, spec: SessionSpec) -> Seen:
        """Start the session and wait until it is ready; replace a dead session of that name, with its metadata.

        Raises SessionAlive when a session of that name is alive, StartFailed when the program does not start.
        """
        ...

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        """Ask the program and all its descendants to end, kill them after `grace`, and remove the session.

        Raises StopFailed when a process survives the kill.
        """
        ...

    async def interrupt(self, name: SessionName) -> None:
        """Interrupt the program as Ctrl-C does."""
        ...

    async def nudge(self, name: SessionName, text: str) -> None:
        """Type `text` and Enter. Concurrent nudges never mix.

        Raises NoInput for a session that reads no input, and NotDelivered when the provider can tell that the program
        did not take the text.
        """
        ...

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        """Press keys by their tmux names (`Enter`, `C-c`, `Down`) or type text literally; no Enter is added."""
        ...

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        """The last `lines` lines of its output or screen; 0 means all that is kept. Empty for an unknown session."""
        ...

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        """The command that a person's terminal runs to see the session. Raises SessionUnknown."""
        ...

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        """Raises SessionUnknown. Metadata is removed with its session."""
        ...

    async def get_meta(self, name: SessionName, key: str) -> str:
        """Empty when the session or the key does not exist."""
        ...

    async def remove_meta(self, name: SessionName, key: str) -> None: ...

    async def seen(self) -> Mapping[SessionName, Seen]:
        """The state of all sessions of this city, found by a single query of the provider."""
        ...

    async def see(self, name: SessionName) -> Seen | None:
        """The state of one session of this city, without looking at the others; None when there is none."""
        ...

    def ended(self) -> AsyncIterator[SessionName]:
        """Yield the names of sessions whose program ends from this call on. Call it inside the running loop.

        Only a hint: programs that ended before, or while nothing listened, are found by `seen`.
        """
        ...

    async def clear_scrollback(self, name: SessionName) -> None: ...

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        """Copy a file or directory to `destination` in the session's working directory. Raises SessionUnknown."""
        ...

    async def cleanup(self) -> None:
        """Limit how much output is kept, and remove what killed processes left; called periodically and by a stop."""
        ...

    async def close(self) -> None:
        """Release watches and connections; the sessions keep running."""
        ...


@runtime_checkable
class Speaks(Protocol):
    """A provider that tells runs to agents of the city."""

    async def not_now(self, session: SessionName, run: str) -> str:
        """Why the run cannot be told to the agent of that session now; empty if it can."""
        ...


@runtime_checkable
class NudgesLate(Protocol):
    """A provider that can wait for a program that did not become ready in time."""

    async def nudge_when_ready(self, spec: SessionSpec, session_id: str) -> str | None:
        """Type the nudge of its start as soon as the program is ready and nobody is attached to it.

        Why it did not arrive, empty if it did; None when that start of the session is over before.
        """
        ...


@record
class Output:
    """A part of a session's output. `base` is its offset in the current file; below 0 it begins in the older one."""

    data: bytes
    base: int


@runtime_checkable
class KeepsOutput(Protocol):
    """A provider that can read output from a given position; with other providers output is read whole, at the end."""

    async def read(self, name: SessionName, position: int) -> Output:
        """The output after `position`, up to a limit. Empty when there is no more output or no such session."""
        ...


@record
class Screen:
    """What a session's terminal shows now."""

    session_id: str
    columns: int
    rows: tuple[str, ...]
    """Each with the escape sequences of its colours, independent of the rows before it."""
    text: str
    """The same without colours; a line that was broken at the edge is one line."""
    cursor: tuple[int, int]
    """Column and row, from 0."""
    cursor_shown: bool
    application_keys: bool
    """Whether the program asked for the other sequences of the cursor keys."""
    attached: int
    """How many terminals are attached to the session."""


@runtime_checkable
class HasTerminal(Protocol):
    """A provider whose sessions have a terminal that can be shown and typed into."""

    async def terminal_screen(self, name: SessionName) -> Screen | None:
        """None if there is no such session, or its program has ended."""
        ...

    async def terminal_keys(self, name: SessionName, data: bytes) -> None:
        """Send bytes as a terminal sends them for keys. Does nothing where no program runs."""
        ...

    async def terminal_paste(self, name: SessionName, text: str) -> None:
        """Paste a text, without Enter. Does nothing where no program runs."""
        ...

    def occupy(self, name: SessionName, *, by_person: bool) -> None:
        """Whether a person is at its keyboard: then it is seen as attached."""
        ...
