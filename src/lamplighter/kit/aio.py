"""The event loop every process of ours runs on."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

R = TypeVar("R")


def run(main: Coroutine[Any, Any, R]) -> R:
    """Like asyncio.run, on a loop that hands results between threads and sockets about twice as fast."""
    return uvloop.run(main)
