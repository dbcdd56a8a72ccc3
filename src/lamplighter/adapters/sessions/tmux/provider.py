"""The provider of sessions a person can attach to: each is a tmux session on the city's own server."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

from lamplighter.adapters.processes.leftovers import Leftovers
from lamplighter.adapters.processes.table import Process, identity_of
from lamplighter.adapters.processes.tree import Marks, ProcessTable, end_all, members
from lamplighter.adapters.processes.watch import watch
from lamplighter.adapters.sessions import settling, staging
from lamplighter.adapters.sessions.endings import Endings
from lamplighter.adapters.sessions.locks import NameLocks, held
from lamplighter.adapters.sessions.meta_on_record import MetaOnRecord
from lamplighter.adapters.sessions.records import Record, Records
from lamplighter.adapters.sessions.tmux.client import TmuxAbsent, TmuxClient
from lamplighter.adapters.sessions.tmux.keyboard import Keyboard, NotTaken
from lamplighter.adapters.sessions.tmux.opening import Opening
from lamplighter.adapters.sessions.tmux.panes import Pane, parse_panes
from lamplighter.adapters.sessions.tmux.sight import TmuxSight
from lamplighter.adapters.sessions.tmux.terminal import TmuxTerminal
from lamplighter.adapters.sessions.tmux.words import session_word
from lamplighter.adapters.sessions.watches import Watches
from lamplighter.domain.sessions.model import Readiness, Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.screens import typed
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.tasks import spawn
from lamplighter.ports.sessions import (
    GRACE,
    NoInput,
    NotDelivered,
    Screen,
    SessionAlive,
    SessionUnknown,
    StartFailed,
    StopFailed,
)

_TYPING_LIMIT = timedelta(seconds=120)
_UNSENT = "unsent_nudge"
_READY_PREFIX, _READY_MARK = "ready_prefix", "ready_mark"
_SERVER_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "SHELL", "USER", "LOGNAME", "TERM", "TMPDIR")


class TmuxProvider(MetaOnRecord):
    """Identity, environment and metadata are on disk under `root`; the server at `socket` shows which sessions live."""

    def __init__(
        self, root: Path, socket: Path, *, city: str, clock: Clock, ids: IdSource, environ: Mapping[str, str]
    ) -> None:
        self._records = Records(root, city)
        self._city = city
        self._clock = clock
        self._ids = ids
        self._tmux = TmuxClient(socket, {key: environ[key] for key in _SERVER_ENV if key in environ})
        self._table = ProcessTable()
        self._leftovers = Leftovers(self._table, clock, self._records.clear_away)
        self._watches = Watches()
        self._sight = TmuxSight(self._tmux, self._records, self._table, clock, city, self._watches.living)
        self._opening = Opening(self._tmux, self._records, clock, city)
        self._keyboard = Keyboard(self._tmux, clock)
        self._terminal = TmuxTerminal(self._tmux, self._sight, self._keyboard)
        self._endings = Endings()
        self._locks = NameLocks()
        self._typing = NameLocks()
        self._missed: set[str] = set()  # session ids of programs that ended before they could be watched
        self._finding: set[asyncio.Task[None]] = set()

    async def start(self, spec: SessionSpec) -> Seen:
        async with self._locks[spec.name]:
            before = self._records.read(spec.name)
            pane = self._sight.known_dead(before) or await self._sight.pane(spec.name)
            if pane is not None and (await self._sight.views([pane]))[0].alive:
                raise SessionAlive(spec.name)
            if pane is None or (pane.pid is not None and identity_of(pane.pid) is not None):
                await self._end_old(before, pane)
            seen = await self._launch(spec, pane, before)
            if before is not None:
                self._leftovers.end_soon(before.session_id)
            else:
                await asyncio.to_thread(self._records.clear_away)  # something that is no record may have had its name

            await self._keep_readiness(spec)

        async def alive() -> bool:
            return not await self._sight.is_dead(spec.name)

        settled = await settling.settle(self, spec, dict(spec.env), clock=self._clock, alive=alive)
        if settled is None:
            raise StartFailed(spec.name, "its program ended before it was ready", output=await self.peek(spec.name))
        return settled.seen(seen)

    async def nudge_when_ready(self, spec: SessionSpec, session_id: str) -> str | None:
        return await settling.nudge_when_ready(self, spec, session_id, clock=self._clock)

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        async with self._locks[name]:
            pane, record = await self._sight.pane(name), self._records.read(name)
            if pane is None and record is None:
                return
            await self._end(name, pane, record, grace)
            if pane is not None:
                with contextlib.suppress(TmuxAbsent):
                    await self._tmux.call("kill-session", "-t", f"={session_word(name)}")
            await asyncio.to_thread(self._records.remove, name)

    async def interrupt(self, name: SessionName) -> None:
        await self.send_keys(name, "C-c")

    async def nudge(self, name: SessionName, text: str) -> None:
        pane = await self._sight.pane(name)
        if pane is None or pane.dead:
            return
        record = self._records.read(name)
        if record is not None and not record.takes_input:
            raise NoInput(name)
        words = typed(text)
        async with self._typing[name], self._held(name):
            try:
                await self._remove_unsent(name, pane)
                if words.strip():
                    await self.set_meta(name, _UNSENT, words)
                    await self._keyboard.send(pane.id, words, await self._readiness(name))
                    await self.remove_meta(name, _UNSENT)
                else:
                    await self._keyboard.press(pane.id, "Enter")
            except (TmuxAbsent, SessionUnknown) as error:
                raise NotDelivered(name, "its program ended meanwhile") from error
            except NotTaken as error:
                raise NotDelivered(name, str(error)) from error

    async def _readiness(self, name: SessionName) -> Readiness:
        kept = self._records.meta(name)
        return Readiness(prompt_prefix=kept.get(_READY_PREFIX, ""), mark=kept.get(_READY_MARK, ""))

    async def _keep_readiness(self, spec: SessionSpec) -> None:
        for key, value in ((_READY_PREFIX, spec.readiness.prompt_prefix), (_READY_MARK, spec.readiness.mark)):
            if value:
                await self.set_meta(spec.name, key, value)

    async def _remove_unsent(self, name: SessionName, pane: Pane) -> None:
        """Remove what an earlier nudge typed and could not send, so that it does not become a part of this one."""
        unsent = await self.get_meta(name, _UNSENT)
        if unsent and await self._keyboard.holds(pane.id, unsent):
            await self._keyboard.clear(pane.id, unsent)
        await self.remove_meta(name, _UNSENT)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        pane = await self._sight.pane(name)
        if pane is None or pane.dead or not keys:
            return
        with contextlib.suppress(TmuxAbsent):
            await self._keyboard.press(pane.id, *keys)

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        start = f"-{lines}" if lines > 0 else "-"
        text = await self._sight.glance(name, start)
        if text is None:
            pane = await self._sight.pane(name)
            text = "" if pane is None else await self._sight.text(pane, start)
        found = [line.rstrip() for line in text.rstrip().splitlines()]
        return "\n".join(found[-lines:] if lines > 0 else found)

    async def screen(self, name: SessionName) -> str:
        pane = await self._sight.pane(name)
        return "" if pane is None else (await self._sight.text(pane, "0")).rstrip()

    async def terminal_screen(self, name: SessionName) -> Screen | None:
        return await self._terminal.screen(name)

    async def terminal_keys(self, name: SessionName, data: bytes) -> None:
        await self._terminal.send(name, data)

    async def terminal_paste(self, name: SessionName, text: str) -> None:
        await self._terminal.paste(name, text)

    def occupy(self, name: SessionName, *, by_person: bool) -> None:
        (self._sight.occupied.add if by_person else self._sight.occupied.discard)(name)

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        if await self._sight.pane(name) is None:
            raise SessionUnknown(name)
        return ("tmux", "-u", "-S", str(self._tmux.socket), "attach-session", "-t", f"={session_word(name)}")

    async def seen(self) -> Mapping[SessionName, Seen]:
        panes = await self._sight.all_panes()
        self._watches.forget_ended_but({pane.session_id for pane in panes})
        self._watch_all(panes)
        return {seen.name: seen for seen in await self._sight.views(panes)}

    async def see(self, name: SessionName) -> Seen | None:
        pane = await self._sight.settled_pane(name)
        return None if pane is None else (await self._sight.views([pane]))[0]

    def ended(self) -> AsyncIterator[SessionName]:
        listener = self._endings.listen()
        self._tmux.keep_line()  # a process that listens makes many calls
        finding = spawn(self._watch_found(), name="watch sessions")
        self._finding.add(finding)
        finding.add_done_callback(self._finding.discard)
        return listener

    async def clear_scrollback(self, name: SessionName) -> None:
        pane = await self._sight.pane(name)
        if pane is not None:
            with contextlib.suppress(TmuxAbsent):
                await self._tmux.call("clear-history", "-t", pane.id)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        record = self._records.read(name)
        if record is None:
            raise SessionUnknown(name)
        await asyncio.to_thread(staging.copy_file, source, Path(record.work_dir), destination)

    async def cleanup(self) -> None:
        """Remove only what killed processes left: files half made or removed, lines to the server."""
        await asyncio.to_thread(self._records.sweep)
        await self._tmux.sweep()

    async def close(self) -> None:
        self._watches.cancel_all()
        if self._finding:
            await asyncio.wait(self._finding)
        await self._leftovers.all_ended()
        await self._tmux.close()

    # ── starting and stopping ─────────────────────────────────────────────────────────────────────────────────────

    async def _launch(self, spec: SessionSpec, dead: Pane | None, before: Record | None) -> Seen:
        staging.check_command(spec)
        session_id = self._ids.make("ses")
        try:
            await settling.prepare(spec, dict(spec.env))
            record = await asyncio.to_thread(self._opening.record, spec, session_id)
            said = await asyncio.shield(self._opening.open(spec, record, dead, partial(self._end_old, before)))
        except (OSError, LampError, TmuxAbsent) as error:
            await asyncio.to_thread(self._records.remove, spec.name)
            raise StartFailed(spec.name, str(error).rstrip(".")) from error
        pane = next(parse_panes(said, self._city), None)
        if pane is None:
            raise StartFailed(spec.name, "tmux did not show its pane")
        self._sight.last[spec.name] = pane
        self._watch_all([pane])
        return self._sight.view(pane, record, alive=not pane.dead)

    async def _end_old(self, before: Record | None, pane: Pane | None = None) -> None:
        """End what may live of an earlier start whose pane is gone, or has a program that is not the agent.

        Programs can outlive the server. What a program that has ended left running is ended in the background instead.
        Raises StartFailed.
        """
        if before is None:
            return
        try:
            await self._end(before.name, pane, before, GRACE)
        except StopFailed as error:
            raise StartFailed(before.name, "what was started in it before could not be ended") from error

    async def _end(self, name: SessionName, pane: Pane | None, record: Record | None, grace: timedelta) -> None:
        marks = Marks(record.session_id if record else "", name, self._city)
        root = identity_of(pane.pid) if pane is not None and pane.pid and not pane.dead else None

        def all_of_it(table: Mapping[int, Process]) -> list[Process]:
            return members(table, (root,) if root else (), marks)

        # HUP is what a closing terminal sends; interactive shells ignore TERM.
        if not await end_all(self._table, all_of_it, grace=grace, ask=(signal.SIGTERM, signal.SIGHUP)):
            raise StopFailed(name, "some of its processes outlived SIGKILL")

    def _held(self, name: SessionName) -> contextlib.AbstractAsyncContextManager[None]:
        home = self._records.home(name)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return held(home / ".input.lock", clock=self._clock, within=_TYPING_LIMIT)

    # ── watching ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch_found(self) -> None:
        self._watch_all(await self._sight.all_panes())

    def _watch_all(self, panes: Iterable[Pane]) -> None:
        for pane in panes:
            if pane.dead or pane.pid is None or pane.session_id in self._watches:
                continue
            who = identity_of(pane.pid)
            if who is not None:
                self._watches.add(pane.session_id, watch(who, partial(self._ended, pane)))
            elif pane.session_id not in self._missed:  # it has ended already, and the server has not noticed yet
                self._missed.add(pane.session_id)
                asyncio.get_running_loop().call_soon(self._endings.announce, pane.name)

    def _ended(self, pane: Pane) -> None:
        self._watches.ended(pane.session_id)
        self._endings.announce(pane.name)
