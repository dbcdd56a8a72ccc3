"""Wake-ups over PostgreSQL: after a commit, numbers the new events and notifies; listens to other processes.

Notifying inside the transactions would make the server take one lock for all commits; done after them and coalesced, it
costs one round trip however many wake-ups wait.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import psycopg

from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit import log
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.store.engine.city_wakes import CityTopics, CityWakes
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.engine.postgres_connection import PostgresConnection, connect
from lamplighter.store.engine.scope import MakeScope
from lamplighter.store.engine.wakes import ALL

CHANNEL = "lamp_wake"
POLL_SECONDS = 5.0
SPACING_SECONDS = 0.005
MOST_SPACING_SECONDS = 0.05
"""Bounds of the pause after a round: the first round after idle time starts at once, many commits share the next."""
REST = 2.0
"""The pause after a round as a multiple of its duration, within those bounds: numbering must not overload a server."""
RETRY_SECONDS = 0.5
NUMBERED_AT_ONCE = 5000
NOTIFY = """
    SELECT pg_notify('lamp_wake', message) FROM jsonb_array_elements_text(CAST(:messages AS jsonb)) AS message"""
NO_CITY = "-"
"""Sent to our own listener at the end, so that it notices the end at once."""
UNNUMBERED = "SELECT 1 AS found FROM events WHERE seq IS NULL LIMIT 1"
# the index events_unnumbered serves this
CITIES_UNNUMBERED = """
    SELECT DISTINCT city_id FROM (
        SELECT city_id FROM events WHERE seq IS NULL ORDER BY id LIMIT :limit) AS waiting"""


def announce(connection: PostgresConnection, topics: Mapping[str, Iterable[str]], *marks: str) -> None:
    """Number the appended events of all cities, then notify all listeners of each city. May be repeated.

    `marks` tell the listeners who says it.
    """
    if any(EVENTS in wanted for wanted in topics.values()):
        number_all(connection)
    messages = [" ".join([city, *marks, *sorted(wanted)]) for city, wanted in topics.items() if wanted]
    if messages:
        connection.db.rows(NOTIFY, {"messages": json.dumps(messages)})


def number_all(connection: PostgresConnection) -> None:
    crash_point(CrashPoint.STORE_BEFORE_NUMBERING)
    while _unnumbered(connection) and _number_some(connection) == NUMBERED_AT_ONCE:
        pass


def _unnumbered(connection: PostgresConnection) -> bool:
    return connection.db.row(UNNUMBERED, {}) is not None


def _left_unnumbered(connection: PostgresConnection) -> CityTopics:
    """The cities whose events another process left without numbers: it died between its commit and the numbering."""
    rows = connection.db.rows(CITIES_UNNUMBERED, {"limit": NUMBERED_AT_ONCE})
    return CityTopics({row["city_id"]: {EVENTS} for row in rows})


def _number_some(connection: PostgresConnection) -> int:
    connection.raw.execute("BEGIN")
    try:
        count = number_committed(connection.db, limit=NUMBERED_AT_ONCE)
    except BaseException:
        connection.raw.execute("ROLLBACK")
        raise
    connection.raw.execute("COMMIT")
    return count


class Notifier:
    """Two threads with a connection each: one sends, one listens. Both reconnect after a restart of the server."""

    def __init__(self, url: str, make: MakeScope, wakes: CityWakes) -> None:
        self._url = url
        self._make = make
        self._wakes = wakes
        self._pending = CityTopics()
        self._posted = threading.Condition()
        self._closing = False
        self._listening = threading.Event()
        self._mark = f"@{secrets.token_hex(4)}"
        """In what is sent by this process, whose own tasks are woken already.

        Not the server's number of its connection: a server that was restarted gives the same numbers to others.
        """
        self._sender = threading.Thread(target=self._outlive, args=(self._send,), name="lamp-post", daemon=True)
        self._listener = threading.Thread(target=self._outlive, args=(self._listen,), name="lamp-listen", daemon=True)
        self._sender.start()
        self._listener.start()
        self._listening.wait(timeout=RETRY_SECONDS * 4)

    def post(self, topics: CityTopics) -> None:
        if not topics:
            return
        # without EVENTS: readers see an event only once it is numbered
        self._wakes.publish({city: wanted - {EVENTS} for city, wanted in topics.items()})
        with self._posted:
            self._add(topics)
            self._posted.notify()

    def close(self) -> None:
        with self._posted:
            self._closing = True
            self._posted.notify()
        self._sender.join()
        self._listener.join()

    def _add(self, topics: CityTopics) -> None:
        for city, wanted in topics.items():
            self._pending.add(city, wanted)

    def _outlive(self, work: Callable[[], None]) -> None:
        while not self._closing:
            try:
                work()
            except (LampError, psycopg.Error) as error:
                log.get().warning("store.wakeups_interrupted", error=str(error))
                time.sleep(RETRY_SECONDS)

    def _send(self) -> None:
        connection = PostgresConnection(self._url, self._make)
        due = 0.0
        try:
            while not self._closing or self._pending:
                time.sleep(max(due - time.monotonic(), 0))
                with self._posted:
                    if not self._pending and not self._closing:
                        self._posted.wait(timeout=POLL_SECONDS)
                    topics, self._pending = self._pending, CityTopics()
                topics = topics or _left_unnumbered(connection)
                began = time.monotonic()
                try:
                    announce(connection, topics, self._mark)
                    took = time.monotonic() - began
                    due = began + took + min(max(SPACING_SECONDS, REST * took), MOST_SPACING_SECONDS)
                except BaseException:
                    with self._posted:
                        self._add(topics)
                    raise
                self._wakes.publish({city: wanted & {EVENTS} for city, wanted in topics.items()})
            connection.db.rows(NOTIFY, {"messages": json.dumps([NO_CITY])})
        finally:
            connection.close()

    def _listen(self) -> None:
        connection = connect(self._url, application="lamplighter listen")
        try:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            self._listening.set()
            self._wakes.publish_to_all(ALL)  # notifications may have been missed: all waiters look once
            while not self._closing:
                for notice in connection.notifies(timeout=RETRY_SECONDS, stop_after=1):
                    city, *topics = notice.payload.split()
                    if self._mark not in topics:
                        self._wakes.publish({city: topics})
        finally:
            connection.close()
