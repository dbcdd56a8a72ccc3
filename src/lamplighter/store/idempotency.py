"""Answers kept under the key that a client gave its request, so that a repeated request has no second effect."""

from datetime import datetime, timedelta

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, stamp

KEPT_FOR = timedelta(hours=24)
AT_ONCE = 100
# Whoever comes second waits here on PostgreSQL until the first has committed; on SQLite there is one writer.
TAKE = """
    INSERT INTO idempotency_keys (city_id, actor, operation, key, asked, at)
    VALUES (:city, :actor, :operation, :key, :asked, :at)
    ON CONFLICT (city_id, actor, operation, key) DO NOTHING"""
ANSWER = """
    UPDATE idempotency_keys SET answer = :answer
    WHERE city_id = :city AND actor = :actor AND operation = :operation AND key = :key"""
GET = """
    SELECT asked, answer, at FROM idempotency_keys
    WHERE city_id = :city AND actor = :actor AND operation = :operation AND key = :key"""
RENEW = """
    UPDATE idempotency_keys SET asked = :asked, answer = NULL, at = :at
    WHERE city_id = :city AND actor = :actor AND operation = :operation AND key = :key AND at <= :before"""
# the index idempotency_keys_by_age serves this
PRUNE = """
    DELETE FROM idempotency_keys WHERE city_id = :city AND (actor, operation, key) IN (
        SELECT actor, operation, key FROM idempotency_keys WHERE city_id = :city AND at <= :before
        ORDER BY at LIMIT :limit)"""


@record
class Slot:
    """One key: who gave it, with which operation."""

    actor: str
    operation: str
    key: str


@record
class KeptAnswer:
    """`asked` is a hash of the request; `answer` is JSON text."""

    asked: str
    answer: str


class Idempotency:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def take(self, slot: Slot, asked: str, now: datetime) -> KeptAnswer | None:
        """What is kept under the key; None if it is free, and then it is taken within this transaction."""
        params = self._params(slot)
        before = stamp(now - KEPT_FOR)
        fresh = params | {"asked": asked, "at": stamp(now)}
        if self._db.execute(TAKE, fresh) == 1 or self._db.execute(RENEW, fresh | {"before": before}) == 1:
            return None
        row = self._db.row(GET, params)
        if row is None or row["answer"] is None:
            raise AssertionError("a key and its answer are committed together")
        return KeptAnswer(row["asked"], row["answer"])

    def keep(self, slot: Slot, answer: str) -> None:
        self._db.execute(ANSWER, self._params(slot) | {"answer": answer})

    def prune(self, now: datetime) -> int:
        """Delete a batch of keys that are too old to count."""
        params = {"city": self._city, "before": stamp(now - KEPT_FOR), "limit": AT_ONCE}
        return self._db.execute(PRUNE, params)

    def _params(self, slot: Slot) -> dict[str, object]:
        return {"city": self._city, "actor": slot.actor, "operation": slot.operation, "key": slot.key}
