"""`lamp` with clocks that run fast: CLOCK_RATE times as fast as the machine's since CLOCK_FROM, a Unix time."""

import asyncio
import os
import sys
import time
from datetime import UTC, datetime, timedelta

from lamplighter.cli.main import run
from lamplighter.kit.clock import SystemClock

RATE = float(os.environ["CLOCK_RATE"])
FROM = float(os.environ["CLOCK_FROM"])
WAIT = SystemClock.wait


def now(_clock: SystemClock) -> datetime:
    return datetime.fromtimestamp(FROM + (time.time() - FROM) * RATE, UTC)


def monotonic(_clock: SystemClock) -> float:
    return time.monotonic() * RATE


async def wait(clock: SystemClock, wake: asyncio.Event, *, at_most: timedelta) -> bool:
    return await WAIT(clock, wake, at_most=at_most / RATE)


SystemClock.now = now  # type: ignore[method-assign]  the process under test has no other door for its clocks
SystemClock.monotonic = monotonic  # type: ignore[method-assign]
SystemClock.wait = wait  # type: ignore[method-assign]
sys.exit(run(sys.argv[1:]))
