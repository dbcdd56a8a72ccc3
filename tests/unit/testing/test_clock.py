"""The clock that stands still until it is moved."""

import asyncio
from datetime import timedelta

import pytest

from lamplighter.testing.clock import START, FakeClock

MINUTE = timedelta(minutes=1)


def test_time_passes_only_by_hand(fake_clock: FakeClock) -> None:
    assert (fake_clock.now(), fake_clock.monotonic()) == (START, 0)
    assert fake_clock.advance(1.5) == START + timedelta(seconds=1.5)
    fake_clock.advance(MINUTE)
    assert fake_clock.monotonic() == 61.5
    with pytest.raises(ValueError, match="backwards"):
        fake_clock.advance(-1)


async def test_a_sleeper_goes_on_when_its_time_has_come(fake_clock: FakeClock) -> None:
    waiting = asyncio.create_task(fake_clock.wait(asyncio.Event(), at_most=MINUTE))
    await fake_clock.sleepers()
    fake_clock.advance(59)
    assert not waiting.done()
    fake_clock.advance(1)
    async with asyncio.timeout(10):
        assert await waiting is False


async def test_a_sleeper_can_be_woken(fake_clock: FakeClock) -> None:
    wake = asyncio.Event()
    waiting = asyncio.create_task(fake_clock.wait(wake, at_most=MINUTE))
    await fake_clock.sleepers()
    wake.set()
    async with asyncio.timeout(10):
        assert await waiting is True
        assert await fake_clock.wait(wake, at_most=MINUTE) is True
    with pytest.raises(TimeoutError):
        await fake_clock.sleepers(within=0.01)


async def test_no_time_at_all_is_no_wait(fake_clock: FakeClock) -> None:
    assert await fake_clock.wait(asyncio.Event(), at_most=timedelta()) is False
