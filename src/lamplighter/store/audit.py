"""The record of who changed what; rows are only ever added."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class AuditRow:
    """`asked` is the request with its secrets masked, `object` what it names first, `bulk` the bulk action of it,
    `asked_in` the name of the city of the same organization where it was asked, if not in this one.
    """

    id: str
    at: datetime
    actor: str
    token: str | None
    surface: str
    operation: str
    object: str | None
    asked: Mapping[str, Any]
    bulk: str | None = None
    asked_in: str | None = None


AUDIT = Table(AuditRow)
ADD = f"INSERT INTO audit (city_id, {AUDIT.listed()}) VALUES (:city, {AUDIT.given()})"
# the primary key serves this, or the index audit_of where an actor is named
PAGE = f"""
    SELECT {AUDIT.listed()} FROM audit WHERE city_id = :city {{where}} AND id < :before ORDER BY id DESC LIMIT :limit"""
_written = AUDIT.writer()


class Audit:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: AuditRow) -> None:
        self._db.execute(ADD, _written(row) | {"city": self._city})

    def page(self, *, actor: str | None = None, before: str | None = None, limit: int = 50) -> list[AuditRow]:
        """Newest first; `before` is the last id of the previous page."""
        where = "" if actor is None else "AND actor = :actor"
        params = {"city": self._city, "actor": actor, "before": before or "~", "limit": limit}
        return [AUDIT.read(row) for row in self._db.rows(PAGE.replace("{where}", where), params)]
