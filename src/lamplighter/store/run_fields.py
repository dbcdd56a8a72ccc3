"""Values of payloads by which runs are found, written with the run for declared paths only."""

import json
from collections.abc import Iterable

from lamplighter.store.engine import Db

ADD = """
    INSERT INTO run_fields (city_id, path, value, run_id) VALUES (:city, :path, :value, :run) ON CONFLICT DO NOTHING"""
# the index run_fields_of serves this
DELETE = "DELETE FROM run_fields WHERE city_id = :city AND run_id {any:runs}"


class RunFields:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, run: str, values: Iterable[tuple[str, str]]) -> None:
        for path, value in values:
            self._db.execute(ADD, {"city": self._city, "path": path, "value": value, "run": run})

    def delete_of_runs(self, runs: Iterable[str]) -> None:
        self._db.execute(DELETE, {"city": self._city, "runs": json.dumps(sorted(runs))})
