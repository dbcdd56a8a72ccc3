"""A day of Socket Mode: sockets are cut, what was sent over them is sent again, and messages come in another order."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.kit.clock import SystemClock
from lamplighter.store.tx import Store, Tx
from lamplighter.testing.slack_server import SlackServer
from lamplighter.testing.slack_shapes import BOT_USER, envelope

WITHIN = 60


class ShortPauses(SystemClock):
    """A clock on which pauses are a hundred times as short."""

    async def wait(self, wake: asyncio.Event, *, at_most: timedelta) -> bool:
        return await super().wait(wake, at_most=at_most / 100)


@dataclass
class Day:
    """What was said in the day, and how often sockets were cut."""

    slack: SlackServer
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    mentions: int = 0
    replies: list[str] = field(default_factory=list)
    cut: int = 0
    _sent: int = 0

    async def pass_by(self, cuts: int) -> None:
        """Say something between the cuts, and wait until all of it is acknowledged."""
        while self.cut < cuts:
            await asyncio.to_thread(self._say)
            await self._until(lambda: self.slack.sockets > 0)
            silently, most = self.chance.random() < 0.5, self.chance.choice((1, 2))
            self.cut += await asyncio.to_thread(self.slack.cut, silently=silently, most=most)
        await self._until(lambda: not self.slack.unacknowledged)

    async def _until(self, holds: Callable[[], bool]) -> None:
        await asyncio.to_thread(self.slack.wait_until, holds, within=WITHIN)

    def _say(self) -> None:
        """A mention, as the two events that Slack makes of it, and a reply; in any order, some of them twice."""
        self.mentions += 1
        text = f"{self.mentions} and more"
        first = self.slack.say("C1", "U1", f"<@{BOT_USER}> number {self.mentions}")
        events = [first, first | {"type": "app_mention"}, self.slack.say("C1", "U1", text, thread=first["ts"])]
        self.replies.append(text)
        for event in self.chance.sample(events, k=3) + self.chance.sample(events, k=1):
            self._sent += 1
            payload: dict[str, Any] = envelope(event, f"Ev{first['ts']}{event['type']}{event['ts']}")
            self.slack.deliver("events_api", payload, f"env-{self._sent}")


async def told(store: Store) -> tuple[int, list[str]]:
    """How many conversations were begun, and what was said in them after that."""

    def look(tx: Tx) -> tuple[int, list[str]]:
        runs = len(tx.db.rows("SELECT id FROM runs", {}))
        assert runs == len(tx.db.rows("SELECT id FROM slack_threads", {}))
        return runs, [str(row["text"]) for row in tx.db.rows("SELECT text FROM messages", {})]

    return await store.read(look)
