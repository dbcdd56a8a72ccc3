"""A write load: transactions one after another or many at once, each number said once it is acknowledged."""

import asyncio
import os
import sys
from pathlib import Path

from lamplighter.kit.clock import SystemClock
from lamplighter.services.context import acting
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct, open_store, parse_store_url

CALLERS = 32


def append(tx: Tx, subject: str) -> None:
    tx.events.append(acting("load", SystemClock().now()).event("test.said", subject=subject))


def acknowledge(subject: str) -> None:
    os.write(1, f"{subject}\n".encode())


def alone(runtime: Path, city: str) -> None:
    store = open_direct(parse_store_url("", runtime), city)
    number = 0
    while True:
        store.transact(append, f"alone{number}")
        acknowledge(f"alone{number}")
        number += 1


async def together(runtime: Path, city: str, name: str) -> None:
    store = open_store(parse_store_url("", runtime), city, Wakes())

    async def caller(mine: int) -> None:
        number = 0
        while True:
            await store.transact(append, f"{name}.{mine}.{number}")
            acknowledge(f"{name}.{mine}.{number}")
            number += 1

    await asyncio.gather(*(caller(mine) for mine in range(CALLERS)))


if __name__ == "__main__":
    role, runtime, city, *rest = sys.argv[1:]
    if role == "alone":
        alone(Path(runtime), city)
    else:
        asyncio.run(together(Path(runtime), city, *rest))
