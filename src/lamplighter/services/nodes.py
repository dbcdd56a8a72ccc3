"""The transactions on nodes: joining under a name, finding the leader, and ending the runs of a lost node."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lamplighter.domain.cluster.nodes import (
    Known,
    Node,
    NodeState,
    RigElsewhere,
    choose_name,
    first_among,
)
from lamplighter.domain.cluster.places import same_place, where
from lamplighter.domain.runs.model import By, Mover, RunState, Stage
from lamplighter.kit.records import record
from lamplighter.services.context import Context
from lamplighter.services.runs import executing, review
from lamplighter.services.runs.ending import lock_automation_of
from lamplighter.store.owners import TOPIC, Owner
from lamplighter.store.sessions import SessionEnd
from lamplighter.store.tx import Tx

AT_ONCE = 100
LOST = "node_lost"


@record
class Joining:
    """A process and where it works: the wanted node name, the default one, the place, and the path of each rig."""

    owner: str
    wanted: str | None
    default: str
    place: str
    rigs: Mapping[str, str]


def join(tx: Tx, joining: Joining, ctx: Context) -> Node:
    """Record the owner as a process of the node at its place. Raises NodeTaken, PlaceNamed, RigElsewhere."""
    tx.cities.lock()  # one join at a time: two nodes must not take the same name
    name = choose_name(joining.wanted, joining.default, joining.place, _known(tx, joining.owner))
    before = {node.name: node for node in tx.nodes.all()}
    beside = [owner for owner in tx.owners.on_node(name) if owner.id != joining.owner]
    _agree(beside, joining.rigs, name)
    for node in before.values():
        if same_place(node.place, joining.place) and node.name != name:
            tx.nodes.remove(node.name)  # the place has a new name from now on
    rigs = set(joining.rigs).union(*(owner.rigs for owner in beside))
    alive = before.get(name)
    since = alive.since if alive is not None and alive.state is NodeState.ALIVE else ctx.now
    node = Node(name, joining.place, tuple(sorted(rigs)), NodeState.ALIVE, since)
    tx.nodes.put(node)
    tx.owners.place(joining.owner, name, joining.rigs)
    if not beside:
        payload = {"place": where(node.place), "rigs": list(node.rigs)}
        tx.events.append(ctx.event("node.alive", subject=name, payload=payload))
    tx.wake(TOPIC)
    return node


def hold(tx: Tx, owner: str, node: str, rigs: Mapping[str, str]) -> None:
    """Record the rigs that the process holds after its configuration changed."""
    tx.cities.lock()
    tx.owners.place(owner, node, rigs)
    all_of_them = set(rigs).union(*(one.rigs for one in tx.owners.on_node(node) if one.id != owner))
    for known in tx.nodes.all():
        if known.name == node:
            tx.nodes.put(Node(node, known.place, tuple(sorted(all_of_them)), known.state, known.since))
    tx.wake(TOPIC)


def name_of(tx: Tx, place: str, default: str) -> str:
    """The node name that a command uses for its place; the command does not join the node."""
    return next((node.name for node in tx.nodes.all() if same_place(node.place, place)), default)


def held_by_others(tx: Tx, node: str) -> frozenset[str]:
    """Rigs that other nodes hold or last held; work in these rigs waits for those nodes."""
    return frozenset(rig for one in tx.nodes.all() if one.name != node for rig in one.rigs)


def leads(tx: Tx, owner: str) -> bool:
    """Whether this process does the work that only one process of the city should do."""
    return first_among((one.id, one.kind) for one in tx.owners.all()) == owner


def leads_node(tx: Tx, owner: str, node: str) -> bool:
    """Whether this process does the work that only one process of its node should do."""
    return first_among((one.id, one.kind) for one in tx.owners.on_node(node)) == owner


def alone(tx: Tx, owner: str, node: str) -> bool:
    return all(one.id == owner for one in tx.owners.on_node(node))


def end_stranded(tx: Tx, *, before: datetime, ctx: Context) -> list[str]:
    """End running runs that lost their holder by `before` and whose node has no process; returns those it ended.

    Only a retry starts them elsewhere.
    """
    return [run for run in tx.runs.stranded(before=before, limit=AT_ONCE) if _end(tx, run, ctx=ctx)]


def prune(tx: Tx, *, before: datetime) -> int:
    return tx.nodes.prune(before=before)


def _known(tx: Tx, me: str) -> list[Known]:
    busy = tx.runs.busy_nodes() | {owner.node for owner in tx.owners.others(me)}
    return [Known(node.name, node.place, node.name in busy) for node in tx.nodes.all()]


def _agree(beside: Sequence[Owner], rigs: Mapping[str, str], node: str) -> None:
    for owner in beside:
        for rig, path in owner.rigs.items():
            if rigs.get(rig, path) != path:
                raise RigElsewhere(rig, path, node)


def _end(tx: Tx, run: str, *, ctx: Context) -> bool:
    """End the run, if its row still has no holder under lock: its node may have come back and adopted it meanwhile."""
    lock_automation_of(tx, run)
    row = tx.runs.lock(run)
    if row is None or row.state is not RunState.RUNNING or row.lease.owner is not None:
        return False
    error = f"node {row.node} is gone, and did not come back in time"
    ending = review.Ending(RunState.FAILED, LOST, Stage.FINALIZER, error=error)
    review.end(tx, run, ending, By(Mover.FINALIZER, ctx.actor.name), ctx=ctx)
    executing.session_ended(tx, run, SessionEnd(ctx.now, "its node was lost"))
    return True
