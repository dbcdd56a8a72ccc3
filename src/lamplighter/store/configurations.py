"""Configurations of agent runs, from the city's files and from people, in one list that every worker reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.store.engine import Db, stamp

PUT = """
    INSERT INTO configurations (city_id, name, source, body, updated_at) VALUES (:city, :name, :source, :body, :at)
    ON CONFLICT (city_id, name) DO UPDATE
    SET source = excluded.source, body = excluded.body, updated_at = excluded.updated_at"""
ALL = "SELECT name, source, body FROM configurations WHERE city_id = :city ORDER BY name"
DELETE = "DELETE FROM configurations WHERE city_id = :city AND name = :name"


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """`source` is `file` for a configuration from city.toml; `body` holds its keys."""

    name: str
    source: str
    body: Mapping[str, Any]


class Configurations:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: ConfigurationRow, now: datetime) -> None:
        params = {"city": self._city, "name": row.name, "source": row.source, "at": stamp(now)}
        self._db.execute(PUT, params | {"body": json.dumps(dict(row.body), sort_keys=True)})

    def all(self) -> list[ConfigurationRow]:
        rows = self._db.rows(ALL, {"city": self._city})
        return [ConfigurationRow(row["name"], row["source"], json.loads(row["body"])) for row in rows]

    def delete(self, name: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "name": name}) == 1
