"""A part that is loaded when it is first asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lamplighter.web.deferred import Deferred


class Part:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.up = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.up = True
        try:
            yield
        finally:
            self.up = False

    async def __call__(self, scope: Any, _receive: Any, _send: Any) -> None:
        assert self.up
        self.asked.append(scope)


async def nothing(*_: Any) -> Any:
    return None


async def test_it_is_loaded_once_when_it_is_first_asked_and_is_down_afterwards() -> None:
    loaded: list[Part] = []

    def load() -> Part:
        loaded.append(Part())
        return loaded[-1]

    part = Deferred(load)
    async with part.running():
        await asyncio.sleep(0)
        assert loaded == []
        await asyncio.gather(*(part({"n": n}, nothing, nothing) for n in range(3)))
        assert [scope["n"] for scope in loaded[0].asked] == [0, 1, 2]
    assert (len(loaded), loaded[0].up) == (1, False)


async def test_whoever_asks_is_told_why_it_could_not_be_loaded() -> None:
    def load() -> Part:
        raise ImportError("no such library")

    part = Deferred(load)
    async with part.running():
        for _ in range(2):
            with pytest.raises(ImportError, match="no such library"):
                await part({}, nothing, nothing)


async def test_whoever_asks_is_told_why_it_could_not_be_started() -> None:
    class Broken(Part):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[None]:
            raise OSError("no room")
            yield

    part = Deferred(Broken)
    async with part.running(), asyncio.timeout(60):
        for _ in range(2):
            with pytest.raises(OSError, match="no room"):
                await part({}, nothing, nothing)


async def test_it_can_be_loaded_before_it_is_asked_for_whenever_it_comes_to_run() -> None:
    loaded: list[Part] = []

    def load() -> Part:
        loaded.append(Part())
        return loaded[-1]

    part = Deferred(load)
    waiting = asyncio.create_task(part.loaded())
    await asyncio.sleep(0)
    assert not waiting.done()
    async with part.running():
        async with asyncio.timeout(60):
            await waiting
            await part.loaded()
        assert (len(loaded), loaded[0].up, loaded[0].asked) == (1, True, [])
