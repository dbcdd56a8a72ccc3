"""PostgreSQL databases that one test after another uses: emptied, which takes less time than making one.

A database that a test has left in another state than empty (another schema, statistics, settings, a changed version) is
not used again.
"""

import time

import psycopg
from psycopg import sql

# Everything but rows that a test could leave changed.
STATE = """
    SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
        SELECT concat_ws(' ', c.relname, c.relkind, c.reltuples, a.attname, a.atttypid, a.attnotnull, a.atthasdef)
        FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'public'::regnamespace
        UNION ALL SELECT concat_ws(' ', conname, pg_get_constraintdef(oid)) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT evtname FROM pg_event_trigger
        UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        UNION ALL SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_t%'
        UNION ALL SELECT setconfig::text FROM pg_db_role_setting AS s JOIN pg_database AS d ON d.oid = s.setdatabase
        WHERE d.datname = current_database()
        UNION ALL SELECT concat('analyzed ', starelid::regclass) FROM pg_statistic AS s
        JOIN pg_class AS c ON c.oid = s.starelid WHERE c.relnamespace = 'public'::regnamespace
        UNION ALL SELECT concat('level ', version, ' ', oldest) FROM schema_level
    ) AS lines (line)"""
OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
NAMES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = %s ORDER BY relname"
KEPT = frozenset({"schema_level", "schema_migrations"})


def state_of(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        return _state(connection)


def emptied(url: str, state: str) -> bool:
    """Whether the database is empty now and otherwise in that state."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET lock_timeout = '5s'")
            if not _alone(connection) or _state(connection) != state:
                return False
            _empty(connection)
            return True
    except psycopg.Error:
        return False


def _alone(connection: psycopg.Connection) -> bool:
    """End what a test has left connected; False if that takes too long."""
    until = time.monotonic() + 5
    while connection.execute(OTHERS).fetchall():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _state(connection: psycopg.Connection) -> str:
    row = connection.execute(STATE).fetchone()
    assert row is not None
    return str(row[0])


def _empty(connection: psycopg.Connection) -> None:
    tables = [name for name in _names(connection, "r") if name not in KEPT]
    has_rows = sql.SQL(", ").join(sql.SQL("EXISTS (SELECT 1 FROM {})").format(sql.Identifier(name)) for name in tables)
    row = connection.execute(sql.SQL("SELECT {}").format(has_rows)).fetchone()
    assert row is not None
    used = [name for name, found in zip(tables, row, strict=True) if found]
    statements = [sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for name in used]
    statements += [sql.SQL("SELECT setval({}, 1, false)").format(sql.Literal(name)) for name in _names(connection, "S")]
    together = sql.SQL("; ").join([sql.SQL("SET session_replication_role = replica"), *statements])  # in any order
    connection.execute(together)


def _names(connection: psycopg.Connection, kind: str) -> list[str]:
    return [row[0] for row in connection.execute(NAMES, (kind,)).fetchall()]
