"""The provider of sessions without a terminal: a program under a shim, with output to a file, input from a FIFO."""

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from lamplighter.adapters.processes.leftovers import Leftovers
from lamplighter.adapters.processes.shim_ends import ShimEnds, reap
from lamplighter.adapters.processes.table import Identity, Process, all_processes, is_alive
from lamplighter.adapters.processes.tree import Marks, ProcessTable, end_all, members, send
from lamplighter.adapters.processes.watch import all_ended, may_live, watch
from lamplighter.adapters.sessions import settling, staging
from lamplighter.adapters.sessions.endings import Endings
from lamplighter.adapters.sessions.local import output, shim
from lamplighter.adapters.sessions.locks import NameLocks
from lamplighter.adapters.sessions.meta_on_record import MetaOnRecord
from lamplighter.adapters.sessions.records import Record, Records, locked
from lamplighter.adapters.sessions.watches import Watches
from lamplighter.domain.sessions.idle import activity_since
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.screens import LINES_READ
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import (
    GRACE,
    NoInput,
    Output,
    ProviderUnavailable,
    SessionAlive,
    SessionUnknown,
    StartFailed,
    StopFailed,
)

_SHIM_WAIT = timedelta(seconds=2)
_INPUT_WAIT_MS = 5000
_KEYS = {"Enter": "\n", "Tab": "\t", "Space": " ", "Escape": "\x1b", "BSpace": "\x7f", "C-d": "\x04"}


