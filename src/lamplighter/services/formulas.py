"""Cooking formulas into wisps in one transaction, and deleting old closed wisps with their steps."""

from dataclasses import replace
from datetime import datetime

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead
from lamplighter.kit.ids import IdSource
from lamplighter.services import beads
from lamplighter.store.tx import Tx

COLLECT_AT_ONCE = 200


def cook(tx: Tx, plan: Plan, *, prefix: str, ids: IdSource, act: Act) -> Bead:
    """Create the root and every step; needs between steps become needs between their beads."""
    root = beads.create(tx, plan.root, prefix=prefix, ids=ids, act=act)
    made: dict[str, str] = {}
    for step in plan.in_order():
        needs = tuple(made[need] for need in step.needs)
        bead = beads.create(tx, replace(step, parent=root.id, needs=needs), prefix=prefix, ids=ids, act=act)
        made[step.ref or bead.id] = bead.id
    return root


def collect(tx: Tx, *, closed_before: datetime) -> int:
    """Delete a batch of ephemeral molecules closed before then, with their steps.

    Returns how many, so that the caller can repeat until none is left.
    """
    wisps = tx.beads.collectable(before=closed_before, limit=COLLECT_AT_ONCE)
    if wisps:
        tx.beads.delete_trees(wisps)
    return len(wisps)
