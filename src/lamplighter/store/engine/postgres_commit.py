"""Finds out what became of a commit whose answer was lost, by asking the server about its transaction."""

import time
from typing import Any

import psycopg

from lamplighter.store.engine.postgres_connection import PostgresConnection, told
from lamplighter.store.engine.scope import Scope, Work

WHICH = "SELECT txid_current_if_assigned() AS xid, pg_postmaster_start_time() AS server_started"
STATUS = "SELECT txid_status(%s) AS status, pg_postmaster_start_time() AS server_started"
ASKED_AGAIN = 100
PAUSE_SECONDS = 0.05


class TracedCall:
    """A transaction function that also records its transaction id, value and wake-ups, as of its last run."""

    def __init__(self, fn: Work) -> None:
        self._fn = fn
        self._xid: int | None = None
        self._server_started: Any = None
        self.value: Any = None
        self.wakes: frozenset[str] = frozenset()

    def __call__(self, scope: Scope) -> Any:
        self.value = self._fn(scope)
        row = scope.db.row(WHICH, {}) or {}
        self._xid, self._server_started = row.get("xid"), row.get("server_started")
        self.wakes = scope.take_wakes()
        for topic in self.wakes:
            scope.wake(topic)
        return self.value

    def took(self, connection: PostgresConnection) -> bool | None:
        """Whether it was committed; None if that cannot be found out. Raises StoreUnavailable."""
        if self._xid is None:
            return True  # it wrote nothing
        for _ in range(ASKED_AGAIN):
            status, server_started = self._asked(connection)
            if status == "in progress":  # the server has not yet noticed that the connection is gone
                time.sleep(PAUSE_SECONDS)
                continue
            if status == "committed":
                # A server that crashed may have lost our transaction and given its id to another one.
                return True if server_started == self._server_started else None
            return False if status == "aborted" else None
        return None

    def _asked(self, connection: PostgresConnection) -> tuple[str | None, Any]:
        try:
            with told(connection.url):
                row = connection.raw.execute(STATUS, (self._xid,)).fetchone() or {}
        except psycopg.errors.InvalidParameterValue:  # an id not assigned yet: a crash lost the transaction
            return "aborted", None
        return row.get("status"), row.get("server_started")
