"""Waits for the end of another process: its proof of life is a lock, which a waiting process gets at that moment.

Only on PostgreSQL do cities have more than one working process for long; file locks are checked by every patrol.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg

from lamplighter.store.engine.postgres_connection import connect, told
from lamplighter.store.engine.postgres_liveness import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import psycopg


class PostgresDeathWatch:
    """Has its own connection and its own thread, because both are blocked most of the time.

    A connection that broke is replaced at the next wait.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = self._connect()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="lamp-vigil")

    def ended(self, owner: str, *, within: float) -> bool:
        """Wait until `owner` is dead; False when it is alive after `within` seconds, or the wait was cut short."""
        key = key_of(owner)
        if self._connection.closed:  # broken meanwhile: wait on a new connection
            self._connection = self._connect()
        with told(self._url):
            try:
                self._connection.execute(f"SET lock_timeout = {max(int(within * 1000), 1)}".encode())
                # Shared, so that several processes can wait for one owner and all get it together. The lock ends with
                # its statement, whatever else happens.
                self._connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (key,))
            except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):  # a cancel may also arrive late
                return False
        return True

    def _connect(self) -> "psycopg.Connection[dict[str, Any]]":
        return connect(self._url, application="lamplighter vigil")

    def cut_short(self) -> None:
        """End the wait under way, from another thread."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=2.0)

    def close(self) -> None:
        self.cut_short()
        self.thread.shutdown(wait=True, cancel_futures=True)
        self._connection.close()
