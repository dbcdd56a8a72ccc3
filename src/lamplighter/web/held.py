"""How streams end: when the token that began them is void, and with nobody left waiting for their next item."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any, TypeVar

from lamplighter.domain.access import Actor, Forbidden, Unauthenticated
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.operation import Operation

T = TypeVar("T")
AGAIN = timedelta(seconds=1)
"""How long a look at the token counts."""


async def called_off(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel the tasks and wait for their end, also where the waiting itself is canceled, as when a client leaves: a
    generator can be closed only once nobody waits for its next item.
    """
    interrupted = False
    for task in tasks:
        task.cancel()
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                interrupted = True
    if interrupted:
        raise asyncio.CancelledError


async def while_held(
    parts: AsyncGenerator[T, None], city: CityOperations, operation: Operation[Any, Any], actor: Actor
) -> AsyncGenerator[T, None]:
    """The parts, as long as the actor may have them; the token is looked at before a part is given out."""
    looked = city.clock.now()
    async with aclosing(parts):
        async for part in parts:
            now = city.clock.now()
            if actor.token is not None and not looked <= now < looked + AGAIN:
                try:
                    await city.still_may(operation, actor)
                except (Forbidden, Unauthenticated):
                    return
                looked = now
            yield part
