"""Pruning of old records by age in small batches; records under way or still to be read are kept."""

from datetime import datetime

from lamplighter.kit.ids import oldest_id
from lamplighter.store.tx import Tx

AT_ONCE = 500


def prune_runs(tx: Tx, *, before: datetime) -> int:
    """Delete ended runs with their timelines and tracking beads."""
    old = tx.runs.old(before=before, before_id=oldest_id("run", before), limit=AT_ONCE)
    if old:
        tx.runs.delete(run for run, _ in old)
        beads = [bead for _, bead in old if bead is not None]
        if beads:
            tx.beads.delete_trees(beads)
    return len(old)


def prune_trigger_events(tx: Tx, *, before: datetime) -> int:
    return tx.trigger_events.prune(before=before, before_id=oldest_id("tev", before), limit=AT_ONCE)


def prune_outbox(tx: Tx, *, before: datetime) -> int:
    return tx.outbox.prune(before=before, before_id=oldest_id("out", before), limit=AT_ONCE)


def prune_effects(tx: Tx, *, before: datetime) -> int:
    """Delete effects with a recorded result; an intent without a result stays on record."""
    return tx.effects.prune(before=before, limit=AT_ONCE)


def unread_events(tx: Tx) -> int:
    """The seq above which some trigger still has events to read; retention keeps those events."""
    city = tx.cities.find()
    scanned = 0 if city is None else city.events_scanned
    lowest = tx.triggers.lowest_cursor()
    return scanned if lowest is None else min(lowest, scanned)
