"""A process of the event tests: appends events, follows them, or keeps the write lock busy."""

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path

from lamplighter.app.wakeups import listening
from lamplighter.domain.events import EventFilter
from lamplighter.kit import crash
from lamplighter.kit.clock import SystemClock
from lamplighter.services.context import acting
from lamplighter.services.event_tail import EventTail
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, open_direct, open_store, parse_store_url
from lamplighter.testing.contracts.store import AT, CITY

END = "test.end"


def write(place: Place, name: str, count: int, batch: int, passes: int) -> None:
    """Append `count` events, `batch` to a transaction, and say each number once its transaction is acknowledged."""
    store = open_direct(place, CITY)
    if passes:
        crash.arm(crash.CrashPoint.STORE_BEFORE_NUMBERING, passes=passes)
    for first in range(0, count, batch):
        last = min(first + batch, count)
        store.transact(append, name, first, last)
        print(last, flush=True)
    store.close()


def append(tx: Tx, name: str, first: int, last: int) -> None:
    for number in range(first, last):
        tx.events.append(acting(name, AT).event("test.said", subject=f"{name}:{number}"))


async def read(place: Place, name: str, into: Path) -> None:
    """Follow from the beginning until the last event; leave what was seen in a file."""
    wakes = Wakes()
    store = open_store(place, CITY, wakes)
    seen = []
    with listening(place, name, wakes):
        print("ready", flush=True)
        async with aclosing(EventTail(store, wakes, SystemClock()).follow(EventFilter())) as stream:
            async for event in stream:
                seen.append((event.seq, event.subject))
                if event.type == END:
                    break
    await store.close()
    into.write_text(json.dumps(seen), encoding="utf-8")


def saturate(place: Place) -> None:
    """Take the write lock again and again, counting the turns in the subject of the newest event."""
    store = open_direct(place, CITY)
    turn = 0
    while True:
        turn += 1
        store.transact(append, "turn", turn, turn + 1)
        if turn == 20:
            print("busy", flush=True)


def main(role: str, url: str, runtime: str, *rest: str) -> None:
    place = parse_store_url(url, Path(runtime))
    match role:
        case "write":
            name, count, batch, passes = rest
            write(place, name, int(count), int(batch), int(passes))
        case "read":
            asyncio.run(read(place, rest[0], Path(rest[1])))
        case "saturate":
            saturate(place)
        case "wake":
            with_store = open_direct(place, CITY)
            with_store.transact(lambda tx: tx.wake(rest[0]))
            with_store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
