"""The provider `exec`: sessions of any kind, which a script starts, queries and stops."""

import asyncio
import contextlib
import json
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from lamplighter.adapters.sessions import settling
from lamplighter.adapters.sessions.endings import Endings
from lamplighter.adapters.sessions.exec.script import START_LIMIT, Script, ScriptFailed
from lamplighter.adapters.sessions.locks import NameLocks
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec, Setup
from lamplighter.domain.sessions.screens import LINES_READ
from lamplighter.kit import json_text, log
from lamplighter.kit.clock import Clock, from_rfc3339, rfc3339
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.kit.tasks import spawn
from lamplighter.ports.sessions import GRACE, NoInput, SessionAlive, SessionUnknown, StartFailed, StopFailed

_SIDE_BY_SIDE = 8
_STARTED_AT = "LAMP_STARTED_AT"
_HEADLESS = "LAMP_HEADLESS"
_PROCESS_NAMES = "LAMP_PROCESS_NAMES"
# Set at the start and never changed: asked for once in the life of a session, by its id.
_LASTING = (
    meta.ENV_CITY_ID, _STARTED_AT, _HEADLESS, _PROCESS_NAMES,
    *(key for key in meta.KNOWN if key not in meta.ONE_SHOT),
)  # fmt: skip
_CALLS_A_POLL = 2  # that a look for ends may make; after one that made more, the next comes later by as much
_LONGEST_PAUSE = 30  # polls


