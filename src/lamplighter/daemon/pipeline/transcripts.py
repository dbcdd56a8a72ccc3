"""Reads a session's new output line by line and records the events that its program's preset parses from it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lamplighter.domain.runs.budget import Spent
from lamplighter.domain.sessions.model import SessionName
from lamplighter.domain.sessions.transcript import Parsed, SessionEvent
from lamplighter.kit.clock import Clock
from lamplighter.ports.sessions import KeepsOutput, SessionProvider
from lamplighter.services.runs import transcripts
from lamplighter.store.tx import Store

LONGEST_LINE = 1024 * 1024
MOST_PARTS = 64


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

    async def read(self, *, to_the_end: bool = False) -> None:
        """Record the whole lines that have arrived; at the session's end also a last line without a newline."""
        if not isinstance(self.provider, KeepsOutput):
            if to_the_end and self.position == 0:
                await self._keep(await self._whole(), 0, last=True)
            return
        for _ in range(MOST_PARTS if to_the_end else 1):
            part = await self.provider.read(self.name, self.position)
            before = self.position
            if part.data:
                await self._keep(part.data, part.base, last=to_the_end)
            if self.position == before:
                return

    async def _whole(self) -> bytes:
        return (await self.provider.peek(self.name, 0)).encode()

    async def _keep(self, data: bytes, base: int, *, last: bool) -> None:
        used = len(data) if last or len(data) >= LONGEST_LINE else data.rfind(b"\n") + 1
        if not used:
            return
        events: list[SessionEvent] = []
        program: str | None = None
        for line in data[:used].decode(errors="replace").replace("\0", "\ufffd").split("\n"):
            parsed = self.parse(line)
            events += parsed.events
            program = parsed.session_id or program
        after = max(base + used, 0)
        batch = transcripts.Batch(self.run, self.session, self.position, after, events, program)
        self.spent = await self.store.transact(transcripts.record, batch, self.clock.now())
        self.position = after
