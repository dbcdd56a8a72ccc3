"""Runs commands of automations under the shim of headless sessions: exit status on disk, whole process tree ended."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.processes.child import Call, NotStarted, Output, TookTooLong, run_child
from lamplighter.adapters.processes.table import Identity, Process, all_processes, is_alive
from lamplighter.adapters.processes.tree import Marks, ProcessTable, end_all, members
from lamplighter.adapters.processes.watch import watch
from lamplighter.adapters.sessions.local import output, shim
from lamplighter.adapters.sessions.records import Record, Records
from lamplighter.domain.sessions.meta import ENV_CITY_ID, ENV_SESSION, ENV_SESSION_ID
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit import descriptors
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import (
    OUTPUT_BYTES,
    Command,
    CommandEnded,
    CommandNotStarted,
    CommandNotStopped,
    NoDirectory,
)
from lamplighter.ports.sessions import SessionAlive

GRACE = timedelta(seconds=5)
CHECK_GRACE = timedelta(milliseconds=200)
CHECK_SESSION = "lamp-check"
MOST_OUTPUT = 1 << 20
TRIM_SOON = timedelta(milliseconds=50)
TRIM_LATER = timedelta(milliseconds=500)
LOOK_AGAIN = timedelta(milliseconds=200)


class ShimCommands:
    """The commands under one directory, `.gc/commands`; a later process that opens it finds them again."""

    def __init__(self, root: Path, *, city: str, clock: Clock, ids: IdSource) -> None:
        self._records = Records(root, city)
        self._city = city
        self._clock = clock
        self._ids = ids
        self._table = ProcessTable()
        self._running: dict[SessionName, Record] = {}
        """The started commands until `forget`: a command must be ended even when its directory was removed."""

    async def run(self, command: Command) -> CommandEnded:
        name = SessionName(command.key)
        record = self._records.read(name)
        if record is None or not self._has_begun(record):
            record = await self._start(name, command)
        self._running[name] = record
        try:
            left = command.limit - (self._clock.now() - record.started_at)
            timed_out = not await self._ended_within(record, max(left, timedelta(0)))
            if timed_out:
                await self._end(record, GRACE)
            return self._ended(record, timed_out=timed_out)
        except OSError as error:
            if descriptors.is_shortage(error):
                raise descriptors.OutOfDescriptors from error
            raise

    async def check(self, command: Command) -> CommandEnded:
        started = self._clock.now()
        mark = self._ids.make("ses")
        env = dict(command.env) | {ENV_SESSION_ID: mark, ENV_SESSION: CHECK_SESSION, ENV_CITY_ID: self._city}
        call = Call(("/bin/sh", "-c", command.line), command.work_dir, env, command.limit, output=Output.NONE)
        code: int | None = None
        try:
            code = (await run_child(call)).exit_code
        except NotStarted as error:
            raise CommandNotStarted(command.key, error.reason) from error
        except TookTooLong:
            pass  # a result without exit code says so
        return CommandEnded(code, started, self._clock.now() - started, timed_out=code is None)

    async def stop(self, key: str, *, grace: timedelta) -> None:
        name = SessionName(key)
        record = self._records.read(name) or self._running.get(name)
        if record is not None and not await self._end(record, grace):
            raise CommandNotStopped(key)

    async def forget(self, key: str) -> None:
        self._running.pop(SessionName(key), None)
        await asyncio.to_thread(self._records.remove, SessionName(key))

    async def kept(self) -> list[str]:
        return [str(record.name) for record in await asyncio.to_thread(lambda: list(self._records.all()))]

    async def sweep(self, *, checks: bool = True) -> None:
        await asyncio.to_thread(self._records.sweep)
        if not checks:
            return
        marks = Marks("", CHECK_SESSION, self._city)
        await end_all(self._table, lambda table: members(table, (), marks), grace=CHECK_GRACE)

    async def tail(self, key: str) -> str:
        return await asyncio.to_thread(output.end_of, self._home(SessionName(key)) / shim.OUTPUT, OUTPUT_BYTES)

    async def _start(self, name: SessionName, command: Command) -> Record:
        spawning = asyncio.ensure_future(asyncio.to_thread(self._spawn, name, command))
        try:
            record, started = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            await asyncio.wait({spawning})  # a later `stop` must find it
            raise
        except NotADirectoryError as error:
            raise NoDirectory(command.key, str(error.strerror)) from error
        except OSError as error:
            raise CommandNotStarted(command.key, error.strerror or str(error)) from error
        except SessionAlive as error:
            found = self._records.read(name)
            if found is None:
                raise CommandNotStarted(command.key, error.message.rstrip(".")) from error
            return found  # another process of this node has started it
        except LampError as error:
            raise CommandNotStarted(command.key, error.message.rstrip(".")) from error
        if not started and self._status(record) is None:
            said = output.end_of(self._home(name) / shim.OUTPUT, 500).strip()
            await self.forget(name)
            raise CommandNotStarted(command.key, f"its shim ended before it ran ({said or 'is the disk full?'})")
        return record

    def _spawn(self, name: SessionName, command: Command) -> tuple[Record, bool]:
        """Raises SessionAlive if another process of this node has started it."""
        if not Path(command.work_dir).is_dir():
            raise NotADirectoryError(0, f"{command.work_dir} is not a directory")
        line = ("/bin/sh", "-c", command.line)
        spec = SessionSpec(name=name, command=line, work_dir=command.work_dir, takes_input=False)
        making = self._records.making(
            spec, self._ids.make("ses"), self._clock.now(), lambda home: _furnish(home, command.files), self._is_idle
        )
        with making as record:
            self._running[name] = record
            home = self._home(name)
            paths = {variable: str(home / _file_of(variable)) for variable in command.files}
            crash_point(CrashPoint.COMMAND_BEFORE_LAUNCH)
            launched = shim.launch(home, line, dict(command.env) | paths | record.env(), command.work_dir)
            crash_point(CrashPoint.COMMAND_AFTER_LAUNCH)
        self._records.clear_away()
        return record, launched.started

    def _has_begun(self, record: Record) -> bool:
        """Whether its shim has run, as its files show it."""
        home = self._home(record.name)
        return shim.shim_of(home) is not None or shim.program_of(home) is not None or self._status(record) is not None

    def _is_idle(self, record: Record) -> bool:
        """Whether it was only prepared: the process that did so died, and no shim of it is about to show itself."""
        if self._has_begun(record):
            return False
        marks = Marks(record.session_id, session="", city="")
        return not members(all_processes(), (), marks) and not self._has_begun(record)

    async def _ended_within(self, record: Record, limit: timedelta) -> bool:
        """Wait for its end and keep its output within bounds meanwhile; False when the limit comes first."""
        ended = asyncio.Event()
        cancel = self._watch(record, ended)
        until, pause = self._clock.monotonic() + limit.total_seconds(), min(limit, TRIM_SOON)
        path = self._home(record.name) / shim.OUTPUT
        try:
            while not await self._clock.wait(ended, at_most=pause):
                cut = await asyncio.to_thread(_trimmed, path)
                left = timedelta(seconds=until - self._clock.monotonic())
                if left <= timedelta(0):
                    return ended.is_set()
                pause = min(left, TRIM_SOON if cut else min(pause * 2, TRIM_LATER))
        finally:
            cancel()
        return True

    def _watch(self, record: Record, ended: asyncio.Event) -> "_Watching":
        return _Watching(self._living(record), ended, lambda: self._living(record))

    def _living(self, record: Record) -> Identity | None:
        """Its shim, which writes the exit status before it ends; the program if the shim was killed; else None."""
        home = self._home(record.name)
        for who in (shim.shim_of(home), shim.program_of(home)):
            if who is not None and is_alive(who):
                return who
        return None

    async def _end(self, record: Record, grace: timedelta) -> bool:
        """False if a process is left."""
        home = self._home(record.name)
        program, parent = shim.program_of(home), shim.shim_of(home)
        marks = Marks(record.session_id, session="", city="")

        def without_shim(table: Mapping[int, Process]) -> list[Process]:
            found = members(table, (program,) if program else (), marks)
            return [process for process in found if parent is None or process.identity() != parent]

        await end_all(self._table, without_shim, grace=grace)
        await self._ended_within(record, GRACE)
        roots = (parent,) if parent is not None else ()
        return await end_all(self._table, lambda table: members(table, roots, marks), grace=timedelta(0))

    def _ended(self, record: Record, *, timed_out: bool) -> CommandEnded:
        _reap(shim.shim_of(self._home(record.name)))
        path = self._home(record.name) / shim.OUTPUT
        at = output.last_written(self._home(record.name) / "exit") or self._clock.now()
        status = None if timed_out else self._status(record)
        return CommandEnded(
            exit_code=status,
            started_at=record.started_at,
            duration=max(at - record.started_at, timedelta(0)),
            output=output.end_of(path, OUTPUT_BYTES),
            timed_out=timed_out,
        )

    def _status(self, record: Record) -> int | None:
        return shim.exit_status_of(self._home(record.name))

    def _home(self, name: SessionName) -> Path:
        return self._records.home(name)


class _Watching:
    """Sets `ended` once the shim has ended and, if the shim was killed first, the program too."""

    def __init__(self, who: Identity | None, ended: asyncio.Event, living: Callable[[], Identity | None]) -> None:
        self._ended = ended
        self._living = living
        self._cancel: Callable[[], None] = _nothing
        self._follow(who)

    def __call__(self) -> None:
        self._cancel()

    def _follow(self, who: Identity | None) -> None:
        if who is None:
            self._ended.set()
        else:
            self._cancel = watch(who, self._look)

    def _look(self) -> None:
        try:
            self._follow(self._living())
        except Unavailable:  # no descriptor is free to look with
            self._cancel = asyncio.get_running_loop().call_later(LOOK_AGAIN.total_seconds(), self._look).cancel


def _nothing() -> None:
    return


def _trimmed(path: Path) -> bool:
    """Trim the output; a failure is ignored and tried again next time, as it must not end a running command."""
    try:
        return output.trim(path, MOST_OUTPUT, OUTPUT_BYTES)
    except OSError:
        return False


def _furnish(home: Path, files: Mapping[str, str]) -> None:
    shim.furnish(home, takes_input=False)
    for variable, content in files.items():
        path = home / _file_of(variable)
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)


def _file_of(variable: str) -> str:
    return variable.lower().removeprefix("lamp_").removesuffix("_file") + ".json"


def _reap(who: Identity | None) -> None:
    """Reap the shim if it is our child; one that an earlier process started is not."""
    if who is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(who.pid, os.WNOHANG)
