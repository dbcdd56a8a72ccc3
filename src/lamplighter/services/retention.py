"""How long each table's records are kept; pruning by age in small batches that spares what is under way or unread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.city.sections import Retention
from lamplighter.kit.ids import oldest_id
from lamplighter.services.rollups import prune_rollups
from lamplighter.store.tx import Tx

AT_ONCE = 500
BULKS_AT_ONCE = 20
"""Each has up to 10,000 results, which go with it."""
LONGEST_PAUSE = timedelta(hours=1)
SHORTEST_PAUSE = timedelta(seconds=1)


@dataclass(frozen=True)
class ByAge:
    """Pruned when older than this setting of `[retention]`.

    `prune` deletes one batch; None where more than the database is needed, and a phase of its own does it.
    """

    setting: str
    prune: Callable[..., int] | None = None

    def keep(self, settings: Retention) -> timedelta:
        span: timedelta = getattr(settings, self.setting)
        return span


@dataclass(frozen=True)
class With:
    """Deleted together with the record of that table to which it belongs."""

    table: str


@dataclass(frozen=True)
class Kept:
    """Not pruned by age, and why."""

    reason: str


Rule = ByAge | With | Kept


def pause(settings: Retention) -> timedelta:
    """The time between two passes: a tenth of the shortest span that is set, an hour at most."""
    spans = [span for rule in RETENTION.values() if isinstance(rule, ByAge) and (span := rule.keep(settings))]
    return max(min([LONGEST_PAUSE, *(span / 10 for span in spans)]), SHORTEST_PAUSE)


def prune_runs(tx: Tx, *, before: datetime) -> int:
    """Delete ended runs with their timelines, sessions and tracking beads."""
    old = tx.runs.old(before=before, before_id=oldest_id("run", before), limit=AT_ONCE)
    if old:
        tx.sessions.delete_of_runs(run for run, _ in old)
        tx.rounds.delete_of_runs(run for run, _ in old)
        tx.messages.delete_of_runs(run for run, _ in old)
        tx.run_fields.delete_of_runs(run for run, _ in old)
        tx.run_days.delete_of_runs(run for run, _ in old)
        tx.conversations.delete_of_runs(run for run, _ in old)
        tx.slack.delete_of_runs(run for run, _ in old)
        tx.runs.delete(run for run, _ in old)
        beads = [bead for _, bead in old if bead is not None]
        if beads:
            tx.beads.delete_trees(beads)
    return len(old)


def prune_trigger_events(tx: Tx, *, before: datetime) -> int:
    return tx.trigger_events.prune(before=before, before_id=oldest_id("tev", before), limit=AT_ONCE)


def prune_outbox(tx: Tx, *, before: datetime) -> int:
    return tx.outbox.prune(before=before, before_id=oldest_id("out", before), limit=AT_ONCE)


def prune_inbox(tx: Tx, *, before: datetime) -> int:
    """Delete settled items, with who has seen them."""
    return tx.inbox.prune(before=before, limit=AT_ONCE)


def prune_notices(tx: Tx, *, before: datetime) -> int:
    """With them go subscriptions that were told, and those whose session is gone."""
    tx.subscriptions.prune(before=before)
    return tx.notices.prune(before_id=oldest_id("ntc", before), limit=AT_ONCE)


def prune_deliveries(tx: Tx, *, before: datetime) -> int:
    """Delete old deliveries with their verdicts; those that still wait stay."""
    return tx.deliveries.prune(before_id=oldest_id("dlv", before), limit=AT_ONCE)


def prune_bulk_actions(tx: Tx, *, before: datetime) -> int:
    """Delete ended bulk actions with what became of each run."""
    return tx.bulk_actions.prune(before=before, before_id=oldest_id("blk", before), limit=BULKS_AT_ONCE)


def prune_slack_events(tx: Tx, *, before: datetime) -> int:
    """Forget what Slack told long ago: it does not repeat that."""
    tx.slack.forget_early(before=before)
    return tx.slack.prune(before=before, limit=AT_ONCE)


def prune_effects(tx: Tx, *, before: datetime) -> int:
    """Delete effects with a recorded result; an intent without a result stays on record."""
    return tx.effects.prune(before=before, limit=AT_ONCE)


def unread_events(tx: Tx) -> int:
    """The seq above which some trigger or the rollups still have events to read; retention keeps those events."""
    city = tx.cities.find()
    scanned = 0 if city is None else city.events_scanned
    lowest = tx.triggers.lowest_cursor()
    scanned = min(scanned, tx.rollups.position())
    return scanned if lowest is None else min(lowest, scanned)


# Each table of the schema, in the order of pruning: artifacts before the runs that name them, then trigger events.
RETENTION: Mapping[str, Rule] = {
    "artifacts": ByAge("artifacts"),
    "side_effects": ByAge("runs"),
    "runs": ByAge("runs", prune_runs),
    "run_events": With("runs"),
    "rounds": With("runs"),
    "messages": With("runs"),
    "run_days": With("runs"),
    "run_rollups": ByAge("rollups", prune_rollups),
    "trigger_events": ByAge("trigger_events", prune_trigger_events),
    "outbox": ByAge("outbox", prune_outbox),
    "inbox_items": ByAge("inbox", prune_inbox),
    "seen": With("inbox_items"),
    "notices": ByAge("notices", prune_notices),
    "subscriptions": With("notices"),
    "disabled_destinations": Kept(
        "They are few; they go when the destination takes notices, leads elsewhere or is removed."
    ),
    "events": ByAge("events"),
    "agent_starts": ByAge("events"),
    "agent_notes": With("agent_starts"),
    "sessions": ByAge("events"),  # of agents; those of a run go with it
    "session_events": With("sessions"),
    "beads": Kept("They are people's work; closed wisps go after `daemon.wisp_ttl`, beads of runs with their run."),
    "bead_labels": With("beads"),
    "bead_needs": With("beads"),
    "automations": Kept("They are definitions; they go when somebody deletes them, or with their file."),
    "triggers": With("automations"),
    "notes": With("automations"),
    "cursors": With("automations"),
    "conversations": With("automations"),
    "configurations": Kept("They are definitions; they go when somebody deletes them, or with their file."),
    "idempotency_keys": Kept("They go a day after their request: each new key clears old ones away."),
    "members": Kept("They are people; they go when an owner removes them, or with their organization."),
    "tokens": With("members"),
    "saved_views": Kept("They are few; they go when somebody deletes them."),
    "looks": Kept("One row for each person."),
    "pins": Kept("They are few; they go when somebody takes them off."),
    "audit": Kept("It is the record of who changed what; `lamp audit export` copies it."),
    "connections": Kept("They go when somebody deletes them."),
    "polls": With("connections"),
    "deliveries": ByAge("deliveries", prune_deliveries),
    "delivery_verdicts": With("deliveries"),
    "bulk_actions": ByAge("bulk_actions", prune_bulk_actions),
    "bulk_items": With("bulk_actions"),
    "slack_installations": Kept("They go when somebody removes them."),
    "slack_people": With("slack_installations"),
    "slack_events": ByAge("deliveries", prune_slack_events),
    "slack_threads": With("runs"),
    "slack_contacts": With("slack_installations"),
    "slack_early": Kept(
        "After ten minutes the next one that comes clears them away; else they go with old deliveries."
    ),
    "gatherings": Kept("They go when what they gather becomes a run, or with their delivery."),
    "run_fields": With("runs"),
    "secrets": Kept("They go when somebody deletes them."),
    "logins": Kept("There are few; one that works is forgotten after a month without runs."),
    "nodes": Kept("There are few; one that is gone is forgotten after a day without runs."),
    "owners": Kept("They are the processes at work; one that ended is removed at once."),
    "start_gates": Kept("One row for each city."),
    "cities": Kept("The city itself."),
    "organizations": Kept("They own cities; one without a city is removed at once."),
    "schema_level": Kept("The version of the schema."),
}
