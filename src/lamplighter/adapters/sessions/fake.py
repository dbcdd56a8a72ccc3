"""Simulates sessions in memory, for tests and drills; they behave like real ones, and can be made to fail."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from lamplighter.adapters.sessions import settling, staging
from lamplighter.adapters.sessions.endings import Endings
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import GRACE, NoInput, SessionAlive, SessionUnknown, StartFailed, StopFailed


@dataclass
class FakeSession:
    spec: SessionSpec
    seen: Seen
    meta: dict[str, str]
    output: list[str] = field(default_factory=list)


@dataclass
class FakeWorld:
    """The simulated machine: the sessions of all cities."""

    sessions: dict[tuple[str, SessionName], FakeSession] = field(default_factory=dict)
    next_pid: int = 1000


Program = Callable[["FakeProvider", FakeSession, str], None]


def _echo(_provider: "FakeProvider", session: FakeSession, text: str) -> None:
    session.output.extend(text.splitlines())


class FakeProvider:
    """`calls` lists the calls in order. `no_start`, `no_stop`, `deaf` and `missing_programs` make calls fail."""

    def __init__(
        self, clock: Clock, ids: IdSource, *, city: str, world: FakeWorld | None = None, program: Program = _echo
    ) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.no_start: dict[SessionName, str] = {}
        self.no_stop: dict[SessionName, str] = {}
        self.deaf: dict[SessionName, str] = {}  # whose first nudge does not arrive, and why
        self.missing_programs: set[str] = set()
        self.world = world or FakeWorld()
        self._clock = clock
        self._ids = ids
        self._city = city
        self._program = program
        self._endings = Endings()

    # ── what happens to the simulated sessions ────────────────────────────────────────────────────────────────────

    def end(self, name: SessionName, status: int = 0) -> None:
        """Its program ends; the session stays, no longer alive."""
        self.change(name, alive=False, exit_status=status)
        self._endings.announce(name)

    def vanish(self, name: SessionName) -> None:
        """The session disappears completely, as after a reboot."""
        self.world.sessions.pop((self._city, name), None)
        self._endings.announce(name)

    def say(self, name: SessionName, *lines: str) -> None:
        self._must(name).output.extend(lines)
        self.change(name, last_activity=self._clock.now())

    def attach(self, name: SessionName, *, attached: bool = True) -> None:
        self.change(name, attached=attached)

    def active_at(self, name: SessionName, at: datetime | None) -> None:
        self.change(name, last_activity=at)

    def change(self, name: SessionName, **fields: object) -> None:
        session = self._must(name)
        session.seen = replace(session.seen, **fields)  # type: ignore[arg-type]  # the fields of Seen, by name

    # ── the port ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self, spec: SessionSpec) -> Seen:
        self.calls.append(("start", spec.name))
        known = self._find(spec.name)
        if known is not None and known.seen.alive:
            raise SessionAlive(spec.name)
        if not spec.command or spec.command[0] in self.missing_programs:
            raise StartFailed(spec.name, "there is no such program")
        if spec.name in self.no_start:
            raise StartFailed(spec.name, self.no_start[spec.name])
        self.world.next_pid += 1
        now = self._clock.now()
        seen = Seen(
            spec.name, alive=True, session_id=self._ids.make("ses"), pid=self.world.next_pid, started_at=now,
            last_activity=now,
        )  # fmt: skip
        session = FakeSession(spec, seen, dict(spec.meta))
        self.world.sessions[(self._city, spec.name)] = session
        if spec.nudge and spec.name in self.deaf:
            why = self.deaf[spec.name]
            return settling.Settled(why, ready=why != settling.NOT_READY).seen(self._view(session))
        if spec.nudge:
            await self.nudge(spec.name, spec.nudge)
        return self._view(session)

    async def nudge_when_ready(self, spec: SessionSpec, session_id: str) -> str | None:
        return await settling.nudge_when_ready(self, spec, session_id, clock=self._clock)

    async def screen(self, name: SessionName) -> str:
        return await self.peek(name)

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        self.calls.append(("stop", name, f"{grace.total_seconds():g}"))
        if name in self.no_stop:
            raise StopFailed(name, self.no_stop[name])
        session = self.world.sessions.pop((self._city, name), None)
        if session is not None and session.seen.alive:
            self._endings.announce(name)

    async def interrupt(self, name: SessionName) -> None:
        self.calls.append(("interrupt", name))
        session = self._find(name)
        if session is not None and session.seen.alive:
            self._program(self, session, "\x03")

    async def nudge(self, name: SessionName, text: str) -> None:
        self.calls.append(("nudge", name, text))
        session = self._find(name)
        if session is None or not session.seen.alive:
            return
        if not session.spec.takes_input:
            raise NoInput(name)
        self.change(name, last_activity=self._clock.now())
        self._program(self, session, text)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        self.calls.append(("send_keys", name, *keys))

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        session = self._find(name)
        return "" if session is None else "\n".join(session.output[-lines:] if lines > 0 else session.output)

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        return ("echo", self._must(name).spec.name)

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        self._must(name).meta[key] = value

    async def get_meta(self, name: SessionName, key: str) -> str:
        session = self._find(name)
        return session.meta.get(key, "") if session else ""

    async def remove_meta(self, name: SessionName, key: str) -> None:
        session = self._find(name)
        if session is not None:
            session.meta.pop(key, None)

    async def seen(self) -> Mapping[SessionName, Seen]:
        return {
            name: self._view(session) for (city, name), session in self.world.sessions.items() if city == self._city
        }

    async def see(self, name: SessionName) -> Seen | None:
        session = self._find(name)
        return None if session is None else self._view(session)

    def ended(self) -> AsyncIterator[SessionName]:
        return self._endings.listen()

    async def clear_scrollback(self, name: SessionName) -> None:
        self.calls.append(("clear_scrollback", name))
        session = self._find(name)
        if session is not None:
            session.output.clear()

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        staging.copy_file(source, Path(self._must(name).spec.work_dir), destination)

    async def cleanup(self) -> None:
        return

    async def close(self) -> None:
        return

    def _find(self, name: SessionName) -> FakeSession | None:
        return self.world.sessions.get((self._city, name))

    def _must(self, name: SessionName) -> FakeSession:
        session = self._find(name)
        if session is None:
            raise SessionUnknown(name)
        return session

    def _view(self, session: FakeSession) -> Seen:
        return replace(session.seen, meta=dict(session.meta))
