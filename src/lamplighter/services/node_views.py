"""Nodes as every surface shows them, and the operation that lists them."""

from collections.abc import Sequence

from lamplighter.domain.access import Verb
from lamplighter.domain.cluster.places import where
from lamplighter.kit.records import record
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect
from lamplighter.services.status_views import NodeView, ProcessView
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


def every(tx: Tx, living: Sequence[Owner]) -> list[NodeView]:
    """Every node with its rigs and live processes; one recorded as alive that has no live process is shown as lost."""
    found = []
    for node in tx.summary.nodes():
        here = [owner for owner in living if owner.node == node.name]
        state = "lost" if node.state == "alive" and not here else node.state
        processes = [ProcessView(one.kind, one.pid, one.host, one.started_at, sorted(one.rigs)) for one in here]
        found.append(NodeView(node.name, state, node.since, where(node.place), list(node.rigs), processes))
    return found


@record
class ListNodes:
    """The nodes of the city: where each is, whether it is alive, its rigs and its processes."""


async def list_nodes(host: "Host", _ask: ListNodes, _ctx: Context) -> list[NodeView]:
    return await host.store.read(every, await host.living())


LIST = effect(
    "node.list", Verb.READ, ListNodes, list[NodeView], list_nodes,
    here_after=LOOK_S, tool="node_list", http=Http("GET", "/nodes"),
)  # fmt: skip