class ExecProvider:
    """`poll` is the pause between looks for ended sessions; a script cannot report an end by itself.

    A script without `state` is asked several questions for each session. What cannot change is asked once, and looks
    for ends are spaced so that they make at most two calls in a `poll`.
    """

    def __init__(
        self, script: Path, *, city: str, clock: Clock, ids: IdSource, env: Mapping[str, str],
        poll: timedelta = timedelta(seconds=1),
    ) -> None:  # fmt: skip
        self._script = Script(script, {**env, meta.ENV_CITY_ID: city})
        self._city = city
        self._clock = clock
        self._ids = ids
        self._poll = poll
        self._endings = Endings()
        self._locks = NameLocks()
        self._side_by_side = asyncio.Semaphore(_SIDE_BY_SIDE)
        self._alive: frozenset[tuple[SessionName, str]] = frozenset()
        self._dead: frozenset[tuple[SessionName, str]] = frozenset()
        self._lasting: dict[SessionName, dict[str, str]] = {}
        self._polling: asyncio.Task[None] | None = None

    async def start(self, spec: SessionSpec) -> Seen:
        async with self._locks[spec.name]:
            before = await self.see(spec.name)
            if before is not None and before.alive:
                raise SessionAlive(spec.name)
            if before is not None:
                await self._script.call("stop", spec.name)
            await self._launch(spec)

        async def alive() -> bool:
            if not self._has_state:
                return await self._is_alive(spec.name, "\n".join(spec.process_names))
            seen = await self.see(spec.name)
            return seen is not None and seen.alive

        own = replace(spec, setup=Setup())  # the script got the set-up with `start`
        settled = await settling.settle(self, own, {}, clock=self._clock, alive=alive)
        if settled is None:
            raise StartFailed(spec.name, "its program ended before it was ready", output=await self.peek(spec.name))
        seen = await self.see(spec.name)
        if seen is None:
            raise StartFailed(spec.name, "the script started it but does not show it")
        return settled.seen(seen)

    async def nudge_when_ready(self, spec: SessionSpec, session_id: str) -> str | None:
        return await settling.nudge_when_ready(self, spec, session_id, clock=self._clock)

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        async with self._locks[name]:
            if not await self._is_ours(name):
                return
            if grace > timedelta(0):
                await self._tried("interrupt", name)
            try:
                await self._script.call("stop", name)
            except ScriptFailed as failed:
                raise StopFailed(name, failed.message) from failed

    async def interrupt(self, name: SessionName) -> None:
        if await self._is_ours(name):
            await self._tried("interrupt", name)

    async def nudge(self, name: SessionName, text: str) -> None:
        async with self._locks[name]:
            if not await self._is_ours(name):
                return
            if await self._ask_meta(name, _HEADLESS):
                raise NoInput(name)
            await self._tried("nudge", name, stdin=text)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        if await self._is_ours(name):
            await self._tried("send-keys", name, *keys)

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        if not await self._is_ours(name):
            return ""
        return (await self._tried("peek", name, str(max(lines, 0)))).rstrip("\n")

    async def screen(self, name: SessionName) -> str:
        return await self.peek(name, LINES_READ)

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        await self._known(name)
        return (str(self._script.path), "attach", name)

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        await self._known(name)
        await self._script.call("set-meta", name, key, stdin=value)

    async def get_meta(self, name: SessionName, key: str) -> str:
        return await self._ask_meta(name, key) if await self._is_ours(name) else ""

    async def remove_meta(self, name: SessionName, key: str) -> None:
        if await self._is_ours(name):
            await self._tried("remove-meta", name, key)

    async def seen(self) -> Mapping[SessionName, Seen]:
        """Makes one call of `state` if the script knows it; else `list-running` and a few calls for each session."""
        told = await self._script.call("state")
        found = _parse_state(told) if told is not None else await self._ask_each()
        return {seen.name: seen for seen in found if seen.meta.get(meta.ENV_CITY_ID) == self._city}

    async def see(self, name: SessionName) -> Seen | None:
        if self._has_state:
            found = await self.seen()
            if self._has_state:
                return found.get(name)
        if name not in await self._list():
            return None
        seen = await self._ask_one(name)
        return seen if seen is not None and seen.meta.get(meta.ENV_CITY_ID) == self._city else None

    def ended(self) -> AsyncIterator[SessionName]:
        if self._polling is None:
            self._polling = spawn(self._watch(), name="endings of sessions")
        return self._endings.listen()

    async def clear_scrollback(self, name: SessionName) -> None:
        if await self._is_ours(name):
            await self._tried("clear-scrollback", name)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        await self._known(name)
        target = PurePosixPath(destination)
        if target.is_absolute() or ".." in target.parts:
            raise UsageError(f"`{destination}` leads out of the working directory.", hint="Give a path inside it.")
        await self._script.call("copy-to", name, str(source), destination)

    async def cleanup(self) -> None:
        return

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            self._polling = None

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _launch(self, spec: SessionSpec) -> None:
        session_id = self._ids.make("ses")
        marks = {
            **spec.meta,
            meta.ENV_CITY_ID: self._city,
            meta.ENV_SESSION_ID: session_id,
            _STARTED_AT: rfc3339(self._clock.now()),
            **({} if spec.takes_input else {_HEADLESS: "1"}),
            **({_PROCESS_NAMES: "\n".join(spec.process_names)} if spec.process_names else {}),
        }
        config = json.dumps(_config(spec, self._city, session_id, marks))
        try:
            await self._script.call("start", spec.name, stdin=config, within=START_LIMIT)
        except ScriptFailed as failed:
            raise StartFailed(spec.name, failed.message.rstrip(".")) from failed
        self._lasting.pop(spec.name, None)
        if await self._ask_meta(spec.name, meta.ENV_SESSION_ID) != session_id:  # the script ignored `meta` of the start
            for key, value in marks.items():
                await self._script.call("set-meta", spec.name, key, stdin=value)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _tried(self, *words: str, stdin: str = "") -> str:
        """Call the script; a failure does no harm: it is logged, and the answer is empty."""
        try:
            return await self._script.call(*words, stdin=stdin) or ""
        except ScriptFailed as failed:
            log.get().warning("session.script_failed", session=words[1], error=failed.message)
            return ""

    async def _is_ours(self, name: SessionName) -> bool:
        return await self._ask_meta(name, meta.ENV_CITY_ID) == self._city

    async def _known(self, name: SessionName) -> None:
        if not await self._is_ours(name):
            raise SessionUnknown(name)

    async def _ask_meta(self, name: SessionName, key: str) -> str:
        with contextlib.suppress(ScriptFailed):
            return (await self._script.call("get-meta", name, key) or "").removesuffix("\n")
        return ""

    @property
    def _has_state(self) -> bool:
        """True until the script said that it has no operation `state`."""
        return "state" not in self._script.unknown

    async def _list(self) -> list[SessionName]:
        return [SessionName(name) for name in (await self._script.call("list-running", "") or "").split()]

    async def _ask_each(self) -> list[Seen]:
        names = await self._list()
        self._lasting = {name: marks for name, marks in self._lasting.items() if name in names}
        found = await asyncio.gather(*map(self._ask_one, names))
        return [seen for seen in found if seen is not None]

    async def _ask_one(self, name: SessionName) -> Seen | None:
        async with self._side_by_side:
            lasting = await self._ask_lasting(name)
            if lasting.get(meta.ENV_CITY_ID) != self._city:
                return None
            marks = lasting | await self._ask_marks(name)
            alive = await self._is_alive(name, marks.get(_PROCESS_NAMES, ""))
            activity = await self._tried("get-last-activity", name)
        return _seen({"name": name, "alive": alive, "last_activity": activity.strip(), "meta": marks})

    async def _ask_lasting(self, name: SessionName) -> dict[str, str]:
        """What the session was started with; one call if it is still the one that was asked before."""
        session_id = await self._ask_meta(name, meta.ENV_SESSION_ID)
        known = self._lasting.get(name)
        if known is not None and session_id and known[meta.ENV_SESSION_ID] == session_id:
            return known
        city = await self._ask_meta(name, meta.ENV_CITY_ID)
        found = {meta.ENV_SESSION_ID: session_id, meta.ENV_CITY_ID: city}
        if city == self._city:
            found |= {key: value for key in _LASTING if (value := await self._ask_meta(name, key))}
        if session_id:
            self._lasting[name] = found
        return found

    async def _ask_marks(self, name: SessionName) -> dict[str, str]:
        """The marks that people, agents and the patrol set; a drain's reason is there only where a drain is."""
        found = {key: await self._ask_meta(name, key) for key in meta.ONE_SHOT if key != meta.DRAIN_REASON}
        if found[meta.DRAIN]:
            found[meta.DRAIN_REASON] = await self._ask_meta(name, meta.DRAIN_REASON)
        return {key: value for key, value in found.items() if value}

    async def _is_alive(self, name: SessionName, process_names: str) -> bool:
        return (await self._tried("process-alive", name, stdin=process_names)).strip() != "false"

    # ── watching ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        await every(self._pause, self._look_for_ends, clock=self._clock, wake=asyncio.Event())

    def _pause(self) -> timedelta:
        calls = 1 if self._has_state else 1 + len(self._lasting)
        return self._poll * min(max(calls / _CALLS_A_POLL, 1), _LONGEST_PAUSE)

    async def _look_for_ends(self) -> None:
        with contextlib.suppress(LampError):  # the script may succeed at the next look
            if self._has_state:
                found = (await self.seen()).values()
                self._compare((seen.name, seen.session_id, seen.alive) for seen in found)
            else:
                self._compare(await self._ask_lives())

    async def _ask_lives(self) -> list[tuple[SessionName, str, bool]]:
        """Name, id and life of each session, by one call for each that was seen before."""
        names = await self._list()
        new = await asyncio.gather(*(self._ask_one(name) for name in names if name not in self._lasting))
        told = {seen.name: (seen.name, seen.session_id, seen.alive) for seen in new if seen is not None}
        known = [name for name, marks in self._lasting.items() if marks[meta.ENV_CITY_ID] == self._city]
        asked = await asyncio.gather(*(self._ask_life(name) for name in known if name in names and name not in told))
        return [*asked, *told.values()]

    async def _ask_life(self, name: SessionName) -> tuple[SessionName, str, bool]:
        marks = self._lasting[name]
        async with self._side_by_side:
            return name, marks[meta.ENV_SESSION_ID], await self._is_alive(name, marks.get(_PROCESS_NAMES, ""))

    def _compare(self, sessions: Iterable[tuple[SessionName, str, bool]]) -> None:
        """Announce sessions that were alive and are not any more, or that started and ended between two looks."""
        lives = tuple(sessions)
        by_life = {life: frozenset((name, session_id) for name, session_id, alive in lives if alive is life)
                   for life in (True, False)}  # fmt: skip
        for name, _ in sorted((self._alive - by_life[True]) | (by_life[False] - self._dead)):
            self._endings.announce(name)
        self._alive, self._dead = by_life[True], by_life[False]


