"""Types into panes so that text arrives complete, and looks at the screen whether it was taken."""

import asyncio
import os
import termios
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.adapters.sessions.tmux.client import TmuxClient
from lamplighter.adapters.sessions.tmux.words import THEN
from lamplighter.domain.sessions.model import Readiness
from lamplighter.domain.sessions.screens import InputRow, is_ready, pastes_shown, stands
from lamplighter.kit.clock import Clock

_PLAIN_TEXT = 500  # longer text, and text of several lines, is sent as one bracketed paste
_BEFORE_ENTER = timedelta(milliseconds=300)  # full-screen programs take an Enter right after text for a newline
_POLL = timedelta(milliseconds=40)
_MOST_LINES = 50


class NotTaken(Exception):
    """The program did not take the text; the message says what was seen instead."""


@dataclass(frozen=True)
class Keyboard:
    """Every method raises TmuxAbsent when the pane is gone."""

    tmux: TmuxClient
    clock: Clock
    shown_within: timedelta = timedelta(seconds=20)
    taken_within: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0)  # seconds to wait after each Enter

    async def send(self, pane: str, text: str, ready: Readiness) -> None:
        """Type the text and press Enter, once the program reads its input. Raises NotTaken.

        A program that has its terminal collect lines gets them from the system, whatever its screen shows. One that
        edits its input itself may do so only while it waits for some, and lose what comes in between: `ready` tells
        such a program from the other kind.
        """
        deadline = self.clock.monotonic() + self.shown_within.total_seconds()
        while await self._collects_lines(pane):
            if not ready.reads_screen or is_ready("\n".join((await self._row(pane)).screen), ready):
                await self.type(pane, text)
                await self.press(pane, "Enter")
                return
            if self.clock.monotonic() >= deadline:
                raise NotTaken("it is busy and does not read its input")
            await self.clock.wait(asyncio.Event(), at_most=_POLL)
        await self._send_seen(pane, text)

    async def _send_seen(self, pane: str, text: str) -> None:
        """Type the text and press Enter until it has left the input row. Raises NotTaken.

        Enter is pressed only once the text is seen in the input row: a program that shows a question instead would take
        it as the answer. Text that was typed but not taken is removed again, so that it does not mix with the next.
        """
        before = pastes_shown(await self._row(pane))
        await self.type(pane, text)

        def shown(row: InputRow) -> bool:
            return row.dead or stands(text, row) or pastes_shown(row) > before

        if not await self._until(pane, shown, self.shown_within):
            raise NotTaken("the text that was typed did not appear in its input row")
        await self.clock.wait(asyncio.Event(), at_most=_BEFORE_ENTER)
        for seconds in self.taken_within:
            await self.tmux.call("send-keys", "-t", pane, "Enter")
            if await self._until(pane, lambda row: row.dead or not shown(row), timedelta(seconds=seconds)):
                return
        await self.clear(pane, text)
        raise NotTaken("the text stayed in its input row, however often Enter was pressed; it was removed again")

    async def type(self, pane: str, text: str) -> None:
        await self.paste(pane, text, whole="\n" in text or len(text) > _PLAIN_TEXT)

    async def paste(self, pane: str, text: str, *, whole: bool = True) -> None:
        """Paste from a buffer, not as a word of a command, so that no length, quote, semicolon or newline matters.

        `whole`: a program that asked for it is told that it is a paste.
        """
        buffer = f"lamp-{pane.lstrip('%')}"
        await self.tmux.call(
            "if-shell", "-F", "-t", pane, "#{pane_in_mode}", f"send-keys -t {pane} -X cancel",
            THEN, "load-buffer", "-b", buffer, "-",
            THEN, "paste-buffer", "-d", "-b", buffer, *(("-p",) if whole else ()), "-t", pane,
            stdin=text.encode(),
        )  # fmt: skip

    async def clear(self, pane: str, text: str) -> None:
        """Remove text that stands in the input row, line by line from its end."""
        lines = min(text.count("\n") + 1, _MOST_LINES)
        await self.press(pane, *(["C-u", "BSpace"] * (lines - 1)), "C-u")

    async def press(self, pane: str, *keys: str) -> None:
        await self.tmux.call("send-keys", "-t", pane, "--", *keys)

    async def holds(self, pane: str, text: str) -> bool:
        """Whether the text stands in the input row."""
        return stands(text, await self._row(pane))

    async def _until(self, pane: str, seen: Callable[[InputRow], bool], within: timedelta) -> bool:
        """Whether it is seen within that time, in two looks in a row: a program may be in the middle of drawing."""
        deadline = self.clock.monotonic() + within.total_seconds()
        times = 0
        while times < 2:
            times = times + 1 if seen(await self._row(pane)) else 0
            if times < 2 and self.clock.monotonic() >= deadline:
                return False
            await self.clock.wait(asyncio.Event(), at_most=_POLL)
        return True

    async def _collects_lines(self, pane: str) -> bool:
        path = (await self.tmux.call("display-message", "-p", "-t", pane, "#{pane_tty}")).strip()
        return await asyncio.to_thread(_is_canonical, path)

    async def _row(self, pane: str) -> InputRow:
        said = await self.tmux.call(
            "display-message", "-p", "-t", pane, "#{cursor_x},#{cursor_y},#{pane_dead}",
            THEN, "capture-pane", "-p", "-t", pane,
        )  # fmt: skip
        where, _, screen = said.partition("\n")
        column, row, dead = (int(part or 0) for part in where.strip().split(","))
        return InputRow(tuple(screen.split("\n")), row, column, dead=bool(dead))


def _is_canonical(path: str) -> bool:
    """Whether the terminal at `path` hands out its input by lines; False when that cannot be asked."""
    try:
        terminal = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        local_modes: int = termios.tcgetattr(terminal)[3]
    except termios.error:
        return False
    finally:
        os.close(terminal)
    return bool(local_modes & termios.ICANON)
