"""Who may take an outbox item: what its work needs, and what a process has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.delivery.outbox import ItemKind

_IN_THE_RIG = frozenset({ItemKind.ENQUEUE_EXECUTE.value, ItemKind.COOK.value})


@dataclass(frozen=True)
class Reach:
    """What a process of a city with several nodes may take: its node's items, those of its rigs, and those of anyone.

    `left_out` are kinds of items it takes none of.
    """

    node: str
    rigs: frozenset[str]
    left_out: frozenset[str] = frozenset()

    @property
    def needs(self) -> list[str]:
        return sorted([f"node:{self.node}", *(f"rig:{rig}" for rig in self.rigs)])


def need_of(kind: str, payload: Mapping[str, Any]) -> str | None:
    """None for what any process can do."""
    if payload.get("node"):
        return f"node:{payload['node']}"
    return f"rig:{payload['rig']}" if kind in _IN_THE_RIG and payload.get("rig") else None


def stage_of(run: str, rig: str | None, action: str | None = None) -> dict[str, Any]:
    """The payload of an item that takes a run to its next stage; who knows its action need not look at it first."""
    told = {"run": run, "rig": rig, "action": action}
    return {key: value for key, value in told.items() if value}
