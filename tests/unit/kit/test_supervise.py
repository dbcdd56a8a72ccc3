"""The supervisor: restarts within a limit, waits for what is away, stops in order and within bounds."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from lamplighter.kit.errors import Conflict, Fenced, Unavailable
from lamplighter.kit.loop import every
from lamplighter.kit.supervise import LONGEST_DELAY, Child, Supervisor, TooManyRestarts
from lamplighter.testing.clock import FakeClock

WITHIN = 120


async def for_ever() -> None:
    await asyncio.Event().wait()


class Failing:
    """Fails so many times, then works for ever."""

    def __init__(self, times: int, error: Callable[[], Exception] = RuntimeError) -> None:
        self.starts = 0
        self.working = asyncio.Event()
        self._times = times
        self._error = error

    async def run(self) -> None:
        self.starts += 1
        if self.starts <= self._times:
            raise self._error()
        self.working.set()
        await for_ever()


async def drive(
    clock: FakeClock, tree: "asyncio.Task[None]", until: asyncio.Event | None, *, step: timedelta = LONGEST_DELAY
) -> None:
    """Move the clock on, wait after wait, until the child works or the tree has ended."""
    async with asyncio.timeout(WITHIN):
        while not tree.done() and not (until and until.is_set()):
            waits = asyncio.create_task(clock.sleepers())
            works = asyncio.create_task((until or asyncio.Event()).wait())
            await asyncio.wait({waits, works, tree}, return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()
            works.cancel()
            clock.advance(step)
            await asyncio.sleep(0)


async def cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    async with asyncio.timeout(WITHIN):
        await asyncio.wait({task})


async def test_a_child_that_fails_is_started_again(fake_clock: FakeClock) -> None:
    child = Failing(3)
    tree = asyncio.create_task(Supervisor(fake_clock).run([Child("weak", child.run)]))
    await drive(fake_clock, tree, child.working)
    assert child.starts == 4
    await cancelled(tree)


async def test_a_child_that_fails_too_often_is_given_up_upward(fake_clock: FakeClock) -> None:
    child = Failing(100)
    tree = asyncio.create_task(Supervisor(fake_clock, limit=3).run([Child("weak", child.run), Child("well", for_ever)]))
    await drive(fake_clock, tree, None)
    with pytest.raises(TooManyRestarts, match="weak failed more than 3 times"):
        await tree
    assert child.starts == 4


async def test_failures_far_apart_are_forgiven(fake_clock: FakeClock) -> None:
    child = Failing(10)
    tree = asyncio.create_task(Supervisor(fake_clock, limit=2).run([Child("weak", child.run)]))
    await drive(fake_clock, tree, child.working, step=timedelta(minutes=2))
    assert child.starts == 11
    await cancelled(tree)


async def test_what_is_away_is_waited_for_without_limit(fake_clock: FakeClock) -> None:
    child = Failing(50, lambda: Unavailable("the disk is full"))
    tree = asyncio.create_task(Supervisor(fake_clock, limit=2).run([Child("patient", child.run)]))
    await drive(fake_clock, tree, child.working)
    assert child.starts == 51
    await cancelled(tree)


async def test_another_error_with_a_kind_counts(fake_clock: FakeClock) -> None:
    child = Failing(100, lambda: Conflict("taken"))
    tree = asyncio.create_task(Supervisor(fake_clock, limit=1).run([Child("weak", child.run)]))
    await drive(fake_clock, tree, None)
    with pytest.raises(TooManyRestarts):
        await tree


async def test_what_a_fence_drops_is_cut_off_and_not_stopped(fake_clock: FakeClock) -> None:
    asked: list[str] = []

    def stopping(name: str) -> Callable[[], Awaitable[None]]:
        async def stop() -> None:
            asked.append(name)

        return stop

    none = timedelta(0)
    children = [
        Child("kept", for_ever, stop=stopping("kept"), stop_within=none),
        Child("dropped", for_ever, stop=stopping("dropped"), stop_within=none, dropped_when_fenced=True),
        Child("fenced", Failing(100, lambda: Fenced("buried")).run),
    ]
    with pytest.raises(Fenced):
        await Supervisor(fake_clock).run(children)
    assert asked == ["kept"]


async def test_a_fenced_child_ends_the_tree_at_once(fake_clock: FakeClock) -> None:
    child = Failing(100, lambda: Fenced("buried"))
    with pytest.raises(Fenced):
        await Supervisor(fake_clock).run([Child("ghost", child.run)])
    assert child.starts == 1


async def test_the_tree_returns_when_every_child_has(fake_clock: FakeClock) -> None:
    ended: list[str] = []
    last = asyncio.Event()

    async def short() -> None:
        ended.append("short")

    async def long() -> None:
        await last.wait()
        ended.append("long")

    tree = asyncio.create_task(Supervisor(fake_clock).run([Child("a", short), Child("b", long)]))
    await asyncio.wait({tree}, timeout=0.05)
    assert (tree.done(), ended) == (False, ["short"])
    last.set()
    async with asyncio.timeout(WITHIN):
        await tree
    assert ended == ["short", "long"]


def _recording(name: str, heard: list[str], gate: asyncio.Event) -> tuple[Child, Callable[[], Awaitable[None]]]:
    async def run() -> None:
        try:
            await gate.wait()
            heard.append(f"{name} ended")
        except asyncio.CancelledError:
            heard.append(f"{name} cancelled")
            raise

    async def stop() -> None:
        heard.append(f"{name} asked")
        gate.set()

    return Child(name, run, stop), stop


async def test_children_are_stopped_last_one_first_and_may_end_by_themselves(fake_clock: FakeClock) -> None:
    heard: list[str] = []
    children = [_recording(name, heard, asyncio.Event())[0] for name in ("one", "two", "three")]
    tree = asyncio.create_task(Supervisor(fake_clock).run(children))
    await asyncio.sleep(0)
    await cancelled(tree)
    assert heard == ["three asked", "three ended", "two asked", "two ended", "one asked", "one ended"]


async def test_a_stop_that_hangs_or_fails_keeps_nobody_else_running(fake_clock: FakeClock) -> None:
    heard: list[str] = []

    async def fails() -> None:
        raise RuntimeError("no")

    first, _ = _recording("first", heard, asyncio.Event())
    hangs = Child("hangs", for_ever, for_ever, stop_within=timedelta(milliseconds=10))
    tree = asyncio.create_task(Supervisor(fake_clock).run([first, hangs, Child("fails", for_ever, fails)]))
    await asyncio.sleep(0)
    await cancelled(tree)
    assert heard == ["first asked", "first ended"]


async def test_the_loop_ticks_at_once_when_woken_and_after_its_period(fake_clock: FakeClock) -> None:
    ticks: asyncio.Queue[float] = asyncio.Queue()

    async def tick() -> None:
        ticks.put_nowait(fake_clock.monotonic())

    wake = asyncio.Event()
    task = asyncio.create_task(every(lambda: timedelta(seconds=30), tick, clock=fake_clock, wake=wake))
    async with asyncio.timeout(WITHIN):
        assert await ticks.get() == 0
        await fake_clock.sleepers()
        fake_clock.advance(10)
        wake.set()
        assert await ticks.get() == 10
        await fake_clock.sleepers()
        fake_clock.advance(29.9)
        await asyncio.sleep(0)
        assert ticks.empty()
        fake_clock.advance(0.1)
        assert await ticks.get() == 40
    task.cancel()
    await asyncio.wait({task})
