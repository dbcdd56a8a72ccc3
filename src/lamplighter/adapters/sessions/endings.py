"""The streams of names of ended sessions that a provider hands to its listeners."""

import asyncio
from collections.abc import AsyncIterator
from weakref import WeakSet

from lamplighter.domain.sessions.model import SessionName


class Listener(AsyncIterator[SessionName]):
    def __init__(self) -> None:
        self._names: asyncio.Queue[SessionName] = asyncio.Queue()

    def hear(self, name: SessionName) -> None:
        self._names.put_nowait(name)

    async def __anext__(self) -> SessionName:
        return await self._names.get()


class Endings:
    """Every listener hears every name, from the moment it is made until it is let go."""

    def __init__(self) -> None:
        self._listeners: WeakSet[Listener] = WeakSet()

    def announce(self, name: SessionName) -> None:
        for listener in tuple(self._listeners):
            listener.hear(name)

    def listen(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        return listener
