"""The terminals of agents that people watch in the console: who watches, who types, and what the screen shows.

A screen is looked at once for all who watch it, a few times a second and only while somebody does. Each of them is told
that there is news and takes the newest screen when they can: a flood of output or a slow reader costs no memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lamplighter.domain.access import Forbidden
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Conflict, LampError, NotFound, Unavailable
from lamplighter.kit.tasks import spawn
from lamplighter.ports.sessions import HasTerminal, Screen

BETWEEN = timedelta(milliseconds=100)
"""The time between two looks at a screen."""
AFTER_TROUBLE = timedelta(seconds=2)
MASK_LASTS = timedelta(seconds=2)
MOST_VIEWERS = 32
"""Of all terminals of the process together."""

Mask = Callable[[str], str]


class TooManyWatch(Unavailable):
    def __init__(self) -> None:
        super().__init__(
            f"{MOST_VIEWERS} terminals are watched already.", hint="Close some, or look at its last lines instead."
        )


class NotTyping(Forbidden):
    def __init__(self) -> None:
        LampError.__init__(self, "You only watch this terminal.", hint="Take over first.")


@dataclass(eq=False)
class Viewer:
    """Somebody who watches; `news` is set when there is something that they have not seen."""

    id: str
    who: str
    session: SessionName
    news: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Present:
    """One of those who watch, as the others see them."""

    id: str
    who: str
    typing: bool


@dataclass(eq=False)
class Terminal:
    """The terminal of one session while somebody watches it."""

    provider: HasTerminal
    viewers: dict[str, Viewer] = field(default_factory=dict)
    typist: str | None = None
    screen: Screen | None = None
    looked: bool = False
    """Whether it was looked at: before that, no screen does not mean that nothing runs."""
    trouble: str = ""
    typed: asyncio.Event = field(default_factory=asyncio.Event)
    looking: "asyncio.Task[None] | None" = None

    @property
    def present(self) -> tuple[Present, ...]:
        return tuple(Present(one.id, one.who, one.id == self.typist) for one in self.viewers.values())

    def tell(self) -> None:
        for viewer in self.viewers.values():
            viewer.news.set()


class Terminals:
    """`mask` returns a function that masks the secrets of the city."""

    def __init__(self, clock: Clock, mask: Callable[[], Awaitable[Mask]]) -> None:
        self._clock = clock
        self._ask_mask = mask
        self._open: dict[SessionName, Terminal] = {}

    def join(self, provider: object, session: SessionName, viewer: str, who: str) -> Viewer:
        """Begin to watch. Raises Conflict where sessions have no terminal, TooManyWatch."""
        if not isinstance(provider, HasTerminal):
            raise Conflict("Its session has no terminal.", hint="Sessions of tmux have one.")
        if sum(len(one.viewers) for one in self._open.values()) >= MOST_VIEWERS:
            raise TooManyWatch
        terminal = self._open.setdefault(session, Terminal(provider))
        joined = Viewer(viewer, who, session)
        terminal.viewers[viewer] = joined
        terminal.tell()
        if terminal.looking is None or terminal.looking.done():
            terminal.looking = spawn(self._look(session, terminal), name=f"terminal {session}")
        return joined

    async def leave(self, viewer: Viewer) -> None:
        terminal = self._open.get(viewer.session)
        if terminal is None or terminal.viewers.pop(viewer.id, None) is None:
            return
        if terminal.typist == viewer.id:
            self._release(viewer.session, terminal)
        terminal.tell()
        if not terminal.viewers:
            del self._open[viewer.session]
            if terminal.looking is not None:
                terminal.looking.cancel()
                await asyncio.wait({terminal.looking})

    def of(self, viewer: Viewer) -> Terminal:
        """Raises NotFound after `leave`."""
        found = self._open.get(viewer.session)
        if found is None or viewer.id not in found.viewers:
            raise NotFound("That terminal is not watched any more.", hint="Load the page again.")
        return found

    def take(self, session: SessionName, viewer: str, who: str) -> str | None:
        """From now on this viewer, who is `who`, types; returns who did before.

        Raises NotFound, Conflict if nothing runs in it.
        """
        terminal = self._open.get(session)
        if terminal is None or viewer not in terminal.viewers or terminal.viewers[viewer].who != who:
            raise NotFound(
                f"{who} does not watch it as {viewer}.", hint="The console names a watcher when its page is open."
            )
        if terminal.screen is None:
            raise Conflict("Nothing runs in its terminal.", hint="Wait until it runs.")
        before = terminal.viewers[terminal.typist].who if terminal.typist not in {None, viewer} else None
        terminal.typist = viewer
        terminal.provider.occupy(session, by_person=True)
        terminal.tell()
        return before

    def let_go(self, session: SessionName, viewer: str | None) -> str | None:
        """Nobody types any more; returns who did. With `viewer` only if it was that one."""
        terminal = self._open.get(session)
        if terminal is None or terminal.typist is None or viewer not in {None, terminal.typist}:
            return None
        who = terminal.viewers[terminal.typist].who
        self._release(session, terminal)
        terminal.tell()
        return who

    async def type(self, viewer: Viewer, data: str, *, paste: bool) -> None:
        """Raises NotTyping, NotFound, ProviderUnavailable."""
        terminal = self.of(viewer)
        if terminal.typist != viewer.id:
            raise NotTyping
        if paste:
            await terminal.provider.terminal_paste(viewer.session, data)
        else:
            await terminal.provider.terminal_keys(viewer.session, data.encode("utf-8", "replace"))
        terminal.typed.set()

    def present(self, session: SessionName) -> tuple[Present, ...]:
        found = self._open.get(session)
        return () if found is None else found.present

    async def close(self) -> None:
        for terminal in list(self._open.values()):
            for viewer in list(terminal.viewers.values()):
                await self.leave(viewer)

    def _release(self, session: SessionName, terminal: Terminal) -> None:
        terminal.typist = None
        terminal.provider.occupy(session, by_person=False)

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _look(self, session: SessionName, terminal: Terminal) -> None:
        mask: Mask | None = None
        asked = self._clock.monotonic()
        while terminal.viewers:
            terminal.typed.clear()
            pause = BETWEEN
            try:
                if mask is None or self._clock.monotonic() - asked >= MASK_LASTS.total_seconds():
                    mask, asked = await self._ask_mask(), self._clock.monotonic()
                screen = await terminal.provider.terminal_screen(session)
                self._see(session, terminal, None if screen is None else masked(screen, mask), "")
            except LampError as error:
                self._see(session, terminal, terminal.screen, error.message)
                pause = AFTER_TROUBLE
            except Exception as error:  # noqa: BLE001  those who watch are told, the log gets the rest
                log.get().error("terminal.failed", session=session, exc_info=error)
                self._see(session, terminal, terminal.screen, "Its screen cannot be looked at.")
                pause = AFTER_TROUBLE
            await self._clock.wait(terminal.typed, at_most=pause)

    def _see(self, session: SessionName, terminal: Terminal, screen: Screen | None, trouble: str) -> None:
        if terminal.looked and screen == terminal.screen and trouble == terminal.trouble:
            return
        other = terminal.screen is not None and (screen is None or screen.session_id != terminal.screen.session_id)
        if other and terminal.typist is not None:
            self._release(session, terminal)  # what was typed was meant for the session that ended
        terminal.looked, terminal.screen, terminal.trouble = True, screen, trouble
        terminal.tell()


def masked(screen: Screen, mask: Mask) -> Screen:
    """Where a secret is on the screen, the screen is shown without colours: they could stand inside the secret, and it
    could go over the edge into the next row.
    """
    text = mask(screen.text)
    if text == screen.text and all(mask(row) == row for row in screen.rows):
        return screen
    rows = [
        line[at : at + screen.columns]
        for line in text.split("\n")
        for at in range(0, max(len(line), 1), screen.columns)
    ]
    kept = (*rows, *([""] * len(screen.rows)))[: len(screen.rows)]
    return replace(screen, rows=kept, text=text)


def changed_rows(before: Screen | None, now: Screen) -> Mapping[int, str]:
    """The rows that differ, by their number; all of them where the size differs."""
    if before is None or (before.columns, len(before.rows)) != (now.columns, len(now.rows)):
        return dict(enumerate(now.rows))
    return {at: row for at, row in enumerate(now.rows) if row != before.rows[at]}
