"""The JSON shape of nodes on every surface."""

from collections.abc import Sequence
from typing import Any

from lamplighter.domain.cluster.nodes import NodeState, where
from lamplighter.kit.clock import rfc3339
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Tx


def rows(tx: Tx, living: Sequence[Owner]) -> list[dict[str, Any]]:
    """Every node with its rigs and live processes; one recorded as alive that has no live process is shown as lost."""
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
