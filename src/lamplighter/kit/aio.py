"""The event loop every process of ours runs on."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")
TURN_SECONDS = 0.0005
"""How long a busy thread may delay a thread that returns from the database with an answer; Python's default of 5 ms is
longer than most transactions take."""


def run(main: Coroutine[Any, Any, R]) -> R:
    """Like asyncio.run, but threads switch more often."""
    sys.setswitchinterval(TURN_SECONDS)
    return asyncio.run(main)
