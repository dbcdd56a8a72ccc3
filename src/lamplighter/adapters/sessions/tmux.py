"""Sessions a person can attach to: each a tmux session on the city's own server."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from lamplighter.adapters.sessions import settling, staging
from lamplighter.adapters.sessions.endings import Endings
from lamplighter.adapters.sessions.locks import NameLocks, held
from lamplighter.adapters.sessions.processes.table import Process, identity_of
from lamplighter.adapters.sessions.processes.tree import LEFTOVERS_AFTER, Marks, ProcessTable, end_all, members
from lamplighter.adapters.sessions.processes.watch import watch
from lamplighter.adapters.sessions.records import Record, Records
from lamplighter.adapters.sessions.tmux_client import TmuxAbsent, TmuxClient, session_word
from lamplighter.adapters.sessions.tmux_panes import FORMAT, LAUNCH, Pane, parse_panes, write_launch
from lamplighter.adapters.sessions.watches import Watches
from lamplighter.domain.sessions.model import NOTHING, Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.screens import typed
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import (
    GRACE,
    NoInput,
    ProviderUnavailable,
    SessionAlive,
    SessionUnknown,
    StartFailed,
    StopFailed,
)

_SIZE = ("-x", "200", "-y", "50")
_PLAIN_TEXT = 500  # longer text, and text of several lines, is pasted as a whole
_BEFORE_ENTER = timedelta(milliseconds=300)  # programs that draw themselves take Enter in a burst for a new line
_ENTER_TRIES = 3
_SCREEN_CHANGES = timedelta(milliseconds=500)
_SCREEN_POLL = timedelta(milliseconds=25)
_STATUS_POLL = timedelta(milliseconds=5)
_TYPING_LIMIT = timedelta(seconds=30)
_NAMED_WITHIN = timedelta(seconds=30)
_STATUS_LOOKS = 8  # at a pane whose program is gone, until the server has collected it
_SERVER_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "SHELL", "USER", "LOGNAME", "TERM", "TMPDIR")


class TmuxProvider:
    """Identity, environment and metadata are on disk under `root`; what lives is told by the server at `socket`."""

    def __init__(
        self, root: Path, socket: Path, *, city: str, clock: Clock, ids: IdSource, environ: Mapping[str, str]
    ) -> None:
        self._records = Records(root, city)
        self._city = city
        self._clock = clock
        self._ids = ids
        self._tmux = TmuxClient(socket, {key: environ[key] for key in _SERVER_ENV if key in environ})
        self._endings = Endings()
        self._table = ProcessTable()
        self._locks = NameLocks()
        self._typing = NameLocks()
        self._watches = Watches()
        self._stirred: set[str] = set()  # sessions whose exit status the server will never tell
        self._missed: set[str] = set()  # sessions that were gone before they could be watched
        self._last: dict[SessionName, Pane] = {}
        self._aside: set[asyncio.Task[None]] = set()

    async def start(self, spec: SessionSpec) -> Seen:
        async with self._locks[spec.name]:
            before = self._records.read(spec.name)
            pane = self._known_dead(before) or await self._pane(spec.name)
            if pane is not None and (await self._views([pane]))[0].alive:
                raise SessionAlive(spec.name)
            seen = await self._launch(spec, pane)
            if before is not None:
                self._do_aside(self._end_leftovers(before))

        async def alive() -> bool:
            return not await self._is_dead(spec.name)

        if not await settling.settle(self, spec, dict(spec.env), clock=self._clock, alive=alive):
            raise StartFailed(spec.name, "its program ended before it was ready", output=await self.peek(spec.name))
        return seen

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        async with self._locks[name]:
            pane, record = await self._pane(name), self._records.read(name)
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
        pane = await self._pane(name)
        if pane is None or pane.dead:
            return
        record = self._records.read(name)
        if record is not None and not record.takes_input:
            raise NoInput(name)
        async with self._typing[name], self._held(name):
            with contextlib.suppress(TmuxAbsent):  # it ended meanwhile
                await self._type(pane.id, typed(text))
                await self._press_enter(pane.id)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        pane = await self._pane(name)
        if pane is None or pane.dead or not keys:
            return
        # A word that ends in `;` would end the command.
        words = [key[:-1] + "\\;" if key.endswith(";") else key for key in keys]
        with contextlib.suppress(TmuxAbsent):
            await self._tmux.call("send-keys", "-t", pane.id, "--", *words)

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        text = await self._glance(name, f"-{lines}" if lines > 0 else "-")
        if text is None:
            pane = await self._pane(name)
            if pane is None:
                return ""
            with contextlib.suppress(TmuxAbsent):
                text = await self._capture(pane.id, f"-{lines}" if lines > 0 else "-")
        if text is not None:
            found = [line.rstrip() for line in text.rstrip().splitlines()]
            return "\n".join(found[-lines:] if lines > 0 else found)
        return ""

    async def screen(self, name: SessionName) -> str:
        pane = await self._pane(name)
        with contextlib.suppress(TmuxAbsent):
            return (await self._capture(pane.id, "0")).rstrip() if pane is not None else ""
        return ""

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        if await self._pane(name) is None:
            raise SessionUnknown(name)
        return ("tmux", "-u", "-S", str(self._tmux.socket), "attach-session", "-t", f"={session_word(name)}")

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        await asyncio.to_thread(self._records.change_meta, name, lambda kept: kept.update({key: value}))

    async def get_meta(self, name: SessionName, key: str) -> str:
        return self._records.meta(name).get(key, "") if self._records.read(name) else ""

    async def remove_meta(self, name: SessionName, key: str) -> None:
        with contextlib.suppress(SessionUnknown):
            await asyncio.to_thread(self._records.change_meta, name, lambda kept: kept.pop(key, None))

    async def seen(self) -> Mapping[SessionName, Seen]:
        panes = await self._with_statuses(await self._panes("-a"))
        self._last = {pane.name: pane for pane in panes}
        shown = {pane.session_id for pane in panes}
        self._stirred &= shown
        self._watches.forget_ended_but(shown)
        self._watch_all(panes)
        return {seen.name: seen for seen in await self._views(panes)}

    async def see(self, name: SessionName) -> Seen | None:
        pane = await self._pane(name)
        if pane is not None and _lacks_status(pane):
            pane = next((one for one in await self._with_statuses([pane]) if one.name == name), None)
        return None if pane is None else (await self._views([pane]))[0]

    def ended(self) -> AsyncIterator[SessionName]:
        listener = self._endings.listen()
        self._do_aside(self._watch_found())
        return listener

    async def clear_scrollback(self, name: SessionName) -> None:
        pane = await self._pane(name)
        if pane is not None:
            with contextlib.suppress(TmuxAbsent):
                await self._tmux.call("clear-history", "-t", pane.id)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        record = self._records.read(name)
        if record is None:
            raise SessionUnknown(name)
        await asyncio.to_thread(staging.copy_file, source, Path(record.work_dir), destination)

    async def tend(self) -> None:
        """The server bounds its history itself; only what a killed process left half made is removed."""
        await asyncio.to_thread(self._records.sweep)

    async def close(self) -> None:
        self._watches.cancel_all()
        if self._aside:
            await asyncio.wait(self._aside)

    # ── starting and stopping ─────────────────────────────────────────────────────────────────────────────────────

    def _known_dead(self, before: Record | None) -> Pane | None:
        """The pane of the former start where its program is surely gone; saves asking the server."""
        pane = None if before is None else self._last.get(before.name)
        if before is None or pane is None or pane.session_id != before.session_id or pane.pid is None:
            return None
        return pane if identity_of(pane.pid) is None else None

    async def _launch(self, spec: SessionSpec, dead: Pane | None) -> Seen:
        staging.check_command(spec)
        session_id = self._ids.make("ses")
        try:
            await settling.prepare(spec, dict(spec.env))
            record = await asyncio.to_thread(self._record, spec, session_id)
            said = await asyncio.shield(self._opened(spec, record, dead))
        except (OSError, LampError, TmuxAbsent) as error:
            await asyncio.to_thread(self._records.remove, spec.name)
            raise StartFailed(spec.name, str(error).rstrip(".")) from error
        pane = next(parse_panes(said, self._city), None)
        if pane is None:
            raise StartFailed(spec.name, "tmux did not show its pane")
        self._last[spec.name] = pane
        self._watch_all([pane])
        return self._view(pane, record, alive=not pane.dead)

    def _record(self, spec: SessionSpec, session_id: str) -> Record:
        def furnish(home: Path) -> None:
            env = dict(spec.env) | record_env
            write_launch(home, spec, env, self._tmux.env)

        record_env = Record(spec.name, self._city, session_id, self._clock.now(), "", takes_input=True,
                            process_names=()).env()  # fmt: skip
        return self._records.create(spec, session_id, self._clock.now(), furnish)

    async def _opened(self, spec: SessionSpec, record: Record, dead: Pane | None) -> str:
        """In the dead pane where there is one, in a new session where there is none or where it vanished."""
        if dead is not None:
            with contextlib.suppress(TmuxAbsent):
                return await self._open(spec, record, dead)
        return await self._open(spec, record, None)

    async def _open(self, spec: SessionSpec, record: Record, dead: Pane | None) -> str:
        """A dead pane is brought back where it stands, so that a person attached to it stays attached."""
        word = session_word(spec.name)
        script = ("/bin/sh", str(self._records.home(spec.name) / LAUNCH))
        session_id = (";", "set-option", "-t", f"={word}:", "@lamp_id", record.session_id)
        if dead is not None:
            return await self._tmux.call(
                "respawn-pane", "-k", "-t", dead.id, "-c", spec.work_dir, *script,
                ";", "clear-history", "-t", dead.id, *session_id,
                ";", "list-panes", "-t", f"={word}:", "-F", FORMAT,
            )  # fmt: skip
        return await self._tmux.new_session(
            word, *_SIZE, "-c", spec.work_dir, *script, *session_id,
            ";", "set-option", "-t", f"={word}:", "@lamp_name", spec.name,
            ";", "set-option", "-t", f"={word}:", "@lamp_city", self._city,
            ";", "set-option", "-F", "-t", f"={word}:", "@lamp_pane", "#{pane_id}",
            ";", "list-panes", "-t", f"={word}:", "-F", FORMAT,
        )  # fmt: skip

    async def _end(self, name: SessionName, pane: Pane | None, record: Record | None, grace: timedelta) -> None:
        marks = Marks(record.session_id if record else "", name, self._city)
        root = identity_of(pane.pid) if pane is not None and pane.pid and not pane.dead else None

        def all_of_it(table: Mapping[int, Process]) -> list[Process]:
            return members(table, (root,) if root else (), marks)

        # A closing terminal sends HUP; shells that a person types into listen to nothing less.
        if not await end_all(self._table, all_of_it, grace=grace, ask=(signal.SIGTERM, signal.SIGHUP)):
            raise StopFailed(name, "some of its processes outlived SIGKILL")

    async def _end_leftovers(self, before: Record) -> None:
        await self._clock.wait(asyncio.Event(), at_most=LEFTOVERS_AFTER)  # many that fall together share one look
        marks = Marks(before.session_id, session="", city="")
        await end_all(self._table, lambda table: members(table, (), marks), grace=GRACE)

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    # ── seeing ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _panes(self, *which: str) -> list[Pane]:
        try:
            return list(parse_panes(await self._tmux.call("list-panes", *which, "-F", FORMAT), self._city))
        except TmuxAbsent:
            return []

    async def _with_statuses(self, panes: list[Pane]) -> list[Pane]:
        """The same panes, looked at again while the server has not collected a program that is gone."""
        for _ in range(_STATUS_LOOKS):
            missed = {pane.session_id for pane in panes if _lacks_status(pane)} - self._stirred
            if not missed:
                return panes
            await self._stir()
            await self._clock.wait(asyncio.Event(), at_most=_STATUS_POLL)
            panes = await self._panes("-a")
        self._stirred |= {pane.session_id for pane in panes if _lacks_status(pane)}
        return panes

    async def _pane(self, name: SessionName) -> Pane | None:
        return next(iter(await self._panes("-s", "-t", f"={session_word(name)}")), None)

    async def _is_dead(self, name: SessionName) -> bool:
        pane = await self._pane(name)
        return pane is None or pane.dead

    async def _views(self, panes: Iterable[Pane]) -> list[Seen]:
        found = [(pane, self._records.read(pane.name)) for pane in panes]
        if any(self._needs_table(pane, record) for pane, record in found):
            table = await self._table.look()
        else:
            table = {}
        return [self._view(pane, record, alive=self._alive(pane, record, table)) for pane, record in found]

    def _view(self, pane: Pane, record: Record | None, *, alive: bool) -> Seen:
        ours = record is not None and record.session_id == pane.session_id
        started_at = record.started_at if record is not None and ours else pane.created
        return Seen(
            name=pane.name,
            alive=alive,
            session_id=pane.session_id,
            pid=pane.pid,
            exit_status=pane.exit_status,
            started_at=started_at,
            last_activity=max(pane.activity, started_at),
            attached=pane.attached,
            meta=self._records.meta(pane.name) if ours else NOTHING,
        )

    def _needs_table(self, pane: Pane, record: Record | None) -> bool:
        """Only where the pane's own command is not one of the agent's names: a wrapper, or a shell left behind."""
        return record is not None and bool(record.process_names) and pane.command not in record.process_names

    def _alive(self, pane: Pane, record: Record | None, table: Mapping[int, Process]) -> bool:
        if pane.dead or pane.pid is None or (root := identity_of(pane.pid)) is None:
            return False
        if record is None or not self._needs_table(pane, record):
            return True
        if self._clock.now() - record.started_at < _NAMED_WITHIN:
            return True  # it may still be on its way from the launching shell to the agent
        names = {process.name for process in members(table, (root,), Marks("", "", ""))}
        return bool(names & set(record.process_names))

    # ── watching ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch_found(self) -> None:
        self._watch_all(await self._panes("-a"))

    def _watch_all(self, panes: Iterable[Pane]) -> None:
        for pane in panes:
            if pane.dead or pane.pid is None or pane.session_id in self._watches:
                continue
            who = identity_of(pane.pid)
            if who is not None:
                self._watches.add(pane.session_id, watch(who, partial(self._ended, pane)))
            elif pane.session_id not in self._missed:  # gone already, and the server has yet to notice
                self._missed.add(pane.session_id)
                asyncio.get_running_loop().call_soon(self._endings.announce, pane.name)

    def _ended(self, pane: Pane) -> None:
        self._watches.ended(pane.session_id)
        self._endings.announce(pane.name)

    async def _stir(self) -> None:
        """The server may miss the end of a child that dies young; the end of another makes it collect both."""
        with contextlib.suppress(TmuxAbsent, ProviderUnavailable):
            await self._tmux.call("run-shell", "-b", "exit 0")

    # ── typing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _held(self, name: SessionName) -> contextlib.AbstractAsyncContextManager[None]:
        home = self._records.home(name)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return held(home / ".input.lock", clock=self._clock, within=_TYPING_LIMIT)

    async def _type(self, pane: str, text: str) -> None:
        """By buffer, never as a word of a command: no length, quote, semicolon or newline can change its meaning."""
        buffer = f"lamp-{pane.lstrip('%')}"
        whole = ("-p",) if "\n" in text or len(text) > _PLAIN_TEXT else ()
        await self._tmux.call(
            "if-shell", "-F", "-t", pane, "#{pane_in_mode}", f"send-keys -t {pane} -X cancel",
            ";", "load-buffer", "-b", buffer, "-",
            ";", "paste-buffer", "-d", "-b", buffer, *whole, "-t", pane,
            stdin=text.encode(),
        )  # fmt: skip
        await self._clock.wait(asyncio.Event(), at_most=_BEFORE_ENTER)

    async def _press_enter(self, pane: str) -> None:
        """Press Enter until the screen shows that it was taken: one pressed too early is lost by some programs."""
        for _ in range(_ENTER_TRIES):
            before = await self._screen(pane)
            await self._tmux.call("send-keys", "-t", pane, "Enter")
            deadline = self._clock.monotonic() + _SCREEN_CHANGES.total_seconds()
            while self._clock.monotonic() < deadline:
                if await self._screen(pane) != before:
                    return
                await self._clock.wait(asyncio.Event(), at_most=_SCREEN_POLL)

    async def _screen(self, pane: str) -> str:
        return await self._tmux.call(
            "display-message", "-p", "-t", pane, "#{cursor_x},#{cursor_y},#{history_size},#{pane_dead}",
            ";", "capture-pane", "-p", "-t", pane,
        )  # fmt: skip

    async def _glance(self, name: SessionName, start: str) -> str | None:
        """By the pane it had when it was last seen, in one call; None where that is not its pane any more."""
        known = self._last.get(name)
        if known is None:
            return None
        pane = known.id
        try:
            said = await self._tmux.call(
                "display-message", "-p", "-t", pane, "#{@lamp_city} #{@lamp_name}",
                ";", "capture-pane", "-p", "-J", "-t", pane, "-S", start,
            )  # fmt: skip
        except TmuxAbsent:
            return None
        owner, _, text = said.partition("\n")
        return text if owner == f"{self._city} {name}" else None

    async def _capture(self, pane: str, start: str) -> str:
        return await self._tmux.call("capture-pane", "-p", "-J", "-t", pane, "-S", start)


def _lacks_status(pane: Pane) -> bool:
    return pane.exit_status is None and (pane.dead or pane.pid is None or identity_of(pane.pid) is None)
