"""Forward-only migrations of a PostgreSQL database, as those of an SQLite file."""

import time
from typing import Any

from lamplighter.kit.masking import masked
from lamplighter.store.engine.migrate import LEVEL_TABLE, wanted
from lamplighter.store.engine.migration_files import migrations
from lamplighter.store.engine.postgres_connection import PASSING, connect, told
from lamplighter.store.engine.schema import Level, Migration
from lamplighter.store.errors import StoreBusy

TRIES = 20
WAIT_SECONDS = 0.25
LOCK_SECONDS = 3.0
"""How long a try waits for a lock: whoever comes after it waits behind it all that time."""
TURN_SECONDS = 300.0
"""How long another process may take that migrates already."""


def migrate_postgres(url: str, *, to: int | None = None) -> list[Migration]:
    """Bring the database to this program's schema; several processes may try at once, while others work on it.

    Raises StoreBusy when every try ended in a lock conflict with a process at work, or the turn did not come.
    """
    connection = connect(url)
    try:
        for _ in range(TRIES):
            try:
                with told(url), connection.transaction():
                    _wait_at_most(connection, TURN_SECONDS)
                    connection.execute("SELECT pg_advisory_xact_lock(5267, 2)")
                    _wait_at_most(connection, LOCK_SECONDS)
                    return _apply_postgres(connection, masked(url), to)
            except PASSING:  # processes at work lock in another order, so either side may lose a deadlock
                time.sleep(WAIT_SECONDS)
    finally:
        connection.close()
    raise StoreBusy(masked(url))


def _wait_at_most(connection: Any, seconds: float) -> None:
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{round(seconds * 1000)}ms",))


def _apply_postgres(connection: Any, where: str, to: int | None) -> list[Migration]:
    applied = []
    connection.execute(LEVEL_TABLE)
    row = connection.execute("SELECT version, oldest FROM schema_level").fetchone()
    level = Level(0, 0) if row is None else Level(row["version"], row["oldest"])
    for migration in wanted(migrations("postgres"), level, where, to):
        connection.execute(migration.sql)
        connection.execute("DELETE FROM schema_level")
        connection.execute("INSERT INTO schema_level VALUES (%s, %s)", (migration.version, migration.oldest))
        applied.append(migration)
    return applied
