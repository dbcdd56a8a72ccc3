"""The hot queries use their index on both databases, with enough rows for another plan to be tempting."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lamplighter.domain.beads.model import BeadFilter
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.events import EventFilter
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.runs.query import parse
from lamplighter.store.deliveries import REPEATED
from lamplighter.store.engine import Wakes
from lamplighter.store.engine import db as store_db
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, open_direct, open_store
from lamplighter.testing.contracts.store import AT, CITY

EVENTS = 8_000
BEADS = 3_000
ROWS = 6_000
NOW = store_db.stamp(AT)


class Listening:
    """Stands in for the connection: notes what is asked instead of answering."""

    def __init__(self, real: store_db.Db) -> None:
        self._real = real
        self.dialect = real.dialect
        self.asked: list[tuple[str, store_db.Params]] = []

    def rows(self, sql: str, params: store_db.Params) -> list[store_db.Row]:
        self.asked.append((sql, params))
        return self._real.rows(sql, params)

    def row(self, sql: str, params: store_db.Params) -> store_db.Row | None:
        self.asked.append((sql, params))
        return self._real.row(sql, params)

    def execute(self, sql: str, params: store_db.Params) -> int:
        self.asked.append((sql, params))
        return self._real.execute(sql, params)

    def execute_many(self, sql: str, params: list[store_db.Params]) -> None:
        self._real.execute_many(sql, params)


@pytest.fixture
def filled(place: Place) -> Iterator[DirectStore]:
    direct = open_direct(place, CITY)
    direct.transact(_fill)
    yield direct
    direct.close()


def _fill(tx: Tx) -> None:
    tx.db.execute_many(
        "INSERT INTO run_fields (city_id, path, value, run_id) VALUES (:city, :path, :value, :run)",
        [
            {"city": CITY, "path": ("repo", "author")[n % 2], "value": f"r{n // 2 % 100}", "run": f"run_{n:026}"}
            for n in range(ROWS)
        ],
    )
    numbered = tx.db.dialect.name == "postgres"
    seq, value = ("seq, ", ":n, ") if numbered else ("", "")
    tx.db.execute_many(
        f"INSERT INTO events ({seq}city_id, type, at, actor) VALUES ({value}:city, :type, :at, 'a')",
        [
            {"n": n, "city": "cty_other" if n % 8 else CITY, "type": f"kind.{n // 8 % 40}", "at": NOW + n}
            for n in range(1, EVENTS + 1)
        ],
    )
    tx.db.execute_many(
        """INSERT INTO beads (city_id, id, title, type, status, root_id, ephemeral, created_at, updated_at, closed_at)
        VALUES (:city, :id, 't', 'task', :status, :id, :ephemeral, :at, :at, :closed)""",
        [
            {"city": CITY, "id": f"b{n}", "status": "open" if n % 20 == 0 else "closed", "at": NOW + n,
             "ephemeral": int(n % 50 == 1), "closed": None if n % 20 == 0 else NOW + n}
            for n in range(BEADS)
        ],
    )  # fmt: skip
    tx.db.execute_many(
        "INSERT INTO bead_labels (city_id, bead_id, label) VALUES (:city, :id, :label)",
        [{"city": CITY, "id": f"b{n}", "label": f"label{n % 300}"} for n in range(BEADS)],
    )
    _fill_automations(tx)
    if numbered:
        tx.db.execute("ANALYZE", {})  # as the server does by itself; SQLite goes by the statistics of the schema


def _fill_automations(tx: Tx) -> None:
    """Many at rest, few due; a long history, few under way."""
    tx.db.execute_many(
        """INSERT INTO automations (id, city_id, scoped_name, name, source, enabled, armed_at, quiet_at, created_at,
                                    created_by, updated_at)
        VALUES (:id, :city, :id, :id, 'api', 1, :at, :quiet, :at, 'a', :at)""",
        [{"city": CITY, "id": f"aut_{n}", "at": NOW, "quiet": NOW if n % 900 == 0 else None} for n in range(ROWS)],
    )
    tx.db.execute_many(
        """INSERT INTO triggers (city_id, automation_id, id, kind, position, armed, registered_at, next_due_at,
                                 event_key)
        VALUES (:city, :automation, 't', :kind, 0, 1, :at, :due, :key)""",
        [
            {"city": CITY, "automation": f"aut_{n}", "at": NOW, "kind": ("cron", "event", "condition")[min(n % 60, 2)],
             "due": None if n % 60 else NOW + n * 1_000_000, "key": f"kind.{n}" if n % 60 == 1 else None}
            for n in range(ROWS)
        ],
    )  # fmt: skip
    tx.db.execute_many(
        """INSERT INTO runs (city_id, id, automation_id, automation, action, state, trigger_id, trigger_kind,
                             trigger_event_id, definition, lease_owner, lease_expires_at, node, created_at, ended_at,
                             deadline_at)
        VALUES (:city, :id, :automation, :automation, 'exec', :state, 't', 'cron', :id, '{}', :owner, :at, 'here', :at,
                :ended, :at)""",
        [
            {"city": CITY, "id": f"run_{n:06}", "automation": f"aut_{n % 50}", "at": NOW + n,
             "state": "running" if n % 500 == 0 else "succeeded", "owner": f"own_{n}" if n % 500 == 0 else None,
             "ended": None if n % 500 == 0 else NOW + n}
            for n in range(ROWS)
        ],
    )  # fmt: skip
    tx.db.execute_many(
        """INSERT INTO outbox (city_id, id, kind, run_id, payload, state, due_at, claimed_by, claimed_at, settled_at)
        VALUES (:city, :id, 'enqueue_execute', :id, '{}', :state, :at, :owner, :at, :settled)""",
        [
            {"city": CITY, "id": f"out_{n:06}", "at": NOW + n, "settled": NOW + n if n % 300 > 1 else None,
             "state": ("pending", "claimed")[n % 300] if n % 300 < 2 else "done",
             "owner": f"own_{n}" if n % 300 == 1 else None}
            for n in range(ROWS)
        ],
    )  # fmt: skip
    tx.db.execute_many(
        """INSERT INTO inbox_items (city_id, id, kind, fingerprint, subject, state, opened_at, first_at, last_at,
                                    settled_at, told)
        VALUES (:city, :id, 'failed', :print, :subject, :state, :at, :at, :at, :settled, :state)""",
        [
            {"city": CITY, "id": f"inb_{n:06}", "print": f"f{n}" if n < 100 else f"f{n % 500}", "at": NOW + n,
             "state": "open" if n < 100 else "settled", "settled": None if n < 100 else NOW + n,
             "subject": f"aut_{n % 50}"}
            for n in range(ROWS)
        ],
    )  # fmt: skip
    tx.db.execute(
        "UPDATE runs SET fingerprint = 'f' || (created_at % 500), state = 'failed' WHERE city_id = :city"
        " AND state = 'succeeded' AND created_at % 7 = 0",
        {"city": CITY},
    )
    tx.db.execute_many(
        """INSERT INTO trigger_events (city_id, id, automation_id, automation, trigger_id, kind, status, dedup_key,
                                       first_at, last_at)
        VALUES (:city, :id, :automation, :automation, 't', 'cron', 'fired', :id, :at, :at)""",
        [{"city": CITY, "id": f"tev_{n:06}", "automation": f"aut_{n % 50}", "at": NOW + n} for n in range(ROWS)],
    )


def plan_of(direct: DirectStore, ask: str, *, reading: bool = False) -> str:
    """How the database would answer what `ask` asks first, in a transaction that writes or in one that reads."""

    def explain(tx: Tx) -> str:
        listening = Listening(tx.db)
        ASKS[ask](Tx(listening, CITY))
        sql, params = listening.asked[0]
        if tx.db.dialect.name == "sqlite":
            return "\n".join(row["detail"] for row in tx.db.rows("EXPLAIN QUERY PLAN " + sql, params))
        return json.dumps([dict(row) for row in tx.db.rows("EXPLAIN " + sql, params)])

    return direct.read(explain) if reading else direct.transact(explain)


ASKS = {
    "after": lambda tx: tx.events.after(EVENTS - 400, limit=500),
    "after of type": lambda tx: tx.events.after_of_type("kind.7", EVENTS // 2, limit=500),
    "newest": lambda tx: tx.events.latest(EventFilter(), limit=1),
    "newest of type": lambda tx: tx.events.latest(EventFilter(type="kind.7"), limit=10),
    "next of those followed": lambda tx: tx.events.next_matching(EventFilter(after=EVENTS - 400), limit=500),
    "head": lambda tx: tx.events.head(),
    "bead": lambda tx: tx.beads.get("b7"),
    "ready": lambda tx: tx.beads.ready(limit=10),
    "by label": lambda tx: tx.beads.matching(BeadFilter(label="label7"), limit=10),
    "by the label of an automation": lambda tx: tx.beads.matching(BeadFilter(label="automation-run:aut_1"), limit=10),
    "by the label of a failure": lambda tx: tx.beads.matching(BeadFilter(label="exec-failed"), limit=10),
    "by status": lambda tx: tx.beads.matching(BeadFilter(status="open"), limit=10),  # type: ignore[arg-type]  # its text
    "collectable": lambda tx: tx.beads.collectable(before=AT, limit=10),
    "types of new events": lambda tx: tx.events.types_after(EVENTS - 400, limit=500),
    "due triggers": lambda tx: tx.triggers.due(AT, limit=10),
    "next due": lambda tx: tx.triggers.next_due_at(),
    "listeners": lambda tx: tx.triggers.mark_due({"kind.1", "kind.*", "*"}, AT),
    "conditions": lambda tx: tx.triggers.conditions(),
    "quiet": lambda tx: tx.automations.quiet(AT, limit=10),
    "due items": lambda tx: tx.outbox.due(AT, limit=10),
    "next item": lambda tx: tx.outbox.next_due_at(),
    "due items within reach": lambda tx: tx.outbox.due(AT, limit=10, reach=Reach("here", frozenset({"web"}))),
    "next item within reach": lambda tx: tx.outbox.next_due_at(reach=Reach("here", frozenset({"web"}))),
    "items by need": lambda tx: tx.outbox.needed(),
    "ghosts": lambda tx: tx.owners.stale_claims(),
    "stranded runs": lambda tx: tx.runs.stranded(before=AT, limit=10),
    "nodes at work": lambda tx: tx.runs.busy_nodes(),
    "held runs": lambda tx: tx.runs.held(),
    "claims of an owner": lambda tx: tx.outbox.claimed_by("own_1"),
    "active of one": lambda tx: tx.runs.active_of("aut_0"),
    "turns of one": lambda tx: tx.runs.active_of("aut_0", turns=True),
    "leases of an owner": lambda tx: tx.runs.void_leases("own_0", now=AT),
    "orphans": lambda tx: tx.runs.has_orphans("here", AT),
    "triggers of a connection": lambda tx: tx.triggers.of_connection("gh"),
    "deliveries of a connection": lambda tx: tx.deliveries.page(connection="gh", before=None, limit=10),
    "newest deliveries": lambda tx: tx.deliveries.page(connection=None, before=None, limit=10),
    "ids of the newest deliveries": lambda tx: tx.deliveries.newest(limit=10),
    "size of some deliveries": lambda tx: tx.deliveries.size(["dlv_1", "dlv_2"]),
    "a delivery sent again": lambda tx: tx.db.row(REPEATED, {"city": CITY, "connection": "gh", "external_id": "d-1"}),
    "waiting runs of a bulk action": lambda tx: tx.bulk_actions.waiting("blk_1", range(100, 200), limit=100),
    "results of a bulk action": lambda tx: tx.bulk_actions.results("blk_1", outcome=None, after=99, limit=100),
    "newest bulk actions": lambda tx: tx.bulk_actions.page(state=None, before=None, limit=10),
    "old bulk actions": lambda tx: tx.bulk_actions.prune(before=AT, before_id="blk_9", limit=10),
    "ids of runs by state": lambda tx: tx.runs.search_ids(parse("state:failed", AT), limit=10, most=10),
    "runs by what was delivered": lambda tx: tx.runs.search(parse("payload.repo:r7", AT, ["repo"]), limit=10),
    "runs of one": lambda tx: tx.runs.page(automation="aut_1", limit=10),
    "newest runs": lambda tx: tx.runs.page(limit=10),
    "runs by state": lambda tx: tx.runs.page(state=RunState.RUNNING, limit=10),
    "the newest run": lambda tx: tx.runs.newest(),
    "the newest run of one": lambda tx: tx.runs.newest(automation="aut_1"),
    "runs by the beginning of an id": lambda tx: tx.runs.beginning("run_0000", limit=6),
    "the retry of a run": lambda tx: tx.runs.retried_by("aut_1", "run_000001"),
    "the last failures": lambda tx: tx.summary.latest_runs(["failed"], since="run_", limit=3),
    "beads by the beginning of an id": lambda tx: tx.beads.like("b77", limit=6),
    "ids of sessions": lambda tx: tx.sessions.ids(limit=10),
    "old runs": lambda tx: tx.runs.old(before=AT, before_id="run_000050", limit=10),
    "history": lambda tx: tx.trigger_events.history("aut_1", limit=10),
    "overdue runs": lambda tx: tx.runs.overdue(AT, limit=10),
    "the next deadline": lambda tx: tx.runs.next_deadline(before=AT),
    "stale agent runs": lambda tx: tx.runs.stale(AT, silent_since=AT, limit=10),
    "claims to be verified": lambda tx: tx.runs.called(["run_000001"]),
    "rounds of a run": lambda tx: tx.rounds.of("run_000001"),
    "messages that wait": lambda tx: tx.messages.waiting("run_000001"),
    "ports that are taken": lambda tx: tx.runs.ports_taken("here"),
    "notes of an automation": lambda tx: tx.notes.latest("aut_1"),
    "the cursor of an automation": lambda tx: tx.cursors.get("aut_1"),
    "a conversation": lambda tx: tx.conversations.run_of("aut_1", "7"),
    "conversations of runs": lambda tx: tx.conversations.delete_of_runs(["run_000001"]),
    "what runs used today": lambda tx: tx.run_days.spent(AT, AT),
    "what runs of one used today": lambda tx: tx.run_days.spent(AT, AT, automation="aut_1"),
    "runs at work": lambda tx: tx.run_gates.at_work(),
    "runs that wait for a place": lambda tx: tx.run_gates.waiting("limit", before="run_9", since=AT),
    "all worktrees": lambda tx: tx.runs.worktrees(limit=10),
    "kept worktrees": lambda tx: tx.runs.with_worktree("here", before=AT, limit=10),
    "worktrees in use": lambda tx: tx.runs.in_worktrees(),
    "sessions of a run": lambda tx: tx.sessions.of_run("run_000001"),
    "artifacts of a run": lambda tx: tx.artifacts.of("run_000001"),
    "artifacts of some runs": lambda tx: tx.artifacts.of_some(["run_000001", "run_000002"]),
    "last runs of some": lambda tx: tx.runs.last_of(["aut_1"]),
    "old artifacts": lambda tx: tx.artifacts.old(before=AT, limit=10),
    "rollups of all": lambda tx: tx.rollups.since(AT),
    "rollups by hour": lambda tx: tx.rollups.by_hour(AT),
    "rollups by automation": lambda tx: tx.rollups.by_key(AT, model=False),
    "rollups by model": lambda tx: tx.rollups.by_key(AT, model=True),
    "rollups of one": lambda tx: tx.rollups.since(AT, automation="aut_1"),
    "runs by id": lambda tx: tx.runs.some(["run_000001"]),
    "the open item of a fingerprint": lambda tx: tx.inbox.lock_open("f7"),
    "open items": lambda tx: tx.inbox.open_ones(limit=10),
    "items to tell": lambda tx: tx.inbox.to_tell(limit=10),
    "items that are counted": lambda tx: tx.inbox.counting(after="", limit=10),
    "when a fingerprint was settled": lambda tx: tx.inbox.settled_until("f7"),
    "items of a subject": lambda tx: tx.inbox.settle_of_subject("aut_1", ["failed"], by="a", how="b", now=AT),
    "old items": lambda tx: tx.inbox.prune(before=AT, limit=10),
    "how many need a person": lambda tx: tx.summary.attention(AT),
    "runs alike, counted": lambda tx: tx.runs.folded("f7", after=-1),
    "runs alike": lambda tx: tx.runs.alike("f7", after=-1, limit=10),
    "runs that nobody judged": lambda tx: tx.runs.unjudged(limit=10),
    "runs that were retried": lambda tx: tx.runs.retried(["run_000001"]),
    "a later success": lambda tx: tx.runs.succeeded_since("aut_1", "run_005900", AT),
    "automations to look at": lambda tx: tx.automations.noted(limit=10),
    "given up items": lambda tx: tx.outbox.given_up(limit=10),
    "a transcript": lambda tx: tx.transcripts.after("ses_1"),
    "runs searched by automation": lambda tx: tx.runs.search(
        parse("automation:aut_1 state:succeeded reason:x*", AT), limit=10
    ),
    "runs searched by state": lambda tx: tx.runs.search(parse("state:running -rig:web", AT), limit=10),
    "runs searched by age": lambda tx: tx.runs.search(parse("automation:aut_1* -reason:x", AT), limit=10),
    "runs searched since": lambda tx: tx.runs.search(parse("automation:aut_1 since:1d until:1h", AT), limit=10),
    "items of the outbox that are open": lambda tx: tx.outbox.open_items(),
    "runs under way": lambda tx: tx.summary.active_runs(),
    "a token": lambda tx: tx.tokens.by_hash("x"),
    "what was changed": lambda tx: tx.audit.page(limit=10),
    "what one changed": lambda tx: tx.audit.page(actor="a", limit=10),
    "old keys": lambda tx: tx.idempotency.prune(AT),
}
INDEX = {
    "after": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "Index Scan using events_"},
    "after of type": {"sqlite": "events_of_type", "postgres": "events_of_type"},
    "newest": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "events_"},
    "newest of type": {"sqlite": "events_of_type", "postgres": "events_"},
    "next of those followed": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "Index Scan using events_"},
    "head": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "events_"},
    "bead": {"sqlite": "PRIMARY KEY", "postgres": "beads_pkey"},
    "ready": {"sqlite": "beads_by_status", "postgres": "beads_by_"},
    "by label": {"sqlite": "bead_labels_by_label", "postgres": "bead_labels_by_label"},
    "by the label of an automation": {"sqlite": "runs_of", "postgres": "runs_of"},
    "by the label of a failure": {"sqlite": "bead_labels_by_label", "postgres": "runs_by_state"},
    "by status": {"sqlite": "beads_by_status", "postgres": "beads_by_"},
    "collectable": {"sqlite": "beads_to_collect", "postgres": "beads_to_collect"},
    "types of new events": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "Index Scan using events_"},
    "due triggers": {"sqlite": "triggers_due", "postgres": "triggers_due"},
    "next due": {"sqlite": "triggers_due", "postgres": "triggers_due"},
    "listeners": {"sqlite": "triggers_by_event", "postgres": "triggers_by_event"},
    "conditions": {"sqlite": "triggers_checked", "postgres": "triggers_checked"},
    "quiet": {"sqlite": "automations_quiet", "postgres": "automations_quiet"},
    "due items": {"sqlite": "outbox_due", "postgres": "outbox_due"},
    "next item": {"sqlite": "outbox_due", "postgres": "outbox_due"},
    "due items within reach": {"sqlite": "outbox_due", "postgres": "outbox_due"},
    "next item within reach": {"sqlite": "outbox_due", "postgres": "outbox_due"},
    "items by need": {"sqlite": "outbox_due", "postgres": "outbox_due"},
    "ghosts": {"sqlite": "runs_leased", "postgres": "runs_leased"},
    "stranded runs": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "nodes at work": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "held runs": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "claims of an owner": {"sqlite": "outbox_claimed", "postgres": "outbox_claimed"},
    "active of one": {"sqlite": "runs_active", "postgres": "runs_active"},
    "leases of an owner": {"sqlite": "runs_leased", "postgres": "runs_leased"},
    "orphans": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "triggers of a connection": {"sqlite": "triggers_of_hook", "postgres": "triggers_of_hook"},
    "deliveries of a connection": {"sqlite": "deliveries_of", "postgres": "deliveries_"},
    "newest deliveries": {"sqlite": "sqlite_autoindex_deliveries_1", "postgres": "deliveries_"},
    "a delivery sent again": {"sqlite": "deliveries_once", "postgres": "deliveries_"},
    "runs by what was delivered": {"sqlite": "run_fields USING PRIMARY KEY", "postgres": "run_fields_pkey"},
    "runs of one": {"sqlite": "runs_of", "postgres": "runs_of"},
    "newest runs": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "runs by state": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "the newest run": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "the newest run of one": {"sqlite": "runs_of", "postgres": "runs_of"},
    "runs by the beginning of an id": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "the retry of a run": {"sqlite": "runs_retried", "postgres": "runs_retried"},
    "the last failures": {"sqlite": "runs_by_state", "postgres": "runs_by_state"},
    "beads by the beginning of an id": {"sqlite": "PRIMARY KEY", "postgres": "beads_pkey"},
    "ids of sessions": {"sqlite": "sessions_by_age", "postgres": "sessions_"},
    "old runs": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "history": {"sqlite": "trigger_events_of", "postgres": "trigger_events_of"},
    "overdue runs": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "the next deadline": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "stale agent runs": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "claims to be verified": {"sqlite": "autoindex_runs", "postgres": "runs_"},
    "rounds of a run": {"sqlite": "PRIMARY KEY", "postgres": "rounds_pkey"},
    "messages that wait": {"sqlite": "messages_of_run", "postgres": "messages_"},
    "ports that are taken": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "notes of an automation": {"sqlite": "PRIMARY KEY", "postgres": "notes_pkey"},
    "the cursor of an automation": {"sqlite": "PRIMARY KEY", "postgres": "cursors"},
    "a conversation": {"sqlite": "PRIMARY KEY", "postgres": "conversations"},
    "conversations of runs": {"sqlite": "conversations_of_run", "postgres": "conversations"},
    "what runs used today": {"sqlite": "run_days_by_day", "postgres": "run_days"},
    "what runs of one used today": {"sqlite": "run_days_by_day", "postgres": "run_days"},
    "runs at work": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "runs that wait for a place": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "all worktrees": {"sqlite": "runs_with_worktree", "postgres": "runs_"},
    "kept worktrees": {"sqlite": "runs_with_worktree", "postgres": "runs_"},
    "worktrees in use": {"sqlite": "runs_", "postgres": "runs_"},
    "sessions of a run": {"sqlite": "sessions_of_run", "postgres": ""},
    "artifacts of a run": {"sqlite": "PRIMARY KEY", "postgres": ""},
    "artifacts of some runs": {"sqlite": "PRIMARY KEY", "postgres": ""},
    "last runs of some": {"sqlite": "runs_of", "postgres": "runs_of"},
    "old artifacts": {"sqlite": "artifacts_by_age", "postgres": ""},
    "rollups of all": {"sqlite": "PRIMARY KEY (city_id=? AND hour>?)", "postgres": "run_rollups"},
    "rollups by hour": {"sqlite": "PRIMARY KEY (city_id=? AND hour>?)", "postgres": "run_rollups"},
    "rollups by automation": {"sqlite": "run_rollups", "postgres": "run_rollups"},
    "rollups by model": {"sqlite": "PRIMARY KEY (city_id=? AND hour>?)", "postgres": "run_rollups"},
    "rollups of one": {"sqlite": "run_rollups_of", "postgres": "run_rollups"},
    "runs by id": {"sqlite": "autoindex_runs", "postgres": "runs_"},
    "the open item of a fingerprint": {"sqlite": "inbox_open", "postgres": "inbox_"},
    "open items": {"sqlite": "inbox_open", "postgres": "inbox_"},
    "items to tell": {"sqlite": "inbox_to_tell", "postgres": "inbox_to_tell"},
    "items that are counted": {"sqlite": "inbox_to_tell", "postgres": "inbox_to_tell"},
    "when a fingerprint was settled": {"sqlite": "inbox_of_fingerprint", "postgres": "inbox_of_fingerprint"},
    "items of a subject": {"sqlite": "inbox_of_subject", "postgres": "inbox_"},
    "old items": {"sqlite": "inbox_settled", "postgres": "inbox_settled"},
    "how many need a person": {"sqlite": "inbox_", "postgres": "inbox_"},
    "runs alike, counted": {"sqlite": "runs_by_fingerprint", "postgres": "runs_by_fingerprint"},
    "runs alike": {"sqlite": "runs_by_fingerprint", "postgres": "runs_by_fingerprint"},
    "runs that nobody judged": {"sqlite": "runs_unjudged", "postgres": "runs_"},
    "runs that were retried": {"sqlite": "runs_retried", "postgres": "runs_retried"},
    "a later success": {"sqlite": "runs_of", "postgres": "runs_"},
    "automations to look at": {"sqlite": "automations_noted", "postgres": "automations_noted"},
    "given up items": {"sqlite": "outbox_failed", "postgres": "outbox_"},
    "a transcript": {"sqlite": "PRIMARY KEY", "postgres": ""},
    "runs searched by automation": {"sqlite": "runs_of", "postgres": "runs_of"},
    "runs searched by state": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "runs searched by age": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "runs searched since": {"sqlite": "runs_of", "postgres": "runs_"},
    "items of the outbox that are open": {"sqlite": "outbox_due", "postgres": "outbox_"},
    "runs under way": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "a token": {"sqlite": "tokens_by_hash", "postgres": ""},
    "what was changed": {"sqlite": "PRIMARY KEY", "postgres": ""},
    "what one changed": {"sqlite": "audit_of", "postgres": ""},
    "old keys": {"sqlite": "idempotency_keys_by_age", "postgres": ""},
}
SORTED_ANYWAY = {
    "by label", "by the label of an automation", "by the label of a failure",
    "types of new events", "ghosts", "items by need", "nodes at work",
    "leases of an owner", "claims of an owner", "active of one", "overdue runs",
    "the next deadline",
    "stale agent runs",
    "sessions of a run", "runs searched by automation", "runs searched by state", "runs searched by age", "old keys",
    "the retry of a run",
    "runs under way",
    "rollups of one", "rollups by hour", "rollups by automation", "rollups by model",
}  # fmt: skip
"""Few rows of one label, type or owner may well be sorted."""


READ = (
    "after", "after of type", "newest", "newest of type", "next of those followed", "head", "bead", "ready", "by label",
    "by the label of an automation", "by status", "types of new events", "next due", "next item", "active of one",
    "runs of one", "newest runs", "runs by state", "history",
)  # fmt: skip
"""What is asked by transactions that only read; PostgreSQL plans these as it is set up to."""


def test_lists_use_their_index_as_the_server_plans_them(filled: DirectStore, place: Place) -> None:
    dialect = "postgres" if isinstance(place, PostgresUrl) else "sqlite"
    for ask in READ:
        plan = plan_of(filled, ask, reading=True)
        assert INDEX[ask][dialect] in plan, f"{ask}: {plan}"
        for table in ("beads", "events", "runs", "triggers", "outbox"):
            assert f"Seq Scan on {table}" not in plan, f"{ask}: {plan}"


def test_every_index_of_sqlite_has_its_statistics(sqlite_place: SqliteUrl) -> None:
    """A new index without them would be taken for selective by its first column, the city."""
    small = {"organizations", "cities", "owners", "agent_notes", "configurations", "logins", "nodes"}
    with closing(sqlite3.connect(sqlite_place.path)) as connection:
        given = {
            (table, index): len(stat.split()) - 1
            for table, index, stat in connection.execute("SELECT tbl, idx, stat FROM sqlite_stat1")
        }
        tables = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        wanted = {
            (table, _index_name(table, sql, name, origin)): len(
                connection.execute(f"PRAGMA index_info({name})").fetchall()
            )
            for table, sql in tables.fetchall()
            if table not in small
            for _, name, _, origin, _ in connection.execute(f"PRAGMA index_list({table})").fetchall()
        }
    assert given == wanted


def _index_name(table: str, sql: str, name: str, origin: str) -> str:
    """The primary key of a table without row ids goes by the name of the table."""
    return table if origin == "pk" and "WITHOUT ROWID" in sql.upper() else name


SETTINGS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit")


def _settings(tx: Tx) -> dict[str, str]:
    return {name: (tx.db.row(f"SHOW {name}", {}) or {})[name] for name in SETTINGS}


async def test_only_transactions_that_write_are_planned_by_index(postgres_place: PostgresUrl) -> None:
    theirs = {"enable_seqscan": "on", "enable_hashjoin": "on", "enable_mergejoin": "on", "jit": "on"}
    ours = dict.fromkeys(SETTINGS, "off")
    store, direct = open_store(postgres_place, CITY, Wakes()), open_direct(postgres_place, CITY)
    try:
        for _ in range(2):  # each leaves nothing behind for the next
            assert await store.read(_settings) == theirs
            assert await store.transact(_settings) == ours
            assert direct.read(_settings) == theirs
            assert direct.transact(_settings) == ours
    finally:
        direct.close()
        await store.close()


def test_hot_queries_use_their_index(filled: DirectStore, place: Place) -> None:
    dialect = "postgres" if isinstance(place, PostgresUrl) else "sqlite"
    for ask, wanted in INDEX.items():
        plan = plan_of(filled, ask)
        assert wanted[dialect] in plan, f"{ask}: {plan}"
        assert "Seq Scan on beads" not in plan, f"{ask}: {plan}"
        assert "Seq Scan on events" not in plan, f"{ask}: {plan}"
        assert "Seq Scan on runs" not in plan, f"{ask}: {plan}"
        assert "Seq Scan on triggers" not in plan, f"{ask}: {plan}"
        assert "Seq Scan on outbox" not in plan, f"{ask}: {plan}"
        if ask not in SORTED_ANYWAY:
            assert "TEMP B-TREE" not in plan, f"{ask}: {plan}"
