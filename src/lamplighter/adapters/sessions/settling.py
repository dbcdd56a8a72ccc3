"""Makes a new session ready for input: answers dialogs, waits for the prompt, runs set-up commands."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from lamplighter.adapters.sessions import staging
from lamplighter.domain.sessions.model import Dialog, SessionName, SessionSpec
from lamplighter.domain.sessions.screens import answer, is_ready
from lamplighter.kit import log
from lamplighter.kit.clock import Clock

POLL = timedelta(milliseconds=200)
SETUP_LIMIT = timedelta(seconds=60)
_ANSWERS = 2


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
) -> bool:
    """Wait for readiness, run the commands after the start, nudge. False when the program dies before it is ready."""
    if not await _ready(provider, spec, clock, alive):
        return False
    for command in spec.setup.after:
        try:
            await staging.run(command, work_dir=spec.work_dir, env=env, within=SETUP_LIMIT)
        except staging.SetupFailed as failed:
            log.get().warning("session.setup_failed", session=spec.name, error=failed.message)
    if spec.nudge:
        await provider.nudge(spec.name, spec.nudge)
    return True


async def _ready(provider: Spoken, spec: SessionSpec, clock: Clock, alive: Callable[[], Awaitable[bool]]) -> bool:
    readiness = spec.readiness
    if not readiness.reads_screen and not spec.dialogs:
        if readiness.delay:
            await clock.wait(asyncio.Event(), at_most=readiness.delay)
            return await alive()
        return True
    within = readiness.within if readiness.reads_screen else max(readiness.delay, timedelta(seconds=1))
    deadline = clock.monotonic() + within.total_seconds()
    answered: list[Dialog] = []
    last = ""
    while await alive():
        screen = await provider.screen(spec.name)
        # A dialog is answered at most twice, the second time in case it did not take the first keys.
        asked = answer(screen, [dialog for dialog in spec.dialogs if answered.count(dialog) < _ANSWERS])
        if asked is not None:
            if screen != last:
                answered.append(asked[0])
                await provider.send_keys(spec.name, *asked[1])
            last = screen
        elif is_ready(screen, readiness):
            return True
        if clock.monotonic() >= deadline:
            if readiness.reads_screen:
                log.get().warning("session.not_ready", session=spec.name, after_s=within.total_seconds())
            return True
        await clock.wait(asyncio.Event(), at_most=POLL)
    return False
