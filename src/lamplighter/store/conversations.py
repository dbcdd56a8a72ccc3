"""Which conversation a value goes on with, for automations whose triggers say so: by a run of it."""

import json
from collections.abc import Iterable

from lamplighter.store.engine import Db

# the primary key serves these
GET = "SELECT run_id FROM conversations WHERE city_id = :city AND automation_id = :automation AND key = :key"
PUT = """
    INSERT INTO conversations (city_id, automation_id, key, run_id) VALUES (:city, :automation, :key, :run)
    ON CONFLICT (city_id, automation_id, key) DO UPDATE SET run_id = excluded.run_id"""
# the index conversations_of_run serves this
DELETE_OF_RUNS = "DELETE FROM conversations WHERE city_id = :city AND run_id {any:ids}"


class Conversations:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def run_of(self, automation: str, key: str) -> str | None:
        """A run of that conversation; there may be later ones that go on with it."""
        row = self._db.row(GET, {"city": self._city, "automation": automation, "key": key})
        return None if row is None else row["run_id"]

    def put(self, automation: str, key: str, run: str) -> None:
        self._db.execute(PUT, {"city": self._city, "automation": automation, "key": key, "run": run})

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})
