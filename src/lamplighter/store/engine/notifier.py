"""Wake-ups over PostgreSQL: after a commit, numbers the new events and notifies; listens to other processes.

Notifying inside the transactions would make the server take one lock for all commits; done after them and coalesced, it
costs one round trip however many wake-ups wait.
"""

import threading
import time
from collections.abc import Callable, Iterable

import psycopg

from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit import log
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.store.engine.db import Db
from lamplighter.store.engine.postgres_connection import PostgresConnection, connect
from lamplighter.store.engine.wakes import ALL, Wakes
from lamplighter.store.events import number_committed

CHANNEL = "lamp_wake"
POLL_SECONDS = 5.0
SPACING_SECONDS = 0.005
MOST_SPACING_SECONDS = 0.05
"""Bounds of the pause after a round: the first round after idle time starts at once, many commits share the next."""
REST = 2.0
"""The pause after a round as a multiple of its duration, within those bounds: numbering must not overload a server."""
RETRY_SECONDS = 0.5
NUMBERED_AT_ONCE = 5000
NOTIFY = "SELECT pg_notify('lamp_wake', :message)"
UNNUMBERED = "SELECT 1 AS found FROM events WHERE seq IS NULL LIMIT 1"


def announce(connection: PostgresConnection, topics: Iterable[str]) -> None:
    """Number the appended events, then notify all listeners. May be repeated."""
    wanted = set(topics)
    if EVENTS in wanted:
        number_all(connection)
    if wanted:
        message = " ".join([connection.tx.city, *sorted(wanted)])
        connection.tx.db.execute(NOTIFY, {"message": message})


def number_all(connection: PostgresConnection) -> None:
    crash_point(CrashPoint.STORE_BEFORE_NUMBERING)
    while _unnumbered(connection) and _number_some(connection) == NUMBERED_AT_ONCE:
        pass


def _unnumbered(connection: PostgresConnection) -> bool:
    return connection.tx.db.row(UNNUMBERED, {}) is not None


def _number_some(connection: PostgresConnection) -> int:
    db: Db = connection.tx.db
    connection.raw.execute("BEGIN")
    try:
        count = number_committed(db, limit=NUMBERED_AT_ONCE)
    except BaseException:
        connection.raw.execute("ROLLBACK")
        raise
    connection.raw.execute("COMMIT")
    return count


class Notifier:
    """Two threads with a connection each: one sends, one listens. Both reconnect after a restart of the server."""

    def __init__(self, url: str, city: str, wakes: Wakes) -> None:
        self._url = url
        self._city = city
        self._wakes = wakes
        self._pending: set[str] = set()
        self._posted = threading.Condition()
        self._closing = False
        self._listening = threading.Event()
        self._sender = threading.Thread(target=self._outlive, args=(self._send,), name="lamp-post", daemon=True)
        self._listener = threading.Thread(target=self._outlive, args=(self._listen,), name="lamp-listen", daemon=True)
        self._sender.start()
        self._listener.start()
        self._listening.wait(timeout=RETRY_SECONDS * 4)

    def post(self, topics: Iterable[str]) -> None:
        wanted = set(topics)
        if not wanted:
            return
        self._wakes.publish(wanted - {EVENTS})  # readers see an event only once it is numbered
        with self._posted:
            self._pending |= wanted
            self._posted.notify()

    def close(self) -> None:
        with self._posted:
            self._closing = True
            self._posted.notify()
        self._sender.join()
        self._listener.join()

    def _outlive(self, work: Callable[[], None]) -> None:
        while not self._closing:
            try:
                work()
            except (LampError, psycopg.Error) as error:
                log.get().warning("store.wakeups_interrupted", error=str(error))
                time.sleep(RETRY_SECONDS)

    def _send(self) -> None:
        connection = PostgresConnection(self._url, self._city)
        due = 0.0
        try:
            while not self._closing or self._pending:
                time.sleep(max(due - time.monotonic(), 0))
                with self._posted:
                    if not self._pending and not self._closing:
                        self._posted.wait(timeout=POLL_SECONDS)
                    topics, self._pending = self._pending, set()
                if not topics and _unnumbered(connection):
                    topics = {EVENTS}  # another process died between its commit and the numbering
                began = time.monotonic()
                try:
                    announce(connection, topics)
                    took = time.monotonic() - began
                    due = began + took + min(max(SPACING_SECONDS, REST * took), MOST_SPACING_SECONDS)
                except BaseException:
                    with self._posted:
                        self._pending |= topics
                    raise
                self._wakes.publish(topics & {EVENTS})
            connection.tx.db.execute(NOTIFY, {"message": self._city})  # so that our own listener sees the end at once
        finally:
            connection.close()

    def _listen(self) -> None:
        connection = connect(self._url, application="lamplighter listen")
        try:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            self._listening.set()
            self._wakes.publish({ALL})  # notifications may have been missed: all waiters look once
            while not self._closing:
                for notice in connection.notifies(timeout=RETRY_SECONDS, stop_after=1):
                    city, *topics = notice.payload.split()
                    if city == self._city:
                        self._wakes.publish(topics)
        finally:
            connection.close()
