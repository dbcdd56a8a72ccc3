"""Types into panes so that text arrives complete and Enter is accepted."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.adapters.sessions.tmux.client import TmuxClient
from lamplighter.adapters.sessions.tmux.words import THEN
from lamplighter.kit.clock import Clock

_PLAIN_TEXT = 500  # longer text, and text of several lines, is sent as one bracketed paste
_BEFORE_ENTER = timedelta(milliseconds=300)  # full-screen programs take an Enter right after text for a newline
_ENTER_TRIES = 3
_SCREEN_CHANGES = timedelta(milliseconds=500)
_SCREEN_POLL = timedelta(milliseconds=25)


@dataclass(frozen=True)
class Keyboard:
    """Every method raises TmuxAbsent when the pane is gone."""

    tmux: TmuxClient
    clock: Clock

    async def type(self, pane: str, text: str) -> None:
        """Paste from a buffer, not as a word of a command, so that no length, quote, semicolon or newline matters."""
        buffer = f"lamp-{pane.lstrip('%')}"
        whole = ("-p",) if "\n" in text or len(text) > _PLAIN_TEXT else ()
        await self.tmux.call(
            "if-shell", "-F", "-t", pane, "#{pane_in_mode}", f"send-keys -t {pane} -X cancel",
            THEN, "load-buffer", "-b", buffer, "-",
            THEN, "paste-buffer", "-d", "-b", buffer, *whole, "-t", pane,
            stdin=text.encode(),
        )  # fmt: skip
        await self.clock.wait(asyncio.Event(), at_most=_BEFORE_ENTER)

    async def press(self, pane: str, *keys: str) -> None:
        await self.tmux.call("send-keys", "-t", pane, "--", *keys)

    async def enter(self, pane: str) -> None:
        """Press Enter up to three times until the screen changes: some programs lose one that comes too early."""
        for _ in range(_ENTER_TRIES):
            before = await self._screen(pane)
            await self.tmux.call("send-keys", "-t", pane, "Enter")
            deadline = self.clock.monotonic() + _SCREEN_CHANGES.total_seconds()
            while self.clock.monotonic() < deadline:
                if await self._screen(pane) != before:
                    return
                await self.clock.wait(asyncio.Event(), at_most=_SCREEN_POLL)

    async def _screen(self, pane: str) -> str:
        return await self.tmux.call(
            "display-message", "-p", "-t", pane, "#{cursor_x},#{cursor_y},#{history_size},#{pane_dead}",
            THEN, "capture-pane", "-p", "-t", pane,
        )  # fmt: skip
