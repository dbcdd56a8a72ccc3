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
_NUDGES = 2


class Spoken(Protocol):
    """The part of a provider that settling needs."""

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


async def settle(
    provider: Spoken, spec: SessionSpec, env: dict[str, str], *, clock: Clock, alive: Callable[[], Awaitable[bool]]
) -> str | None:
    """Wait for readiness, run the commands after the start, nudge. None when the program dies before it is ready, else
    why its nudge did not arrive, empty if it did.

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
        return ""
    return await _nudge(provider, spec) if ready else "It did not become ready, so it was not nudged."


def with_failed_nudge(seen: Seen, why: str) -> Seen:
    """`seen` with the reason why the first nudge did not arrive, if it did not."""
    return replace(seen, meta={**seen.meta, meta.NUDGE_FAILED: why}) if why else seen


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
            if not await self._answers(screen) and self._is_settled():
                return True
            if self.clock.monotonic() >= deadline:
                if readiness.reads_screen:
                    log.get().warning("session.not_ready", session=self.spec.name, after_s=within.total_seconds())
                return not readiness.reads_screen
            await self.clock.wait(asyncio.Event(), at_most=POLL)
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
