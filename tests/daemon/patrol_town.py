"""A city with its patrol on any session provider, looked after one pass at a time."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.workshop import FileWorkshop
from lamplighter.adapters.processes.pool_check import ShellPoolCheck
from lamplighter.adapters.sessions.fake import FakeProvider, FakeWorld
from lamplighter.adapters.sessions.local.provider import SubprocessProvider
from lamplighter.adapters.sessions.tmux.provider import TmuxProvider
from lamplighter.daemon.patrol.history import PatrolHistory, Where
from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.domain.city.wanted import roster
from lamplighter.domain.events import Event, EventFilter
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.work import OwnWork
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store
from lamplighter.store.url import SqliteUrl, migrate, open_store
from lamplighter.testing.puppets import until

HEAD = '[workspace]\nname = "town"\n'
# It prints what it is told and leaves with 3; until then it lives.
FRAGILE = """start_command = '''while read -r line; do echo "$line"; exit 3; done'''\n"""
LASTING = 'start_command = "sleep 600"\n'
PROVIDERS = ("fake", "subprocess", "tmux")


class ShiftedClock(SystemClock):
    """The system's clock, moved on by hand; `set_back` moves only the wall clock, as a person or a time server may."""

    def __init__(self) -> None:
        self.shift = timedelta(0)
        self.back = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.shift - self.back

    def monotonic(self) -> float:
        return super().monotonic() + self.shift.total_seconds()

    def advance(self, **by: float) -> None:
        self.shift += timedelta(**by)

    def set_back(self, **by: float) -> None:
        self.back += timedelta(**by)


class Town:
    def __init__(self, root: Path, kind: str, store: Store) -> None:
        self.root = root
        self.kind = kind
        self.store = store
        self.clock = ShiftedClock()
        self.ids = IdSource(self.clock)
        self.city_id = f"cty_{os.urandom(6).hex()}"
        self.world = FakeWorld()
        self.check = ShellPoolCheck(dict(os.environ), limit=timedelta(seconds=20))
        self._opened: list[SessionProvider] = []
        self.provider = self.open()
        self.patrol: Patrol = None  # type: ignore[assignment]  # made by `declare`

    def open(self) -> Any:
        provider = self._open()
        self._opened.append(provider)
        return provider

    def _open(self) -> SessionProvider:
        if self.kind == "fake":
            return FakeProvider(self.clock, self.ids, city=self.city_id, world=self.world)
        if self.kind == "subprocess":
            return SubprocessProvider(self.root / ".gc/sessions", city=self.city_id, clock=self.clock, ids=self.ids)
        return TmuxProvider(
            self.root / ".gc/tmux", self.root / "s", city=self.city_id, clock=self.clock, ids=self.ids,
            environ=os.environ,
        )  # fmt: skip

    # ── what a person does ────────────────────────────────────────────────────────────────────────────────────────

    def declare(self, text: str, head: str = HEAD) -> None:
        """Another city.toml; the patrol goes on with what it remembers."""
        (self.root / "city.toml").write_text(head + text)
        known = roster(load_city(self.root, env={}))
        if self.patrol is None:
            self.patrol = self.new_patrol(known)
        else:
            self.patrol.swap(known)

    def new_patrol(self, known: Any = None) -> Patrol:
        """As another controller would make it: it remembers what is on record."""
        return Patrol.build(
            known or roster(load_city(self.root, env={})),
            provider=self.provider,
            workshop=FileWorkshop(self.root / ".gc", dict(os.environ), self.clock),
            work=OwnWork(self.store, self.clock),
            check=self.check,
            patrol_history=PatrolHistory(self.store, self.clock, self.ids, Where(self.kind, "here")),
        )

    async def patrolled(self) -> None:
        """One look, and all that follows from it."""
        await self.patrol.tick()
        await self.patrol.settled()

    def session(self, agent: str) -> SessionName:
        return self.patrol.roster.sessions[agent]

    async def seen(self, agent: str) -> Seen | None:
        return await self.provider.see(self.session(agent))

    async def alive(self) -> list[str]:
        return sorted(seen.meta["LAMP_AGENT"] for seen in (await self.provider.seen()).values() if seen.alive)

    async def crash(self, agent: str, text: str) -> None:
        """Its program says `text` and ends with 3; returns when that is seen."""
        await self.strike(agent, text)
        name = self.session(agent)

        async def dead() -> bool:
            seen = await self.provider.see(name)
            return seen is not None and not seen.alive and seen.exit_status == 3

        await until(dead)

    async def strike(self, agent: str, text: str) -> None:
        name = self.session(agent)
        if self.kind == "fake":
            if text:
                self.provider.say(name, text)
            self.provider.end(name, 3)
            return
        await self.provider.nudge(name, text)

    # ── what is on record ─────────────────────────────────────────────────────────────────────────────────────────

    async def events(self, kind: str = "agent.*") -> list[Event]:
        found: list[Event] = await self.store.read(lambda tx: tx.events.latest(EventFilter(type=kind), limit=1000))
        return found

    async def told(self) -> list[tuple[str, str | None]]:
        return [(event.type.removeprefix("agent."), event.subject) for event in await self.events()]

    async def end(self) -> None:
        if self.patrol is not None:
            await self.patrol.close()
        for provider in self._opened:
            for name in await provider.seen():
                await provider.stop(name, grace=timedelta(0))
            await provider.close()


@asynccontextmanager
async def a_town(kind: str) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="lt"))  # a socket's path must be short
        root = Path(short)
        (root / ".gc").mkdir()
        place = SqliteUrl(root / ".gc/lamp.db", root / ".gc")
        migrate(place)
        store = open_store(place, "cty_1", Wakes())
        stack.push_async_callback(store.close)
        town = Town(root, kind, store)
        stack.push_async_callback(town.end)
        yield town


def agent(name: str, body: str = LASTING, **keys: object) -> str:
    lines = "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())
    return f'[[agents]]\nname = "{name}"\n{body}{lines}'


def pool(name: str, *, most: int, least: int = 0, check: str = "", body: str = LASTING, drain: str = "5m") -> str:
    asked = f"check = '''{check}'''\n" if check else ""
    return agent(name, body) + f'[agents.pool]\nmin = {least}\nmax = {most}\n{asked}drain_timeout = "{drain}"\n'


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
