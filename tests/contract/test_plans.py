"""The hot queries use their index on both databases, with enough rows for another plan to be tempting."""

import json
from collections.abc import Iterator

import pytest

from lamplighter.domain.beads.model import BeadFilter
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.events import EventFilter
from lamplighter.domain.runs.model import RunState
from lamplighter.store.engine import db as store_db
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import Place, PostgresUrl, open_direct
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
    tx.db.execute("ANALYZE", {})


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
        """INSERT INTO trigger_events (city_id, id, automation_id, automation, trigger_id, kind, status, dedup_key,
                                       first_at, last_at)
        VALUES (:city, :id, :automation, :automation, 't', 'cron', 'fired', :id, :at, :at)""",
        [{"city": CITY, "id": f"tev_{n:06}", "automation": f"aut_{n % 50}", "at": NOW + n} for n in range(ROWS)],
    )


def plan_of(direct: DirectStore, ask: str) -> str:
    """How the database would answer what `ask` asks first."""

    def explain(tx: Tx) -> str:
        listening = Listening(tx.db)
        ASKS[ask](Tx(listening, CITY))
        sql, params = listening.asked[0]
        if tx.db.dialect.name == "sqlite":
            return "\n".join(row["detail"] for row in tx.db.rows("EXPLAIN QUERY PLAN " + sql, params))
        return json.dumps([dict(row) for row in tx.db.rows("EXPLAIN " + sql, params)])

    return direct.transact(explain)


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
    "leases of an owner": lambda tx: tx.runs.void_leases("own_0", now=AT),
    "orphans": lambda tx: tx.runs.has_orphans("here", AT),
    "runs of one": lambda tx: tx.runs.page(automation="aut_1", limit=10),
    "newest runs": lambda tx: tx.runs.page(limit=10),
    "runs by state": lambda tx: tx.runs.page(state=RunState.RUNNING, limit=10),
    "old runs": lambda tx: tx.runs.old(before=AT, before_id="run_000050", limit=10),
    "history": lambda tx: tx.trigger_events.history("aut_1", limit=10),
    "overdue runs": lambda tx: tx.runs.overdue(AT, limit=10),
    "stale agent runs": lambda tx: tx.runs.stale(AT, silent_since=AT, limit=10),
    "kept worktrees": lambda tx: tx.runs.with_worktree("here", before=AT, limit=10),
    "sessions of a run": lambda tx: tx.sessions.of_run("run_000001"),
    "artifacts of a run": lambda tx: tx.artifacts.of("run_000001"),
    "old artifacts": lambda tx: tx.artifacts.old(before=AT, limit=10),
    "a transcript": lambda tx: tx.transcripts.after("ses_1"),
}
INDEX = {
    "after": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "Index Scan using events_"},
    "after of type": {"sqlite": "events_of_type", "postgres": "events_of_type"},
    "newest": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "events_"},
    "newest of type": {"sqlite": "events_of_type", "postgres": "events_"},
    "next of those followed": {"sqlite": "INTEGER PRIMARY KEY (rowid>?)", "postgres": "Index Scan using events_"},
    "head": {"sqlite": "", "postgres": "events_"},
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
    "runs of one": {"sqlite": "runs_of", "postgres": "runs_of"},
    "newest runs": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "runs by state": {"sqlite": "runs_by_state", "postgres": "runs_"},
    "old runs": {"sqlite": "autoindex_runs", "postgres": "runs_pkey"},
    "history": {"sqlite": "trigger_events_of", "postgres": "trigger_events_of"},
    "overdue runs": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "stale agent runs": {"sqlite": "INDEX runs_", "postgres": "runs_"},
    "kept worktrees": {"sqlite": "runs_with_worktree", "postgres": "runs_"},
    "sessions of a run": {"sqlite": "sessions_of_run", "postgres": ""},
    "artifacts of a run": {"sqlite": "PRIMARY KEY", "postgres": ""},
    "old artifacts": {"sqlite": "artifacts_by_age", "postgres": ""},
    "a transcript": {"sqlite": "PRIMARY KEY", "postgres": ""},
}
SORTED_ANYWAY = {
    "by label", "by the label of an automation", "by the label of a failure",
    "types of new events", "ghosts", "items by need", "nodes at work",
    "leases of an owner", "claims of an owner", "active of one", "overdue runs",
    "stale agent runs",
    "sessions of a run",
}  # fmt: skip
"""Few rows of one label, type or owner may well be sorted."""


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
