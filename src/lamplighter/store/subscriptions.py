"""Who is to be told when a session ends: a destination for each, told once."""

from collections.abc import Iterable
from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, stamp
from lamplighter.store.tables import Table


@record
class Subscription:
    """`subject` is the id of a session, or of a run whose sessions are meant. `notice` is what was queued for it."""

    subject: str
    destination: str
    subscriber: str
    subscribed_at: datetime
    notice: str | None = None
    notified_at: datetime | None = None


SUBSCRIPTIONS = Table(Subscription)
_COLUMNS = SUBSCRIPTIONS.listed()
# a person who subscribes again is told again
PUT = f"""
    INSERT INTO subscriptions (city_id, {_COLUMNS}) VALUES (:city, {SUBSCRIPTIONS.given()})
    ON CONFLICT (city_id, subject, destination) DO UPDATE
    SET subscriber = excluded.subscriber, subscribed_at = excluded.subscribed_at, notice = NULL, notified_at = NULL"""
# the primary key serves these
OF = f"SELECT {_COLUMNS} FROM subscriptions WHERE city_id = :city AND subject = :subject ORDER BY destination"
ALL = f"SELECT {_COLUMNS} FROM subscriptions WHERE city_id = :city ORDER BY subject, destination LIMIT :limit"
WAITING = f"""
    SELECT {_COLUMNS} FROM subscriptions WHERE city_id = :city AND subject = :subject AND notice IS NULL
    ORDER BY destination"""
QUEUED = """
    UPDATE subscriptions SET notice = :notice
    WHERE city_id = :city AND subject = :subject AND destination = :destination AND notice IS NULL"""
DELETE = "DELETE FROM subscriptions WHERE city_id = :city AND subject = :subject AND destination = :destination"
# the index subscriptions_of_notice serves this
NOTIFIED = "UPDATE subscriptions SET notified_at = :at WHERE city_id = :city AND notice = :notice"
TOLD_BY = "UPDATE subscriptions SET notice = :by WHERE city_id = :city AND notice = :notice"
# there are few, and pruning is seldom; one whose session or run is still there waits on
PRUNE = """
    DELETE FROM subscriptions WHERE city_id = :city AND subscribed_at < :before
    AND (notice IS NOT NULL OR (
        NOT EXISTS (SELECT 1 FROM sessions AS one WHERE one.city_id = subscriptions.city_id
                    AND one.id = subscriptions.subject)
        AND NOT EXISTS (SELECT 1 FROM runs AS one WHERE one.city_id = subscriptions.city_id
                        AND one.id = subscriptions.subject)))"""
_written = SUBSCRIPTIONS.writer()


class Subscriptions:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: Subscription) -> None:
        """One that was there already waits for the next end."""
        self._db.execute(PUT, _written(row) | {"city": self._city})

    def of(self, subject: str) -> list[Subscription]:
        return self._many(OF, {"subject": subject})

    def all(self, *, limit: int) -> list[Subscription]:
        return self._many(ALL, {"limit": limit})

    def waiting(self, subjects: Iterable[str]) -> list[Subscription]:
        """Those of these sessions and runs for which no notice was queued yet."""
        return [one for subject in subjects for one in self._many(WAITING, {"subject": subject})]

    def queued(self, subscription: Subscription, notice: str) -> None:
        params = {"city": self._city, "subject": subscription.subject, "destination": subscription.destination}
        self._db.execute(QUEUED, params | {"notice": notice})

    def notified(self, notice: str, at: datetime) -> None:
        self._db.execute(NOTIFIED, {"city": self._city, "notice": notice, "at": stamp(at)})

    def told_by(self, notice: str, by: str) -> None:
        """Another notice tells what this one would have told."""
        self._db.execute(TOLD_BY, {"city": self._city, "notice": notice, "by": by})

    def delete(self, subject: str, destination: str) -> bool:
        params = {"city": self._city, "subject": subject, "destination": destination}
        return self._db.execute(DELETE, params) == 1

    def prune(self, *, before: datetime) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before)})

    def _many(self, sql: str, params: dict[str, object]) -> list[Subscription]:
        return [SUBSCRIPTIONS.read(row) for row in self._db.rows(sql, params | {"city": self._city})]