class SubprocessProvider(MetaOnRecord):
    """The sessions under one directory; a later process that opens the directory finds them again."""

    def __init__(
        self, root: Path, *, city: str, clock: Clock, ids: IdSource, output_bytes: int = output.MOST_BYTES
    ) -> None:
        self._records = Records(root, city)
        self._city = city
        self._clock = clock
        self._ids = ids
        self._output_bytes = output_bytes
        self._endings = Endings()
        self._table = ProcessTable()
        self._leftovers = Leftovers(self._table, clock, self._records.clear_away)
        self._locks = NameLocks()
        self._watches = Watches()
        self._shims = ShimEnds(shim.EXIT)
        self._children: dict[str, int] = {}
        self._programs: dict[SessionName, tuple[str, Identity]] = {}

    async def start(self, spec: SessionSpec) -> Seen:
        async with self._locks[spec.name]:
            before = self._records.read(spec.name)
            if before is not None and (await self._see(before)).alive:
                raise SessionAlive(spec.name)
            record = await self._launch(spec)
            if before is not None:
                self._leftovers.end_soon(before.session_id)
            else:
                await asyncio.to_thread(self._records.clear_away)  # something that is no record may have had its name
        return await self._settled(spec, record)

    async def nudge_when_ready(self, spec: SessionSpec, session_id: str) -> str | None:
        return await settling.nudge_when_ready(self, spec, session_id, clock=self._clock)

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        async with self._locks[name]:
            record = self._records.read(name)
            if record is None:
                return
            await self._end(record, grace)
            await asyncio.to_thread(self._records.remove, name)
            self._programs.pop(name, None)

    async def interrupt(self, name: SessionName) -> None:
        parent = shim.shim_of(self._records.home(name)) if self._records.read(name) else None
        if parent is not None and is_alive(parent):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGINT)

    async def nudge(self, name: SessionName, text: str) -> None:
        await self._type(name, text.rstrip("\n") + "\n")

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        for key in keys:
            if key == "C-c":
                await self.interrupt(name)
            else:
                await self._type(name, _KEYS.get(key, key))

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        return await asyncio.to_thread(output.tail, self._records.home(name) / shim.OUTPUT, lines)

    async def read(self, name: SessionName, position: int) -> Output:
        path = self._records.home(name) / shim.OUTPUT
        try:
            return await asyncio.to_thread(output.read_on, path, position)
        except OSError as error:
            raise ProviderUnavailable(f"{path} cannot be read: {error.strerror}.", hint="It is tried again.") from error

    async def screen(self, name: SessionName) -> str:
        return await self.peek(name, LINES_READ)

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        self._known(name)
        return ("tail", "-n", "200", "-F", str(self._records.home(name) / shim.OUTPUT))

    async def seen(self) -> Mapping[SessionName, Seen]:
        found = await asyncio.to_thread(self._look)
        settled = {record.name: seen or await self._see(record) for record, seen in found}
        self._watches.forget_ended_but({record.session_id for record, _ in found})
        self._watch_all(record for record, _ in found)
        return settled

    async def see(self, name: SessionName) -> Seen | None:
        record = self._records.read(name)
        return None if record is None else await self._see(record)

    def ended(self) -> AsyncIterator[SessionName]:
        listener = self._endings.listen()
        with contextlib.suppress(Unavailable):  # the next `seen` watches them, and raises the error
            self._watch_all(self._records.all())
        return listener

    async def clear_scrollback(self, name: SessionName) -> None:
        await asyncio.to_thread(output.clear, self._records.home(name) / shim.OUTPUT)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        await asyncio.to_thread(staging.copy_file, source, Path(self._known(name).work_dir), destination)

    async def cleanup(self) -> None:
        await asyncio.to_thread(self._rotate)

    async def close(self) -> None:
        self._watches.cancel_all()
        await self._leftovers.all_ended()

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _launch(self, spec: SessionSpec) -> Record:
        session_id = self._ids.make("ses")
        staging.check_command(spec)
        try:
            await settling.prepare(spec, dict(spec.env))
            record, launched = await asyncio.shield(asyncio.to_thread(self._spawn, spec, session_id))
        except (OutOfDescriptors, SessionAlive):
            raise  # not a failure of this session: it runs, or is started when descriptors are free again
        except (OSError, LampError) as error:
            raise StartFailed(spec.name, str(error).rstrip(".")) from error
        self._children[record.session_id] = launched.shim
        self._watch(record)
        if not launched.started:
            said = await self.peek(spec.name)
            await self._end(record, timedelta(0))
            await asyncio.to_thread(self._records.remove, spec.name)
            raise StartFailed(spec.name, "its shim ended before the program ran", output=said, hint="Is the disk full?")
        return record

    def _spawn(self, spec: SessionSpec, session_id: str) -> tuple[Record, shim.Launched]:
        """Raises SessionAlive if another process of this node has started it."""
        making = self._records.making(
            spec,
            session_id,
            self._clock.now(),
            lambda home: shim.furnish(home, takes_input=spec.takes_input),
            lambda before: not self._is_at_work(before),
        )
        with making as record:
            env = dict(spec.env) | record.env()
            crash_point(CrashPoint.SESSION_BEFORE_LAUNCH)
            try:
                launched = shim.launch(self._records.home(spec.name), spec.command, env, spec.work_dir)
            except (OSError, Unavailable):
                self._records.remove(spec.name)
                raise
            crash_point(CrashPoint.SESSION_AFTER_LAUNCH)
        return record, launched

    def _is_at_work(self, record: Record) -> bool:
        seen = self._see_files(record)
        if seen is not None:
            return seen.alive
        marks = Marks(record.session_id, session="", city="")
        return bool(members(all_processes(), (), marks))

    async def _settled(self, spec: SessionSpec, record: Record) -> Seen:
        async def alive() -> bool:
            program = shim.program_of(self._records.home(spec.name))
            return program is not None and is_alive(program)

        env = dict(spec.env) | record.env()
        settled = await settling.settle(self, spec, env, clock=self._clock, alive=alive)
        if settled is None:
            raise StartFailed(spec.name, "its program ended before it was ready", output=await self.peek(spec.name))
        return settled.seen(await self._see(record))

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _end(self, record: Record, grace: timedelta) -> None:
        home = self._records.home(record.name)
        program, parent = shim.program_of(home), shim.shim_of(home)
        marks = Marks(record.session_id, record.name, self._city)

        def without_shim(table: Mapping[int, Process]) -> list[Process]:
            found = members(table, (program,) if program else (), marks)
            return [process for process in found if parent is None or process.identity() != parent]

        if not await end_all(self._table, without_shim, grace=grace):
            raise StopFailed(record.name, "some of its processes outlived SIGKILL")
        if parent is not None and not await all_ended([parent], _SHIM_WAIT):
            send(parent, signal.SIGKILL)
            await all_ended([parent], _SHIM_WAIT)

    # ── seeing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> list[tuple[Record, Seen | None]]:
        return [(record, self._see_files(record)) for record in self._records.all()]

    def _see_files(self, record: Record) -> Seen | None:
        """The session as its files show it; None for a start interrupted before the shim recorded the program."""
        home = self._records.home(record.name)
        program = self._program(record, home)
        alive = program is not None and is_alive(program)
        ending = not alive and self._has_shim(home)  # asked first: a shim that is gone has written the status
        status = None if alive else shim.exit_status_of(home)
        if program is None and status is None:
            return None
        alive = alive or (ending and status is None)  # a moment later it is dead, with its status
        written = output.last_written(f"{home}/{shim.OUTPUT}")
        return self._seen(record, written, alive=alive, pid=program.pid if program else None, status=status)

    def _has_shim(self, home: Path) -> bool:
        parent = shim.shim_of(home)
        return parent is not None and is_alive(parent)

    def _program(self, record: Record, home: Path) -> Identity | None:
        """The program of this start, cached: once known, it never changes."""
        found = self._programs.get(record.name)
        if found is None or found[0] != record.session_id:
            program = shim.program_of(home)
            if program is None:
                return None
            found = self._programs[record.name] = (record.session_id, program)
        return found[1]

    async def _see(self, record: Record) -> Seen:
        seen = self._see_files(record)
        if seen is not None:
            return seen
        marks = Marks(record.session_id, session="", city="")
        found = members(await self._table.look(), (), marks)
        seen = self._see_files(record)  # the shim may have recorded it since
        return seen or self._seen(record, None, alive=bool(found), pid=found[0].pid if found else None, status=None)

    def _seen(
        self, record: Record, written: datetime | None, *, alive: bool, pid: int | None, status: int | None
    ) -> Seen:
        return Seen(
            name=record.name,
            alive=alive,
            session_id=record.session_id,
            pid=pid,
            exit_status=status,
            started_at=record.started_at,
            last_activity=activity_since(record.started_at, written),
            meta=self._records.meta(record.name),
        )

    # ── watching ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_all(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.session_id not in self._watches:
                self._watch(record)

    def _watch(self, record: Record) -> None:
        """Watch the shim, which writes the exit status before it ends; if it ends before the program, watch that."""
        home = self._records.home(record.name)
        parent = shim.shim_of(home)
        if parent is None:
            return
        cancel = self._shims.watch(home, parent, lambda: self._shim_ended(record))
        self._watches.add(record.session_id, cancel)

    def _shim_ended(self, record: Record) -> None:
        child = self._children.pop(record.session_id, None)
        if child is not None:
            reap(child)
        program = self._program_if_current(record)
        if program is not None and may_live(program):
            self._watches.add(record.session_id, watch(program, lambda: self._program_ended(record)))
        else:
            self._program_ended(record)

    def _program_ended(self, record: Record) -> None:
        self._watches.ended(record.session_id)
        self._endings.announce(record.name)

    def _program_if_current(self, record: Record) -> Identity | None:
        """The program if this start is still current; None also if that is unknown: listeners look themselves."""
        try:
            current = self._records.read(record.name)
            if current is None or current.session_id != record.session_id:
                return None
            return shim.program_of(self._records.home(record.name))
        except Unavailable:
            return None

    # ── input and files ───────────────────────────────────────────────────────────────────────────────────────────

    async def _type(self, name: SessionName, text: str) -> None:
        record = self._records.read(name)
        if record is None or not (await self._see(record)).alive:
            return
        if not record.takes_input:
            raise NoInput(name)
        await asyncio.to_thread(self._write_input, name, text.encode())

    def _write_input(self, name: SessionName, data: bytes) -> None:
        home = self._records.home(name)
        with locked(home, "input"):
            fd = os.open(home / shim.INPUT, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                _write_all(fd, data, name)
            finally:
                os.close(fd)

    def _known(self, name: SessionName) -> Record:
        record = self._records.read(name)
        if record is None:
            raise SessionUnknown(name)
        return record

    def _rotate(self) -> None:
        """Rotate the output of every session, then raise the first error, if any."""
        failed: list[OSError] = []
        self._records.sweep()
        for record in self._records.all():
            try:
                output.rotate(self._records.home(record.name) / shim.OUTPUT, self._output_bytes)
            except OSError as error:
                failed.append(error)
        if failed:
            raise failed[0]


def _write_all(fd: int, data: bytes, name: SessionName) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    while data:
        if not poll.poll(_INPUT_WAIT_MS):
            raise ProviderUnavailable(f"Session {name} does not read its input.", hint="Try again when it is idle.")
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data) :]
