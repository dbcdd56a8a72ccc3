"""Nodes as surfaces show them."""

from collections.abc import Sequence
from typing import Any

from lamplighter.domain.cluster.nodes import NodeState, where
from lamplighter.kit.clock import rfc3339
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Tx


def rows(tx: Tx, living: Sequence[Owner]) -> list[dict[str, Any]]:
    """Every node with its rigs and its living processes, as surfaces show it; the proof of life has the last word."""
    shown = []
    for node in tx.nodes.all():
        here = [owner for owner in living if owner.node == node.name]
        state = NodeState.LOST if node.state is NodeState.ALIVE and not here else node.state
        shown.append(
            {
                "name": node.name,
                "state": state.value,
                "since": rfc3339(node.since),
                "place": where(node.place),
                "rigs": list(node.rigs),
                "processes": [
                    {"kind": one.kind, "pid": one.pid, "host": one.host, "since": rfc3339(one.started_at),
                     "rigs": sorted(one.rigs)}
                    for one in here
                ],
            }
        )  # fmt: skip
    return shown
