"""Agents that stand at a permission prompt of their program: found by their screens, told to people after a while."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lamplighter.domain.sessions.asking import LINES_READ, asked_on, asked_while_drawing
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import agent_of, is_runs
from lamplighter.domain.sessions.presets.catalogue import PROMPTS
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.sessions import Standing

QUIET = timedelta(seconds=3)
"""A screen that changed less long ago is not looked at: its program is at work."""
DRAWING_EVERY = timedelta(seconds=5)
"""How often the screen of a session is looked at that changes all the time: some programs draw while they ask."""
AT_ONCE = 8
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass
class PermissionPrompts:
    """Each silence of a session is looked at once, so that an agent at rest costs nothing."""

    provider: SessionProvider
    waiting: dict[SessionName, Standing] = field(default_factory=dict)
    """Those that stand at a prompt, and since when."""
    _looked: dict[SessionName, tuple[str, datetime | None]] = field(default_factory=dict)
    _drawing: dict[SessionName, datetime] = field(default_factory=dict)
    """When the screens of those that draw all the time were last looked at."""
    _told: frozenset[SessionName] | None = None

    async def look(self, sight: Mapping[SessionName, Seen], now: datetime) -> None:
        seen_by = {name: seen for name, seen in sight.items() if _may_ask(seen)}
        living = {name: seen for name, seen in seen_by.items() if _is_quiet(seen, now)}
        drawing = {name: seen for name, seen in seen_by.items() if name not in living}
        for gone in self._looked.keys() - living.keys():
            del self._looked[gone]
            self.waiting.pop(gone, None)
        for gone in self._drawing.keys() - drawing.keys():
            del self._drawing[gone]
            if gone not in living:
                self.waiting.pop(gone, None)
        fresh = [seen for name, seen in living.items() if self._looked.get(name) != _silence(seen)]
        due = [seen for name, seen in drawing.items() if now - self._drawing.get(name, _NEVER) >= DRAWING_EVERY]
        slots = asyncio.Semaphore(AT_ONCE)
        quiet, moving = (self._look_at(seen, slots) for seen in fresh), (self._glance(seen, slots, now) for seen in due)
        await asyncio.gather(*quiet, *moving)

    def news(self, wait: timedelta, now: datetime) -> Mapping[SessionName, Standing] | None:
        """Those that have stood at a prompt for so long; None if they are the same as when this was last asked."""
        due = {name: one for name, one in self.waiting.items() if now - one.since >= wait}
        if self._told == due.keys():
            return None
        self._told = frozenset(due)
        return due

    async def _look_at(self, seen: Seen, slots: asyncio.Semaphore) -> None:
        async with slots:
            what = asked_on(await self.provider.peek(seen.name, LINES_READ))
        self._looked[seen.name] = _silence(seen)
        if what and seen.last_activity is not None:
            self.waiting[seen.name] = Standing(agent_of(seen), what, seen.last_activity)
        else:
            self.waiting.pop(seen.name, None)

    async def _glance(self, seen: Seen, slots: asyncio.Semaphore, now: datetime) -> None:
        """Look at one that draws; it waits since it was first seen so."""
        async with slots:
            what = asked_while_drawing(await self.provider.peek(seen.name, LINES_READ), PROMPTS)
        self._drawing[seen.name] = now
        before = self.waiting.get(seen.name)
        if not what:
            self.waiting.pop(seen.name, None)
        elif before is None or before.what != what:
            self.waiting[seen.name] = Standing(agent_of(seen), what, now)


def _may_ask(seen: Seen) -> bool:
    """Whether it may stand at a prompt that nobody sees."""
    return seen.alive and not seen.attached and not is_runs(seen) and seen.last_activity is not None


def _silence(seen: Seen) -> tuple[str, datetime | None]:
    return seen.session_id, seen.last_activity


def _is_quiet(seen: Seen, now: datetime) -> bool:
    return seen.last_activity is not None and now - seen.last_activity >= QUIET
