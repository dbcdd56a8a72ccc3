"""Recorded artifacts: which ones a run wrote, and their keys in the artifact store."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, Row, instant, stamp

# A second write of an artifact replaces it, and so its row.
PUT = """
    INSERT INTO artifacts (city_id, run_id, name, key, size, content_type, written_at)
    VALUES (:city, :run, :name, :key, :size, :type, :at)
    ON CONFLICT (city_id, run_id, name) DO UPDATE
    SET key = excluded.key, size = excluded.size, content_type = excluded.content_type,
        written_at = excluded.written_at"""
OF = """
    SELECT run_id, name, key, size, content_type, written_at FROM artifacts
    WHERE city_id = :city AND run_id = :run ORDER BY name"""
OF_SOME = """
    SELECT run_id, name, key, size, content_type, written_at FROM artifacts
    WHERE city_id = :city AND run_id {any:ids} ORDER BY run_id, name"""
# the index artifacts_by_age serves this
OLD = """
    SELECT run_id, name, key, size, content_type, written_at FROM artifacts
    WHERE city_id = :city AND written_at < :before ORDER BY written_at LIMIT :limit"""
FORGET = "DELETE FROM artifacts WHERE city_id = :city AND run_id = :run AND name = :name"


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    run: str
    name: str
    key: str
    size: int
    content_type: str
    written_at: datetime


class Artifacts:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: ArtifactRow) -> None:
        """May be repeated."""
        params = {"city": self._city, "run": row.run, "name": row.name, "key": row.key, "size": row.size,
                  "type": row.content_type, "at": stamp(row.written_at)}  # fmt: skip
        self._db.execute(PUT, params)

    def of(self, run: str) -> list[ArtifactRow]:
        return [_artifact(row) for row in self._db.rows(OF, {"city": self._city, "run": run})]

    def of_some(self, runs: Iterable[str]) -> dict[str, list[ArtifactRow]]:
        """The artifacts of each of these runs; runs without one are left out."""
        found: dict[str, list[ArtifactRow]] = {}
        for row in self._db.rows(OF_SOME, {"city": self._city, "ids": json.dumps(sorted(set(runs)))}):
            found.setdefault(row["run_id"], []).append(_artifact(row))
        return found

    def old(self, *, before: datetime, limit: int) -> list[ArtifactRow]:
        params = {"city": self._city, "before": stamp(before), "limit": limit}
        return [_artifact(row) for row in self._db.rows(OLD, params)]

    def forget(self, row: ArtifactRow) -> None:
        self._db.execute(FORGET, {"city": self._city, "run": row.run, "name": row.name})


def _artifact(row: Row) -> ArtifactRow:
    return ArtifactRow(
        row["run_id"], row["name"], row["key"], row["size"], row["content_type"], instant(row["written_at"])
    )
