"""A pane as a terminal in a browser: its screen with colours and cursor, and keys as the terminal sends them."""

import contextlib
import re
from dataclasses import dataclass

from lamplighter.adapters.sessions.tmux.client import TmuxAbsent, TmuxClient
from lamplighter.adapters.sessions.tmux.control import LineLost
from lamplighter.adapters.sessions.tmux.keyboard import Keyboard
from lamplighter.adapters.sessions.tmux.sight import TmuxSight
from lamplighter.adapters.sessions.tmux.words import THEN
from lamplighter.domain.sessions.model import SessionName
from lamplighter.ports.sessions import ProviderUnavailable, Screen

_FORMAT = (
    "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag} #{keypad_cursor_flag} #{session_attached} "
    "#{pane_dead}"
)
_NUMBERS = 8
_COLOURS = re.compile(r"\x1b\[([0-9;:]*)m")
_STRANGE = re.compile(r"\x1b\].*?(?:\x1b\\|\x07)|\x1b(?!\[[0-9;:]*m)|[\x00-\x0d\x10-\x1a\x1c-\x1f\x7f\x80-\x9f]")
"""All that is neither text, nor a colour, nor the change to line-drawing letters and back (SO, SI)."""


@dataclass(frozen=True)
class TmuxTerminal:
    tmux: TmuxClient
    sight: TmuxSight
    keyboard: Keyboard

    async def screen(self, name: SessionName) -> Screen | None:
        """None if it has no session, or its program has ended."""
        pane = await self.sight.pane(name)
        if pane is None or pane.dead:
            return None
        with contextlib.suppress(TmuxAbsent):
            said = await self.tmux.call(
                "display-message", "-p", "-t", pane.id, _FORMAT,
                THEN, "capture-pane", "-p", "-e", "-N", "-t", pane.id,
                THEN, "capture-pane", "-p", "-J", "-t", pane.id,
            )  # fmt: skip
            return _screen(said, pane.session_id)
        return None

    async def send(self, name: SessionName, data: bytes) -> None:
        """Bytes as a terminal sends them for keys; nothing is added or sent twice. Raises ProviderUnavailable."""
        pane = await self.sight.pane(name)
        if pane is None or pane.dead or not data:
            return
        with contextlib.suppress(TmuxAbsent):
            try:
                await self.tmux.call_once(
                    "if-shell", "-F", "-t", pane.id, "#{pane_in_mode}", f"send-keys -t {pane.id} -X cancel",
                    THEN, "send-keys", "-t", pane.id, "-H", *(f"{one:02x}" for one in data),
                )  # fmt: skip
            except LineLost as error:
                raise ProviderUnavailable(
                    "The connection to tmux broke: whether the keys arrived is unknown.",
                    hint="Look at the screen first.",
                ) from error

    async def paste(self, name: SessionName, text: str) -> None:
        """As one paste if the program asked to be told pastes from typing."""
        pane = await self.sight.pane(name)
        if pane is None or pane.dead or not text:
            return
        with contextlib.suppress(TmuxAbsent):
            await self.keyboard.paste(pane.id, text)


def _screen(said: str, session_id: str) -> Screen | None:
    first, _, rest = said.partition("\n")
    numbers = [int(one) if one.isdigit() else 0 for one in first.split(" ")]
    if len(numbers) != _NUMBERS or numbers[-1]:
        return None
    columns, height, x, y, cursor, application, attached, _dead = numbers
    lines = rest.split("\n")
    return Screen(
        session_id=session_id,
        columns=columns,
        rows=independent(lines[:height]),
        text="\n".join(lines[height:]).rstrip("\n"),
        cursor=(x, y),
        cursor_shown=bool(cursor),
        application_keys=bool(application),
        attached=attached,
    )


def independent(lines: list[str]) -> tuple[str, ...]:
    """Each row with the colours that it begins with, which tmux writes only where they change."""
    found: list[str] = []
    carried: list[str] = []
    for line in lines:
        row = _STRANGE.sub("", line)
        found.append("".join(f"\x1b[{one}m" for one in carried) + row)
        for match in _COLOURS.finditer(row):
            said = match[1]
            if said in {"", "0"}:
                carried = []
            elif said.startswith("0;"):
                carried = [said]
            elif said not in carried:
                carried = [*carried, said]
            else:
                carried = [*(one for one in carried if one != said), said]
    return tuple(found)
