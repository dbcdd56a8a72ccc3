"""Which process may take an outbox item: what the item's work needs, and what a process has."""

from collections.abc import Mapping
from typing import Any

from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.kit.records import record

_IN_THE_RIG = frozenset({ItemKind.ENQUEUE_EXECUTE.value, ItemKind.COOK.value})


@record
class Reach:
    """The items a process may take in a city with several nodes: those of its node, of its rigs, and without a need.

    `left_out` are the kinds of items it does not take.
    """

    node: str
    rigs: frozenset[str]
    left_out: frozenset[str] = frozenset()

    def takes(self, kind: str, payload: Mapping[str, Any]) -> bool:
        need = need_of(kind, payload)
        return kind not in self.left_out and (need is None or need in self.needs)

    @property
    def needs(self) -> list[str]:
        return sorted([f"node:{self.node}", *(f"rig:{rig}" for rig in self.rigs)])


def need_of(kind: str, payload: Mapping[str, Any]) -> str | None:
    """The node or rig that an item needs; None if any process can do it."""
    if payload.get("node"):
        return f"node:{payload['node']}"
    return f"rig:{payload['rig']}" if kind in _IN_THE_RIG and payload.get("rig") else None


def stage_of(run: str, rig: str | None, action: str | None = None) -> dict[str, Any]:
    """The payload of an item that moves a run to its next stage; with `action`, a worker can recognise commands without
    reading the run first.
    """
    told = {"run": run, "rig": rig, "action": action}
    return {key: value for key, value in told.items() if value}
