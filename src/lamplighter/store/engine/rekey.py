"""Changes the city id of all rows in a SQLite file, for a copy that becomes a city of its own."""

from pathlib import Path

from lamplighter.store.engine.sqlite_connection import connect, told

TABLES = """
    SELECT m.name AS name FROM sqlite_master AS m
    WHERE m.type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = 'city_id')"""
REKEY = "UPDATE {} SET city_id = :new WHERE city_id = :old"
REKEY_CITY = "UPDATE cities SET id = :new WHERE id = :old"


def rekey_sqlite(path: Path, old: str, new: str) -> None:
    """Change all rows or none. May be repeated: does nothing when no row has the old id."""
    connection = connect(path)
    try:
        with told(path):
            connection.execute("PRAGMA foreign_keys = OFF")  # rows and those they refer to change together
            connection.execute("BEGIN IMMEDIATE")
            for row in connection.execute(TABLES).fetchall():
                connection.execute(REKEY.format(row["name"]), {"old": old, "new": new})
            connection.execute(REKEY_CITY, {"old": old, "new": new})
            connection.execute("COMMIT")
    finally:
        connection.close()
