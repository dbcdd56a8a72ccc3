"""What the store keeps of a run's workspace: its block of ports, and how its setup and teardown went."""

import zlib
from collections.abc import Collection, Mapping
from typing import Any

from lamplighter.domain.runs.ports import Block, free_block
from lamplighter.services.context import Context
from lamplighter.services.runs import review
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

PORTS = "workspace_ports"
"""The name under which processes that give out ports wait for each other."""


def allot_ports(tx: Tx, run: str, node: str, count: int, *, busy: Collection[int] = ()) -> Block | None:
    """Give the run a block of ports that no other active run of the node has; None if all are taken.

    A run keeps the block it has, unless it begins at one of `busy`.
    """
    tx.cities.lock()  # one at a time: two runs must not be given the same
    row = review.get(tx, run)
    had = None if row.ports is None else Block.of(row.ports)
    if had is not None and had.count == count and had.base not in busy:
        return had
    taken = [Block.of(one) for one in tx.runs.ports_taken(node) if one != row.ports]
    found = free_block(count, taken, start=zlib.crc32(tx.city.encode()) % 997, busy=busy)
    if found is not None:
        tx.runs.set_ports(run, str(found))
    return found


def tell(tx: Tx, run: str, kind: str, data: Mapping[str, Any], ctx: Context) -> None:
    """Add to the run's timeline, once."""
    row = tx.runs.lock(run)
    if row is not None and all(event.type != kind for event in tx.runs.events(run)):
        tx.runs.add_event(NewRunEvent(run, ctx.now, kind, ctx.actor.name, row.state, row.state, data))


def is_told(tx: Tx, run: str, kind: str) -> bool:
    return any(event.type == kind for event in tx.runs.events(run))


def told(tx: Tx, run: str, kind: str) -> Mapping[str, Any] | None:
    """What its timeline has on record of that kind; None if nothing."""
    return next((event.data for event in tx.runs.events(run) if event.type == kind), None)
