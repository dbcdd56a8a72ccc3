"""Numbers committed events on PostgreSQL, where transactions commit in another order than they write."""

from lamplighter.store.engine.db import Db

# The lock lasts to the end of this short transaction; the update sees all that was numbered under it before.
NUMBER_LOCK = "SELECT pg_advisory_xact_lock(5267, 1)"
# Materialized: a plan may read `numbered` once for each row of events, and each reading would take new numbers.
NUMBER = """
    WITH numbered AS MATERIALIZED (
        SELECT id, nextval('events_seq') AS seq FROM (
            SELECT id FROM events WHERE seq IS NULL ORDER BY id LIMIT :limit) AS waiting)
    UPDATE events SET seq = numbered.seq FROM numbered WHERE events.id = numbered.id"""


def number_committed(db: Db, *, limit: int = 5000) -> int:
    """Number committed rows; returns how many, so that the caller can repeat it until none is left."""
    db.execute(NUMBER_LOCK, {})
    return db.execute(NUMBER, {"limit": limit})
