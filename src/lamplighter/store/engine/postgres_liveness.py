"""Proof of life on PostgreSQL: a session's advisory lock, on a connection of its own."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import psycopg

from lamplighter.kit.masking import masked
from lamplighter.store.engine.postgres_connection import connect, told
from lamplighter.store.errors import PooledByTransaction, ProofLost

SERVER_ASKS = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
"""Keepalives, by which the server notices that a machine vanished; a process that dies closes its socket."""
LOOKS = 3


class PostgresProofs:
    def __init__(self, url: str) -> None:
        self._url = url
        settings = "; ".join(f"SET {setting} = {seconds}" for setting, seconds in SERVER_ASKS.items())
        self._connection = connect(url, application="lamplighter proof of life", settings=settings)
        try:
            need_own_session(url, self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._held: set[str] = set()

    def hold(self, owner: str) -> None:
        with told(self._url):
            self._connection.execute("SELECT pg_advisory_lock(%s)", (key_of(owner),))
        self._held.add(owner)

    def check(self, owner: str) -> None:
        try:
            row = self._connection.execute(
                "SELECT count(*) AS held FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() "
                "AND ((classid::bigint << 32) | objid::bigint) = %s",
                (key_of(owner),),
            ).fetchone()
        except psycopg.Error as error:
            raise ProofLost(owner) from error
        if row is None or row["held"] == 0:
            raise ProofLost(owner)

    def dead(self, owner: str) -> bool:
        if owner in self._held:
            return False  # the server would grant this same connection the lock again
        with told(self._url):  # the lock ends with the statement, and is shared with others that look
            row = self._connection.execute(
                "SELECT pg_try_advisory_xact_lock_shared(%s) AS taken", (key_of(owner),)
            ).fetchone()
        return row is not None and row["taken"]

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        with told(self._url):
            rows = self._connection.execute(
                "SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' "
                "AND granted AND mode = 'ExclusiveLock' "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            ).fetchall()
        held = {row["key"] for row in rows}
        return frozenset(owner for owner in owners if key_of(owner) in held)

    def release(self, owner: str) -> None:
        """Unlock explicitly: the server may take a while to notice that the connection was closed."""
        if owner in self._held and not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (key_of(owner),))
        self._held.discard(owner)
        if not self._held:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()


def need_own_session(url: str, connection: Any) -> None:
    """Raises PooledByTransaction if a pooler can give the session of this connection to another transaction."""
    with told(url):
        other = connect(url, application="lamplighter proof of life")
        try:
            shared = any(_share_a_session(connection, other) for _ in range(LOOKS))
        finally:
            other.close()
    if shared:
        raise PooledByTransaction(masked(url))


def _share_a_session(one: Any, other: Any) -> bool:
    """Whether both get one session: a pooler gives the transaction of `other` the one freed last, that of `one`."""
    before = _session(one)
    other.execute("BEGIN")
    shared = _session(other) == before or _session(one) != before
    other.execute("ROLLBACK")
    return shared


def _session(connection: Any) -> int:
    row = connection.execute("SELECT pg_backend_pid() AS pid").fetchone()
    pid: int = row["pid"]
    return pid


def key_of(owner: str) -> int:
    """The first 63 bits of a digest, so that two owners never share a key by chance."""
    return int.from_bytes(hashlib.sha256(owner.encode()).digest()[:8], "big") >> 1
