"""Makes a new session ready for input: answers dialogs, waits for the prompt, runs set-up commands."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from lamplighter.adapters.sessions import staging
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Dialog, Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.screens import answer, is_ready, shows
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.ports.sessions import NotDelivered

POLL = timedelta(milliseconds=200)
SETUP_LIMIT = timedelta(seconds=60)
STILL = timedelta(seconds=1)
"""A program is ready when its sign is on the screen, the prompt it was started with has been shown, and the screen
stands still for so long: many draw their input row before they read it, or while they still work on that prompt."""
STILL_AT_MOST = timedelta(seconds=15)
"""A screen that never stands still, or never shows the prompt, is taken for ready after so long with the sign on it."""
KEYS_LOST = timedelta(seconds=5)
"""A dialog whose screen has not changed at all for so long after its answer has lost the keys."""
NOT_READY = "It did not become ready in time; it is nudged as soon as it is."
_NUDGES = 2
_LATE_FIRST, _LATE_MOST = timedelta(seconds=1), timedelta(seconds=10)
"""The pauses between looks at a program that has not become ready in time."""
_FOR_EVER = timedelta(days=365)


class Spoken(Protocol):
    """The part of a provider that settling needs."""

    async def see(self, name: SessionName) -> Seen | None: ...

    async def screen(self, name: SessionName) -> str:
        """What a person would see now, without the scrollback, which may still hold a question already answered."""
        ...

    async def send_keys(self, name: SessionName, *keys: str) -> None: ...
    async def nudge(self, name: SessionName, text: str) -> None: ...


async def prepare(spec: SessionSpec, env: dict[str, str]) -> None:
    """Copy the overlay and files and run the commands before the start. Raises SetupFailed."""
    await asyncio.to_thread(staging.copy_in, spec)
    for command in spec.setup.before:
        await staging.run(command, work_dir=spec.work_dir, env=env, within=SETUP_LIMIT)


@dataclass(frozen=True)
class Settled:
    """How a start came out: why its nudge did not arrive, empty if it did, and whether the program became ready."""

    undelivered: str = ""
    ready: bool = True

    def seen(self, seen: Seen) -> Seen:
        """`seen` with what is to be told of its first nudge, if that did not arrive."""
        if not self.undelivered:
            return seen
        waits = {} if self.ready else {meta.NUDGE_WAITS: "yes"}
        return replace(seen, meta={**seen.meta, meta.NUDGE_FAILED: self.undelivered, **waits})


async def settle(
    provider: Spoken, spec: SessionSpec, env: dict[str, str], *, clock: Clock, alive: Callable[[], Awaitable[bool]]
) -> Settled | None:
    """Wait for readiness, run the commands after the start, nudge. None when the program dies before it is ready.

    A program that does not become ready is not nudged: nothing is typed that it might take for something else.
    """
    settling = _Settling(provider, spec, clock)
    ready = await settling.ready(alive)
    if ready is None:
        return None
    for command in spec.setup.after:
        try:
            await staging.run(command, work_dir=spec.work_dir, env=env, within=SETUP_LIMIT)
        except staging.SetupFailed as failed:
            log.get().warning("session.setup_failed", session=spec.name, error=failed.message)
    if not spec.nudge:
        return Settled()
    return Settled(await _nudge(provider, spec)) if ready else Settled(NOT_READY, ready=False)


async def nudge_when_ready(provider: Spoken, spec: SessionSpec, session_id: str, *, clock: Clock) -> str | None:
    """Nudge a program that did not become ready in time as soon as it is; why that did not arrive, empty if it did.

    Nothing is typed while a person is attached: they may be typing. None when that start of the session is over.
    """
    looks = 0
    within = replace(spec, readiness=replace(spec.readiness, within=_FOR_EVER))
    settling = _Settling(provider, within, clock)

    async def is_there() -> bool:
        nonlocal looks
        seen = await provider.see(spec.name)
        if seen is None or not seen.alive or seen.session_id != session_id:
            return False
        settling.is_in_use = seen.attached
        settling.poll, looks = doubling(looks, first=_LATE_FIRST, most=_LATE_MOST), looks + 1
        return True

    return await _nudge(provider, spec) if await settling.ready(is_there) else None


async def _nudge(provider: Spoken, spec: SessionSpec) -> str:
    why = ""
    for _ in range(_NUDGES):
        try:
            await provider.nudge(spec.name, spec.nudge)
        except NotDelivered as error:
            why = error.message
        else:
            return ""
    return why


@dataclass
class _Settling:
    provider: Spoken
    spec: SessionSpec
    clock: Clock
    poll: timedelta = POLL
    is_in_use: bool = False
    """Whether a person is attached to it."""
    _answered: dict[Dialog, str] = field(default_factory=dict)  # with the screen that was answered
    _last: str = ""
    _same_since: float = 0.0
    _marked_since: float | None = None
    _prompt_shown: bool = False

    async def ready(self, alive: Callable[[], Awaitable[bool]]) -> bool | None:
        """True when it is ready, False when it did not become so in time, None when its program died before."""
        readiness = self.spec.readiness
        if not readiness.reads_screen and not self.spec.dialogs:
            if readiness.delay:
                await self.clock.wait(asyncio.Event(), at_most=readiness.delay)
                return True if await alive() else None
            return True
        within = readiness.within if readiness.reads_screen else max(readiness.delay, timedelta(seconds=1))
        deadline = self.clock.monotonic() + within.total_seconds()
        while await alive():
            screen = await self.provider.screen(self.spec.name)
            self._note(screen)
            if not self.is_in_use and not await self._answers(screen) and self._is_settled():
                return True
            if self.clock.monotonic() >= deadline:
                if readiness.reads_screen:
                    log.get().warning("session.not_ready", session=self.spec.name, after_s=within.total_seconds())
                return not readiness.reads_screen
            await self.clock.wait(asyncio.Event(), at_most=self.poll)
        return None

    def _note(self, screen: str) -> None:
        now = self.clock.monotonic()
        if screen != self._last:
            self._last, self._same_since = screen, now
        self._prompt_shown = self._prompt_shown or shows(screen, self.spec.prompt)
        if not is_ready(screen, self.spec.readiness):
            self._marked_since = None
        elif self._marked_since is None:
            self._marked_since = now

    def _is_settled(self) -> bool:
        if self._marked_since is None:
            return False
        now = self.clock.monotonic()
        still = now - max(self._same_since, self._marked_since) >= STILL.total_seconds()
        return (still and self._prompt_shown) or now - self._marked_since >= STILL_AT_MOST.total_seconds()

    async def _answers(self, screen: str) -> bool:
        """Whether a dialog is on the screen. It is answered once, and again only if its keys were lost: keys move from
        where the pointer is, and keys that come late would move it on.
        """
        asked = answer(screen, self.spec.dialogs)
        if asked is None:
            return False
        dialog, keys = asked
        before = self._answered.get(dialog)
        lost = before == screen and self.clock.monotonic() - self._same_since >= KEYS_LOST.total_seconds()
        if before is None or lost:
            self._answered[dialog] = screen
            self._same_since = self.clock.monotonic()
            await self.provider.send_keys(self.spec.name, *keys)
        return True
