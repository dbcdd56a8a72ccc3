"""Stops all sessions: interrupts them all at once, waits for them together, then stops the rest in parallel."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.daemon.patrol.history import PatrolHistory
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import agent_of
from lamplighter.kit import log
from lamplighter.kit.errors import LampError
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.sessions import SessionProvider
from lamplighter.store.sessions import SessionEnd

SIDE_BY_SIDE = 16
ROUNDS = 3
LAST_GRACE = timedelta(seconds=2)
WHY = "the city stopped"


class SessionsLeft(LampError):
    def __init__(self, left: Sequence[str]) -> None:
        super().__init__(" ".join(left), hint="Look at their processes; `lamp stop` tries again.")


@dataclass(frozen=True)
class Stopped:
    """`left` has one error message for each session that would not stop."""

    agents: tuple[str, ...]
    left: tuple[str, ...]


async def stop_all(
    provider: SessionProvider,
    patrol_history: PatrolHistory | None,
    *,
    within: timedelta,
    spared: frozenset[str] = frozenset(),
) -> Stopped:
    """Interrupt all sessions, wait at most `within` for them to end, stop the rest. Zero stops them without waiting.

    A start that was under way may still bring up a session, so sessions found afterwards are stopped too. `spared`
    names sessions of other processes, which are left alone.
    """
    ended = provider.ended()
    seen = await _seen(provider, spared)
    alive = {name for name, session in seen.items() if session.alive}
    if within > timedelta(0) and alive:
        await _side_by_side(alive, provider.interrupt)
        await _gone(provider, alive, ended, within)
    stopped: list[str] = []
    left: list[str] = []
    for _ in range(ROUNDS):
        left = await _stop(provider, patrol_history, seen, min(within, LAST_GRACE), stopped)
        seen = await _seen(provider, spared)
        if not seen:
            break
    if patrol_history is not None:
        await patrol_history.flush()
    return Stopped(tuple(sorted(stopped)), tuple(left))


async def _seen(provider: SessionProvider, spared: frozenset[str]) -> dict[SessionName, Seen]:
    return {name: seen for name, seen in (await provider.seen()).items() if name not in spared}


async def _stop(
    provider: SessionProvider,
    patrol_history: PatrolHistory | None,
    seen: Mapping[SessionName, Seen],
    grace: timedelta,
    stopped: list[str],
) -> list[str]:
    """Returns one error message for each session that would not stop; adds the agents of the others to `stopped`."""
    left: list[str] = []

    async def stop(name: SessionName) -> None:
        try:
            await provider.stop(name, grace=grace)
        except LampError as error:
            left.append(error.message)
            return
        stopped.append(agent_of(seen[name]))
        if patrol_history is not None:
            _record(patrol_history, seen[name], agent_of(seen[name]))

    await _side_by_side(seen, stop)
    return left


def _record(patrol_history: PatrolHistory, seen: Seen, agent: str) -> None:
    event = patrol_history.event("agent.stopped", agent, WHY, {"session": seen.name, "reason": WHY})
    end = SessionEnd(patrol_history.clock.now(), WHY if seen.alive else "its program ended", seen.exit_status)
    patrol_history.ended(seen.name, end, wished=seen.alive, events=(event,))


async def _side_by_side(names: Iterable[SessionName], act: Callable[[SessionName], Awaitable[None]]) -> None:
    room = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(name: SessionName) -> None:
        async with room:
            try:
                await act(name)
            except LampError as error:
                log.get().warning("stop.wish_failed", session=name, error=error.message)

    await asyncio.gather(*(one(name) for name in list(names)))


async def _gone(
    provider: SessionProvider, alive: set[SessionName], ended: AsyncIterator[SessionName],
    within: timedelta,
) -> None:  # fmt: skip
    """Wait at most `within` until the provider has reported the end of every session in `alive`.

    The provider may miss an end; the caller looks at all sessions again afterwards.
    """
    left = set(alive)
    try:
        async with TimeLimit(within.total_seconds()):
            async for name in ended:
                if name in left and not _lives(await provider.see(name)):
                    left.discard(name)
                if not left:
                    return
    except TimeoutError:
        log.get().info("stop.survivors", count=len(left))


def _lives(seen: Seen | None) -> bool:
    return seen is not None and seen.alive
