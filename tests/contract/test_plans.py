"""The hot queries use their index on both databases, with enough rows for another plan to be tempting."""

import json
from collections.abc import Iterator

import pytest

from lamplighter.domain.beads.model import BeadFilter
from lamplighter.domain.events import EventFilter
from lamplighter.store import db as store_db
from lamplighter.store.place import Place, PostgresPlace, open_direct
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.testing.contracts.store import AT, CITY

EVENTS = 8_000
BEADS = 3_000
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
    tx.db.execute("ANALYZE", {})


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
    "by status": lambda tx: tx.beads.matching(BeadFilter(status="open"), limit=10),  # type: ignore[arg-type]  # its text
    "collectable": lambda tx: tx.beads.collectable(before=AT, limit=10),
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
    "by status": {"sqlite": "beads_by_status", "postgres": "beads_by_"},
    "collectable": {"sqlite": "beads_to_collect", "postgres": "beads_to_collect"},
}


def test_hot_queries_use_their_index(filled: DirectStore, place: Place) -> None:
    dialect = "postgres" if isinstance(place, PostgresPlace) else "sqlite"
    for ask, wanted in INDEX.items():
        plan = plan_of(filled, ask)
        assert wanted[dialect] in plan, f"{ask}: {plan}"
        assert "Seq Scan on beads" not in plan, f"{ask}: {plan}"
        assert "Seq Scan on events" not in plan, f"{ask}: {plan}"
        if ask != "by label":  # few rows of one label may well be sorted
            assert "TEMP B-TREE" not in plan, f"{ask}: {plan}"
