"""Names of runs and automations with a word about each, for commands that load little else."""

from collections.abc import Sequence

from lamplighter.store.summary import Reads

# the primary key of runs begins with its time, so this reads no more than it returns
NEWEST_RUNS = "SELECT id, automation, state FROM runs WHERE city_id = :city ORDER BY id DESC LIMIT :limit"
# the index of scoped names serves this
AUTOMATIONS = """
    SELECT scoped_name, enabled FROM automations WHERE city_id = :city ORDER BY scoped_name LIMIT :limit"""


class BriefLists:
    def __init__(self, db: Reads, city: str) -> None:
        self._db = db
        self._city = city

    def runs(self, *, limit: int) -> Sequence[tuple[str, str, str]]:
        """Id, automation and state of the newest, newest first."""
        rows = self._db.rows(NEWEST_RUNS, {"city": self._city, "limit": limit})
        return [(row["id"], row["automation"], row["state"]) for row in rows]

    def automations(self, *, limit: int) -> Sequence[tuple[str, bool]]:
        """Scoped names in their order, and whether each is enabled."""
        rows = self._db.rows(AUTOMATIONS, {"city": self._city, "limit": limit})
        return [(row["scoped_name"], bool(row["enabled"])) for row in rows]
