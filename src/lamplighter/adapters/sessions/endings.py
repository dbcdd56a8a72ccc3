"""Streams of the names of ended sessions, from a provider to its listeners."""

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
    """Every listener gets every name from its creation on; one that is no longer referenced is dropped."""

    def __init__(self) -> None:
        self._listeners: WeakSet[Listener] = WeakSet()

    def announce(self, name: SessionName) -> None:
        for listener in tuple(self._listeners):
            listener.hear(name)

    def listen(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        return listener
