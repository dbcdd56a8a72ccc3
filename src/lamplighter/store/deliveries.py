"""Deliveries as they came, what each trigger made of them, and those that are gathered into one run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, Write
from lamplighter.store.tables import Table


@record
class DeliveryRow:
    """`repeats` counts how often its sender sent it again; type, title and author are known once it is processed.

    `source` is `webhook` or `polled`.
    """

    id: str
    connection: str
    external_id: str | None
    headers: Mapping[str, str]
    body: str
    received_at: datetime
    state: str = "waiting"
    repeats: int = 0
    event_type: str = ""
    title: str = ""
    author: str = ""
    problem: str = ""
    source: str = "webhook"


@record
class ListedDelivery:
    """A delivery without its headers and its body, which may be large."""

    id: str
    connection: str
    external_id: str | None
    received_at: datetime
    state: str
    repeats: int
    event_type: str
    title: str
    author: str
    problem: str
    source: str


@record
class Verdict:
    delivery_id: str
    automation_id: str
    trigger_id: str
    automation: str
    verdict: str
    reason: str
    run_id: str | None
    at: datetime


@record
class Gathering:
    """The ids of the deliveries that wait together, oldest first; `id` is its own, by which it fires once."""

    automation_id: str
    trigger_id: str
    entity: str
    id: str
    deliveries: tuple[str, ...]
    began_at: datetime
    due_at: datetime


DELIVERIES, VERDICTS, GATHERINGS = Table(DeliveryRow), Table(Verdict), Table(Gathering)
LISTED = Table(ListedDelivery)
INSERT = Write(
    f"""
    INSERT INTO deliveries (city_id, {DELIVERIES.listed()}) SELECT :city, {DELIVERIES.given()} {{each}} WHERE true
    ON CONFLICT DO NOTHING""",
    whole=DELIVERIES.whole(),
    key="id",
)
# the index deliveries_once serves this
REPEATED = """
    UPDATE deliveries SET repeats = repeats + 1
    WHERE city_id = :city AND connection = :connection AND external_id = :external_id RETURNING id"""
GET = f"SELECT {DELIVERIES.listed()} FROM deliveries WHERE city_id = :city AND id = :id"
# the index deliveries_once serves this
KNOWN = """
    SELECT 1 FROM deliveries WHERE city_id = :city AND connection = :connection AND external_id = :external_id"""
EXISTS = "SELECT 1 FROM deliveries WHERE city_id = :city AND id = :id"
SOME = f"SELECT {DELIVERIES.listed()} FROM deliveries WHERE city_id = :city AND id {{any:ids}} ORDER BY id"
SIZE = "SELECT coalesce(sum({bytes_of_body}), 0) AS size FROM deliveries WHERE city_id = :city AND id {any:ids}"
# the primary key serves these, the index deliveries_of where a connection is named
NEWEST = "SELECT id FROM deliveries WHERE city_id = :city ORDER BY id DESC LIMIT :limit"
PAGE = f"""
    SELECT {LISTED.listed()} FROM deliveries WHERE city_id = :city {{where}} AND id < :before
    ORDER BY id DESC LIMIT :limit"""
SPAN = """
    SELECT id FROM deliveries WHERE city_id = :city {where} AND id >= :first AND id < :last ORDER BY id LIMIT :limit"""
PROCESSED = Write(
    """
    UPDATE deliveries SET state = :state, event_type = :event_type, title = :title, author = :author, problem = :problem
    {each} WHERE city_id = :city AND id = :id""",
    key="id",
)
# not what waits in a gathering; the primary keys of verdicts and gatherings serve this
PRUNE = """
    DELETE FROM deliveries WHERE city_id = :city AND id IN (
        SELECT d.id FROM deliveries d WHERE d.city_id = :city AND d.id < :before_id AND d.state = 'processed'
        AND NOT EXISTS (
            SELECT 1 FROM delivery_verdicts v JOIN gatherings g
            ON g.city_id = v.city_id AND g.automation_id = v.automation_id AND g.trigger_id = v.trigger_id
            WHERE v.city_id = d.city_id AND v.delivery_id = d.id AND v.verdict IN ('gathered', 'held'))
        ORDER BY d.id LIMIT :limit)"""
JUDGE = f"""
    INSERT INTO delivery_verdicts (city_id, {VERDICTS.listed()}) VALUES (:city, {VERDICTS.given()})
    ON CONFLICT (city_id, delivery_id, automation_id, trigger_id) DO UPDATE
    SET verdict = excluded.verdict, reason = excluded.reason, run_id = excluded.run_id, at = excluded.at"""
JUDGED = f"""
    SELECT {VERDICTS.listed()} FROM delivery_verdicts WHERE city_id = :city AND delivery_id {{any:ids}}
    ORDER BY delivery_id, automation, trigger_id"""
_OF_GATHERING = "city_id = :city AND automation_id = :automation AND trigger_id = :trigger AND entity = :entity"
GATHERED = f"SELECT {GATHERINGS.listed()} FROM gatherings WHERE {_OF_GATHERING} {{for_update}}"
GATHER = f"""
    INSERT INTO gatherings (city_id, {GATHERINGS.listed()}) VALUES (:city, {GATHERINGS.given()})
    ON CONFLICT (city_id, automation_id, trigger_id, entity) DO UPDATE
    SET deliveries = excluded.deliveries, due_at = excluded.due_at"""
LET_GO = f"DELETE FROM gatherings WHERE {_OF_GATHERING}"
_delivery, _verdict, _gathering = DELIVERIES.writer(), VERDICTS.writer(), GATHERINGS.writer()
_processed = DELIVERIES.writer("id", "state", "event_type", "title", "author", "problem")


class Deliveries:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, rows: Sequence[DeliveryRow]) -> list[str]:
        """Their ids; that of the one there is for each that its sender has sent before, which is counted there."""
        added = self._db.write_new(INSERT, self._city, [_delivery(row) for row in rows])
        return [row.id if row.id in added else self._repeated(row) for row in rows]

    def _repeated(self, row: DeliveryRow) -> str:
        key = {"city": self._city, "connection": row.connection, "external_id": row.external_id}
        found = self._db.row(REPEATED, key)
        assert found is not None  # noqa: S101  it is there, or it would have been written
        return str(found["id"])

    def get(self, delivery: str) -> DeliveryRow | None:
        row = self._db.row(GET, {"city": self._city, "id": delivery})
        return None if row is None else DELIVERIES.read(row)

    def exists(self, delivery: str) -> bool:
        return self._db.row(EXISTS, {"city": self._city, "id": delivery}) is not None

    def is_known(self, connection: str, external_id: str) -> bool:
        key = {"city": self._city, "connection": connection, "external_id": external_id}
        return self._db.row(KNOWN, key) is not None

    def lock(self, delivery: str) -> DeliveryRow | None:
        row = self._db.row(GET + " {for_update}", {"city": self._city, "id": delivery})
        return None if row is None else DELIVERIES.read(row)

    def some(self, ids: Iterable[str], *, locked: bool = False) -> list[DeliveryRow]:
        """Oldest first."""
        rows = self._db.rows(
            SOME + " {for_update}" if locked else SOME, {"city": self._city, "ids": json.dumps(sorted(set(ids)))}
        )
        return [DELIVERIES.read(row) for row in rows]

    def size(self, ids: Iterable[str]) -> int:
        """The bytes of their bodies together."""
        row = self._db.row(SIZE, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return 0 if row is None else int(row["size"])

    def page(self, *, connection: str | None, before: str | None, limit: int) -> list[ListedDelivery]:
        """Newest first; `before` is the last id of the previous page."""
        where, params = _of(connection)
        params |= {"city": self._city, "before": before or "~", "limit": limit}
        return [LISTED.read(row) for row in self._db.rows(PAGE.replace("{where}", where), params)]

    def newest(self, *, limit: int) -> list[str]:
        """Their ids, newest first."""
        return [row["id"] for row in self._db.rows(NEWEST, {"city": self._city, "limit": limit})]

    def span(self, *, connection: str | None, first: str, last: str, limit: int) -> list[str]:
        where, params = _of(connection)
        params |= {"city": self._city, "first": first, "last": last, "limit": limit}
        return [row["id"] for row in self._db.rows(SPAN.replace("{where}", where), params)]

    def processed(self, row: DeliveryRow) -> None:
        """Keep its state, and what is known of it once it was read."""
        self._db.write(PROCESSED, self._city, _processed(row))

    def judge(self, verdict: Verdict) -> None:
        self._db.execute(JUDGE, _verdict(verdict) | {"city": self._city})

    def verdicts(self, deliveries: Iterable[str]) -> dict[str, list[Verdict]]:
        rows = self._db.rows(JUDGED, {"city": self._city, "ids": json.dumps(sorted(set(deliveries)))})
        found: dict[str, list[Verdict]] = {}
        for row in rows:
            found.setdefault(row["delivery_id"], []).append(VERDICTS.read(row))
        return found

    def gathering(self, automation: str, trigger: str, entity: str) -> Gathering | None:
        """Locked."""
        row = self._db.row(GATHERED, self._place(automation, trigger, entity))
        return None if row is None else GATHERINGS.read(row)

    def gather(self, one: Gathering) -> None:
        self._db.execute(GATHER, _gathering(one) | {"city": self._city})

    def let_go(self, one: Gathering) -> None:
        self._db.execute(LET_GO, self._place(one.automation_id, one.trigger_id, one.entity))

    def prune(self, *, before_id: str, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before_id": before_id, "limit": limit})

    def _place(self, automation: str, trigger: str, entity: str) -> dict[str, object]:
        return {"city": self._city, "automation": automation, "trigger": trigger, "entity": entity}


def _of(connection: str | None) -> tuple[str, dict[str, object]]:
    return ("", {}) if connection is None else ("AND connection = :connection", {"connection": connection})