def _config(spec: SessionSpec, city: str, session_id: str, marks: Mapping[str, str]) -> dict[str, object]:
    identity = {meta.ENV_CITY_ID: city, meta.ENV_SESSION: spec.name, meta.ENV_SESSION_ID: session_id}
    return {
        "work_dir": spec.work_dir,
        "command": shlex.join(spec.command),
        "argv": spec.command,
        "env": {**spec.env, **identity},
        "process_names": spec.process_names,
        "ready_prompt_prefix": spec.readiness.prompt_prefix,
        "ready_delay_ms": int(spec.readiness.delay.total_seconds() * 1000),
        "pre_start": spec.setup.before,
        "session_setup": spec.setup.after,
        "overlay_dir": spec.setup.overlay_dir,
        "copy_files": [{"src": item.source, "rel_dst": item.destination} for item in spec.setup.copy_files],
        "takes_input": spec.takes_input,
        "meta": dict(marks),
    }


def _parse_state(text: str) -> list[Seen]:
    """Parse one line of JSON for each session; other lines are ignored."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            seen = _seen(json_text.parse(line))
            if seen is not None:
                found.append(seen)
    return found


def _seen(found: Any) -> Seen | None:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    marks = found.get("meta")
    kept = {str(key): str(value) for key, value in marks.items()} if isinstance(marks, dict) else {}
    pid, status = found.get("pid"), found.get("exit_status")
    return Seen(
        name=SessionName(found["name"]),
        alive=bool(found.get("alive")),
        session_id=kept.get(meta.ENV_SESSION_ID, ""),
        pid=pid if isinstance(pid, int) else None,
        exit_status=status if isinstance(status, int) else None,
        started_at=_time(kept.get(_STARTED_AT, "")),
        last_activity=_time(found.get("last_activity")),
        attached=bool(found.get("attached")),
        meta=kept,
    )


def _time(text: object) -> datetime | None:
    try:
        return from_rfc3339(str(text)) if text else None
    except ValueError:
        return None
