"""Proof of life: a lock that each working process holds for as long as it lives, and that no other process can hold.

On one machine it is a file lock under `.gc/owners/`; on PostgreSQL it is a session's advisory lock, on a connection of
its own. The kernel or the server releases it as soon as the process is gone, however it ended.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from lamplighter.kit.masking import masked
from lamplighter.store.errors import PooledByTransaction, ProofLost, StoreUnavailable

SERVER_ASKS = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
"""Keepalives, by which the server notices that a machine vanished; a process that dies closes its socket."""


LOOKS = 3


class Proofs(Protocol):
    def hold(self, owner: str) -> None:
        """Take the proof of `owner`, this process."""
        ...

    def check(self, owner: str) -> None:
        """Raises ProofLost when the proof of `owner`, held by this process, is gone."""
        ...

    def dead(self, owner: str) -> bool:
        """Whether no process holds the proof of `owner`."""
        ...

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        """Those of `owners` whose proof is held; on PostgreSQL with one query for all."""
        ...

    def release(self, owner: str) -> None: ...

    def close(self) -> None:
        """For a process that only asked about others and holds no proof itself."""
        ...


class FileProofs:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def hold(self, owner: str) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._directory / owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{self._directory} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreUnavailable(f"The proof of life {owner} is held already: {error.strerror}.") from error
        self._held[owner] = fd

    def check(self, owner: str) -> None:
        if owner not in self._held:
            raise ProofLost(owner)

    def dead(self, owner: str) -> bool:
        if owner in self._held:
            return False
        try:
            fd = os.open(self._directory / owner, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            (self._directory / owner).unlink(missing_ok=True)
            return True
        finally:
            os.close(fd)

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        return frozenset(owner for owner in owners if not self.dead(owner))

    def release(self, owner: str) -> None:
        fd = self._held.pop(owner, None)
        if fd is not None:
            (self._directory / owner).unlink(missing_ok=True)
            os.close(fd)

    def close(self) -> None:
        for owner in tuple(self._held):
            self.release(owner)


class PostgresProofs:
    def __init__(self, url: str) -> None:
        from lamplighter.store.engine.postgres_connection import connect

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
        from lamplighter.store.engine.postgres_connection import told

        with told(self._url):
            self._connection.execute("SELECT pg_advisory_lock(%s)", (key_of(owner),))
        self._held.add(owner)

    def check(self, owner: str) -> None:
        import psycopg

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
        from lamplighter.store.engine.postgres_connection import told

        if owner in self._held:
            return False  # the server would grant this same connection the lock again
        with told(self._url):  # the lock ends with the statement, and is shared with others that look
            row = self._connection.execute(
                "SELECT pg_try_advisory_xact_lock_shared(%s) AS taken", (key_of(owner),)
            ).fetchone()
        return row is not None and row["taken"]

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        from lamplighter.store.engine.postgres_connection import told

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
        import psycopg

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
    from lamplighter.store.engine.postgres_connection import connect, told

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
