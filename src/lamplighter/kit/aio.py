"""The event loop every process of ours runs on."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")
TURN_SECONDS = 0.0005
"""How long a busy thread keeps one waiting that comes back from the database with an answer; the usual 5 ms are longer
than most transactions."""


def run(main: Coroutine[Any, Any, R]) -> R:
    """Like asyncio.run, with threads that take turns sooner."""
    sys.setswitchinterval(TURN_SECONDS)
    return asyncio.run(main)
