"""Reads a session's new output line by line and records the events that its program's preset parses from it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from lamplighter.domain.runs.budget import Spent
from lamplighter.domain.sessions.circles import Circle, circle_of
from lamplighter.domain.sessions.model import SessionName
from lamplighter.domain.sessions.presets.troubles import Heard
from lamplighter.domain.sessions.transcript import Parsed, SessionEvent, Text
from lamplighter.kit.clock import Clock
from lamplighter.ports.secrets import NoSecrets, SecretSource
from lamplighter.ports.sessions import KeepsOutput, SessionProvider
from lamplighter.services.runs import transcripts
from lamplighter.store.tx import Store

LONGEST_LINE = 1024 * 1024
MOST_PARTS = 64
MOST_HELD = 256 * 1024


@dataclass
class Transcript:
    """The transcript of one session. `position` is where reading continues; it is stored too, for the next process."""

    store: Store
    clock: Clock
    provider: SessionProvider
    parse: Callable[[str], Parsed]
    run: str
    session: str
    name: SessionName
    position: int = 0
    spent: Spent = field(default_factory=Spent)
    heard: Heard | None = None
    """What the program said of failures, if it is known which one it is."""
    secrets: SecretSource = field(default_factory=NoSecrets)
    day: Callable[[], str] = lambda: ""
    """The day that what is used now counts for."""
    circle: Circle = field(default_factory=Circle)
    """How often the last call of a tool was made in a row."""
    silence: datetime | None = None
    """When it was last heard, in the silence whose end was looked at for a question."""
    log_read_at: datetime | None = None
    """When the program's own log was last looked at."""

    async def read(self, *, to_the_end: bool = False) -> None:
        """Record the whole lines that have arrived; at the session's end also a last line without a newline."""
        if not isinstance(self.provider, KeepsOutput):
            if to_the_end and self.position == 0:
                await self._keep(await self._whole(), 0, last=True)
            return
        for _ in range(MOST_PARTS if to_the_end else 1):
            if not await self._read_part(self.provider):
                break
        else:
            return
        if to_the_end:
            await self._read_part(self.provider, last=True)  # only now: a part may end in the middle of a line

    async def _read_part(self, provider: KeepsOutput, *, last: bool = False) -> bool:
        """False if nothing was recorded."""
        part, before = await provider.read(self.name, self.position), self.position
        if part.data:
            await self._keep(part.data, part.base, last=last)
        return self.position != before

    async def _whole(self) -> bytes:
        return (await self.provider.peek(self.name, 0)).encode()

    async def _keep(self, data: bytes, base: int, *, last: bool) -> None:
        used = len(data) if last else data.rfind(b"\n") + 1
        if not used and len(data) >= LONGEST_LINE:
            used = len(data)  # it is not waited for
        if not used:
            return
        read = read_lines(data[:used], self.parse, last=last)
        if not read.used:
            return
        after = max(base + read.used, 0)
        mask = await self.secrets.mask()
        events = [_masked(one, mask) for one in read.events]
        batch = transcripts.Batch(self.run, self.session, self.position, after, events, read.program, self.day())
        self.spent = await self.store.transact(transcripts.record, batch, self.clock.now())
        self.circle = circle_of(read.events, self.circle)
        self.position = after


def _masked(event: SessionEvent, mask: Callable[[str], str]) -> SessionEvent:
    texts = {key: mask(value) for key, value in vars(event).items() if isinstance(value, str)}
    made: SessionEvent = replace(event, **texts)  # type: ignore[arg-type]  # each field keeps its type
    return made


@dataclass(frozen=True)
class LinesRead:
    """The events of some lines; only the first `used` bytes are done with, the rest is to be read again."""

    events: tuple[SessionEvent, ...]
    program: str | None
    used: int


def read_lines(data: bytes, parse: Callable[[str], Parsed], *, last: bool) -> LinesRead:
    """Parse whole lines, joining the pieces of what the program says.

    Unless these are the `last` lines, pieces at their end are left unread until what is said is complete, so that a
    sentence does not fall apart where a reading happened to stop; more than MOST_HELD bytes are not left unread.
    """
    events: list[SessionEvent] = []
    program: str | None = None
    at = held_from = held_events = 0
    joining = False
    for raw in data.split(b"\n"):
        parsed = parse(raw.decode(errors="replace").replace("\0", "\ufffd"))
        program = parsed.session_id or program
        if parsed.events:
            said = events[-1] if joining and parsed.is_piece else None
            if isinstance(said, Text):
                events[-1] = Text(said.text + "".join(one.text for one in parsed.events if isinstance(one, Text)))
            else:
                held_from, held_events = at, len(events)
                events += parsed.events
            joining = parsed.is_piece
        at += len(raw) + 1
    if joining and not last and at - held_from <= MOST_HELD:
        return LinesRead(tuple(events[:held_events]), program, held_from)
    return LinesRead(tuple(events), program, len(data))
