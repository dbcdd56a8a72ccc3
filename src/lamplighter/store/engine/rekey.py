"""Changes the city id of all rows in a SQLite file, for a copy that becomes a city of its own."""

from pathlib import Path
from sqlite3 import Connection

from lamplighter.store.engine.sqlite_connection import connect, told

TABLES = """
    SELECT m.name AS name FROM sqlite_master AS m
    WHERE m.type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = 'city_id')"""
REKEY = "UPDATE {} SET city_id = :new WHERE city_id = :old"
REKEY_CITY = "UPDATE cities SET id = :new, organization_id = :organization WHERE id = :old"
OF_OLD = "(SELECT organization_id FROM cities WHERE id = :old)"
# its organization is another one than the original's, with the same people, whatever else the file holds
ORGANIZATION = f"""
    INSERT INTO organizations (id, name, created_at, home_city_id)
    SELECT :organization, name, created_at, :new FROM organizations WHERE id = {OF_OLD}"""
PEOPLE = ("members", "tokens")
COPY_PEOPLE = "INSERT INTO {0} (organization_id, {1}) SELECT :organization, {1} FROM {0} WHERE organization_id = "
END = "DELETE FROM {} WHERE {} = :before AND NOT EXISTS (SELECT 1 FROM cities WHERE cities.organization_id = :before)"


def rekey_sqlite(path: Path, old: str, new: str, organization: str) -> None:
    """Change all rows or none. May be repeated: does nothing when no row has the old id."""
    connection = connect(path)
    try:
        with told(path):
            connection.execute("PRAGMA foreign_keys = OFF")  # rows and those they refer to change together
            connection.execute("BEGIN IMMEDIATE")
            for row in connection.execute(TABLES).fetchall():
                connection.execute(REKEY.format(row["name"]), {"old": old, "new": new})
            _give_organization(connection, {"old": old, "new": new, "organization": organization})
            connection.execute("COMMIT")
    finally:
        connection.close()


def _give_organization(connection: Connection, params: dict[str, str]) -> None:
    before = connection.execute("SELECT organization_id AS id FROM cities WHERE id = :old", params).fetchone()
    if before is None:
        return
    connection.execute(ORGANIZATION, params)
    for table in PEOPLE:
        found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        columns = ", ".join(row["name"] for row in found if row["name"] != "organization_id")
        connection.execute(COPY_PEOPLE.format(table, columns) + OF_OLD, params)
    connection.execute(REKEY_CITY, params)
    for table in (*reversed(PEOPLE), "organizations"):
        key = "id" if table == "organizations" else "organization_id"
        connection.execute(END.format(table, key), {"before": before["id"]})
