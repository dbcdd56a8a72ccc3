"""Sessions of runs that are told to an agent of the city: the agent's own session stands for them and is never ended.

Everything else goes to the provider of the city's runs. What was told to whom is kept in a file for each such run.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.asking import LINES_READ, asked_on, asked_while_drawing
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.presets.catalogue import PROMPTS
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import GRACE, KeepsOutput, NoInput, NotDelivered, Output, SessionProvider, StartFailed

RECORD = "told.json"
MESSAGE = "message.md"
_AGAIN = " (It may have reached you before: do it once.)"


class NotNow(Unavailable):
    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"Run {run} cannot be told now: {why}.", hint="It is tried again by itself.")


@dataclass(frozen=True)
class _Told:
    """`session` is that of the agent's which was told, empty until it was."""

    run: str
    id: str
    agent: str
    at: str
    session: str = ""


class Voice:
    """`own` runs the sessions of all other runs; `agents` opens the provider of the city's agents when it is needed."""

    def __init__(
        self, folder: Path, own: SessionProvider, agents: Callable[[], SessionProvider], *, clock: Clock, ids: IdSource
    ) -> None:
        self._folder = folder
        self._own = own
        self._open = agents
        self._opened: SessionProvider | None = None
        self._clock = clock
        self._ids = ids
        self._speaking = asyncio.Lock()

    @staticmethod
    def of(
        folder: Path, own: SessionProvider, agents: Callable[[], SessionProvider], *, clock: Clock, ids: IdSource
    ) -> "Voice":
        made = _KeepingOutput if isinstance(own, KeepsOutput) else Voice
        return made(folder, own, agents, clock=clock, ids=ids)

    async def not_now(self, session: SessionName, run: str) -> str:
        """Why the run cannot be told to the agent of that session now; empty if it can."""
        other = next((one.run for one in self._records() if one.agent == session and one.run != run), None)
        if other is not None:
            return f"run {other}, which was told to the agent before, is under way"
        seen = await self._agents.see(session)
        if seen is None or not seen.alive:
            return "the agent is not running"
        screen = await self._agents.peek(session, LINES_READ)
        asked = asked_on(screen) or asked_while_drawing(screen, PROMPTS)
        return "the agent stands at a permission prompt" if asked else ""  # what is typed there would answer it

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self, spec: SessionSpec) -> Seen:
        """Tell the run to its agent. After a crash in the middle it is told again, with a note that it may be.

        Raises NotNow while the agent does not run, has another run or stands at a permission prompt, and StartFailed
        if it does not take the message.
        """
        agent = SessionName(spec.meta.get(meta.SPEAKS_TO, ""))
        if not agent:
            return await self._own.start(spec)
        run = str(spec.name)
        async with self._speaking:
            why = await self.not_now(agent, run)
            seen = await self._agents.see(agent)
            if why or seen is None:
                raise NotNow(run, why or "the agent is not running")
            before = self._read(run)
            told = before or _Told(run, self._ids.make("ses"), agent, self._clock.now().isoformat())
            self._write(told, spec.command[0])
            automation = spec.env.get("LAMP_AUTOMATION", "")
            text = (
                f"Run {run} of the automation {automation} is for you: read {self._folder / run / MESSAGE}, do what it"
                f" says, and report the end of the run as it says there.{'' if before is None else _AGAIN}"
            )
            try:
                await self._agents.nudge(agent, text)
            except (NoInput, NotDelivered) as error:
                self._forget(run)
                raise StartFailed(spec.name, error.message.rstrip("."), hint=error.hint) from error
            told = replace(told, session=seen.session_id)
            self._write(told)
        return self._seen(told, seen)

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        """Of a run that was told to an agent only the record is removed: the agent works on."""
        if self._read(name) is None:
            await self._own.stop(name, grace=grace)
        self._forget(name)

    async def see(self, name: SessionName) -> Seen | None:
        told = self._read(name)
        return await self._own.see(name) if told is None else await self._look(told)

    async def seen(self) -> Mapping[SessionName, Seen]:
        told = {SessionName(one.run): await self._look(one) for one in self._records()}
        return {**await self._own.seen(), **told}

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        told = self._read(name)
        return await (
            self._own.peek(name, lines) if told is None else self._agents.peek(SessionName(told.agent), lines)
        )

    def ended(self) -> AsyncIterator[SessionName]:
        """Ends of agents are not announced: what was told to them is looked at from time to time."""
        return self._own.ended()

    async def close(self) -> None:
        await self._own.close()
        if self._opened is not None:
            await self._opened.close()

    # ── only of sessions of runs' own ─────────────────────────────────────────────────────────────────────────────

    async def interrupt(self, name: SessionName) -> None:
        await self._own.interrupt(name)

    async def nudge(self, name: SessionName, text: str) -> None:
        await self._own.nudge(name, text)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        await self._own.send_keys(name, *keys)

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        told = self._read(name)
        if told is not None:
            return await self._agents.attach_command(SessionName(told.agent))
        return await self._own.attach_command(name)

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        await self._own.set_meta(name, key, value)

    async def get_meta(self, name: SessionName, key: str) -> str:
        return await self._own.get_meta(name, key)

    async def remove_meta(self, name: SessionName, key: str) -> None:
        await self._own.remove_meta(name, key)

    async def clear_scrollback(self, name: SessionName) -> None:
        await self._own.clear_scrollback(name)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        await self._own.copy_to(name, source, destination)

    async def cleanup(self) -> None:
        await self._own.cleanup()

    # ── records ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _agents(self) -> SessionProvider:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    async def _look(self, told: _Told) -> Seen:
        return self._seen(told, await self._agents.see(SessionName(told.agent)))

    def _seen(self, told: _Told, agent: Seen | None) -> Seen:
        alive = agent is not None and agent.alive and told.session == agent.session_id
        return Seen(
            name=SessionName(told.run),
            alive=alive,
            session_id=told.id,
            exit_status=None if alive or not told.session else 0 if agent is None else agent.exit_status or 0,
            started_at=datetime.fromisoformat(told.at),
            last_activity=None if agent is None or not alive else agent.last_activity,
            meta={meta.RUN: told.run, meta.SPEAKS_TO: told.agent},
        )

    def _records(self) -> list[_Told]:
        if not self._folder.is_dir():
            return []
        found = (self._read(one.name) for one in sorted(self._folder.iterdir()))
        return [one for one in found if one is not None]

    def _read(self, run: str) -> _Told | None:
        try:
            return _Told(**json.loads((self._folder / run / RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, told: _Told, message: str = "") -> None:
        folder = self._folder / told.run
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if message:
            _put(folder / MESSAGE, message + "\n")
        _put(folder / RECORD, json.dumps(asdict(told)))

    def _forget(self, run: str) -> None:
        shutil.rmtree(self._folder / run, ignore_errors=True)


class _KeepingOutput(Voice):
    async def read(self, name: SessionName, position: int) -> Output:
        """What an agent prints belongs to no single run."""
        if self._read(name) is not None or not isinstance(self._own, KeepsOutput):
            return Output(b"", position)
        return await self._own.read(name, position)


def _put(path: Path, text: str) -> None:
    """Readers see the old text or the new one, never a part of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.touch(mode=0o600)
    beside.write_text(text)
    beside.replace(path)
