"""Moves stored times back after this machine's clock was set back, so that nothing waits longer than it would have."""

from datetime import UTC, datetime, timedelta

from lamplighter.store.engine import Db, instant, stamp
from lamplighter.store.summary import ACTIVE_STATES

_MICRO = timedelta(microseconds=1)

LATEST_FIRING = "SELECT max(last_fired_at) AS at FROM triggers WHERE city_id = :city"
# the index outbox_due serves this
ITEMS = """
    UPDATE outbox SET due_at = due_at - :by WHERE city_id = :city AND state = 'pending' AND due_at > :now"""
CLAIMS = "UPDATE outbox SET claimed_at = claimed_at - :by WHERE city_id = :city AND state = 'claimed'"
# the index runs_active serves this
RUNS = f"""
    UPDATE runs SET started_at = started_at - :by, deadline_at = deadline_at - :by,
        lease_expires_at = lease_expires_at - :by, last_activity_at = last_activity_at - :by,
        orphaned_at = orphaned_at - :by, taken_at = taken_at - :by, lifts_at = lifts_at - :by
    WHERE city_id = :city AND {ACTIVE_STATES}"""
SILENCES = "UPDATE automations SET quiet_at = quiet_at - :by WHERE city_id = :city AND quiet_at IS NOT NULL"

LOGINS = """
    UPDATE logins SET since = since - :by, until = until - :by, looked_at = looked_at - :by,
        trying_since = trying_since - :by
    WHERE city_id = :city"""
SNOOZES = "UPDATE inbox_items SET snoozed_until = snoozed_until - :by WHERE city_id = :city AND snoozed_until > :now"
GATHERINGS = "UPDATE gatherings SET began_at = began_at - :by, due_at = due_at - :by WHERE city_id = :city"
POLLS = "UPDATE polls SET next_at = next_at - :by WHERE city_id = :city AND next_at > :now"
EARLIER_SECRETS = """
    UPDATE connections SET previous_until = previous_until - :by WHERE city_id = :city AND previous_until > :now"""


class ClockMoves:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def latest_firing(self) -> datetime | None:
        row = self._db.row(LATEST_FIRING, {"city": self._city})
        return None if row is None or row["at"] is None else instant(row["at"])

    def database_time(self) -> datetime | None:
        """What the clock of the database says; None where that is this machine's."""
        if not self._db.dialect.locks_rows:
            return None
        row = self._db.row("SELECT clock_timestamp() AS now", {})
        now: datetime | None = None if row is None else row["now"]
        return None if now is None else now.astimezone(UTC)

    def move_back(self, by: timedelta, now: datetime) -> None:
        """Move the times that something waits for; for triggers each kind has its own rule."""
        span: dict[str, object] = {"city": self._city, "by": by // _MICRO}
        for sql in (CLAIMS, RUNS, SILENCES, LOGINS, GATHERINGS):
            self._db.execute(sql, span)
        for sql in (ITEMS, SNOOZES, POLLS, EARLIER_SECRETS):
            self._db.execute(sql, span | {"now": stamp(now)})
