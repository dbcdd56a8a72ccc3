"""Receives the datagrams by which other processes of the city send wake-ups to this one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from lamplighter.store.engine import Wakes, topics
from lamplighter.store.url import Place, SqliteUrl, datagrams_of

LONGEST = 4096


@contextmanager
def listening(place: Place, owner: str, wakes: Wakes) -> Iterator[None]:
    """Publish wake-ups from other processes to `wakes` within the context. The PostgreSQL store listens by itself."""
    if not isinstance(place, SqliteUrl):
        yield
        return
    datagrams = datagrams_of(place)
    receiver = datagrams.listen(owner)
    wakes.own.add(owner)
    loop = asyncio.get_running_loop()

    def receive() -> None:
        try:
            wakes.publish(topics(receiver.recv(LONGEST)))
        except BlockingIOError:
            return

    loop.add_reader(receiver.fileno(), receive)
    try:
        yield
    finally:
        loop.remove_reader(receiver.fileno())
        receiver.close()
        wakes.own.discard(owner)
        datagrams.forget(owner)
