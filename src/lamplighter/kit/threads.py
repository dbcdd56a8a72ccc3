"""Blocking work beside the event loop."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """asyncio.to_thread for operations, whose modules commands load that have no event loop and start faster so."""
    import asyncio

    return await asyncio.to_thread(work, *args, **kwargs)
