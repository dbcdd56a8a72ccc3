"""Finds out, from another process, which processes of a city live: by their proofs of life, not by their rows."""

from lamplighter.app.wiring import OpenCity
from lamplighter.services import node_views
from lamplighter.services.status_views import NodeView
from lamplighter.store.owners import Owner
from lamplighter.store.url import open_proofs


def living(city: OpenCity) -> list[Owner]:
    known = city.store.read(lambda tx: tx.owners.all())
    if not known:
        return []
    proofs = open_proofs(city.place)
    try:
        return [owner for owner in known if not proofs.dead(owner.id)]
    finally:
        proofs.close()


def living_workers(city: OpenCity) -> list[Owner]:
    return [owner for owner in living(city) if owner.kind == "worker"]


def nodes_of(city: OpenCity) -> list[NodeView]:
    """The nodes of the city as status and doctor show them."""
    return city.store.read(node_views.every, living(city))
