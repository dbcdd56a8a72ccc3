"""Rollups of ended runs: how many there were in an hour, how long they took and what they cost."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, instant, stamp

ADD = """
    INSERT INTO run_rollups (
        city_id, hour, automation, outcome, model, runs, agent_runs, told, duration_us, cost, tokens)
    VALUES (:city, :hour, :automation, :outcome, :model, :runs, :agent_runs, :told, :duration_us, :cost, :tokens)
    ON CONFLICT (city_id, hour, automation, outcome, model) DO UPDATE SET
        runs = run_rollups.runs + excluded.runs, agent_runs = run_rollups.agent_runs + excluded.agent_runs,
        told = run_rollups.told + excluded.told, duration_us = run_rollups.duration_us + excluded.duration_us,
        cost = run_rollups.cost + excluded.cost, tokens = run_rollups.tokens + excluded.tokens"""
# the primary key serves this
SINCE = """
    SELECT hour, automation, outcome, model, runs, agent_runs, told, duration_us, cost, tokens FROM run_rollups
    WHERE city_id = :city AND hour >= :since AND runs > 0 ORDER BY hour, automation, outcome, model"""
# the primary key serves this
BY_HOUR = """
    SELECT hour, outcome, SUM(runs) AS runs, SUM(agent_runs) AS agent_runs, SUM(told) AS told,
           SUM(duration_us) AS duration_us, SUM(cost) AS cost, SUM(tokens) AS tokens
    FROM run_rollups WHERE city_id = :city AND hour >= :since AND runs > 0
    GROUP BY hour, outcome ORDER BY hour, outcome"""
# the primary key serves this; `key` is the automation or the model
BY_KEY = """
    SELECT {key} AS name, outcome, SUM(runs) AS runs, SUM(agent_runs) AS agent_runs, SUM(told) AS told,
           SUM(duration_us) AS duration_us, SUM(cost) AS cost, SUM(tokens) AS tokens
    FROM run_rollups WHERE city_id = :city AND hour >= :since AND runs > 0
    GROUP BY {key}, outcome ORDER BY {key}, outcome"""
# the index run_rollups_of serves this
SINCE_OF = """
    SELECT hour, automation, outcome, model, runs, agent_runs, told, duration_us, cost, tokens FROM run_rollups
    WHERE city_id = :city AND automation = :automation AND hour >= :since AND runs > 0 ORDER BY hour, outcome, model"""
# the index run_rollups_of serves this; `day` is the number of the day's beginning that an hour is not before
DAYS_OF = """
    SELECT automation, outcome, {day} AS day, SUM(runs) AS runs FROM run_rollups
    WHERE city_id = :city AND automation {any:names} AND hour >= :since AND runs > 0
    GROUP BY automation, outcome, day"""
# the primary key serves this
PRUNE = """
    DELETE FROM run_rollups WHERE city_id = :city AND hour < :before AND hour <= (
        SELECT max(hour) FROM (
            SELECT hour FROM run_rollups WHERE city_id = :city AND hour < :before ORDER BY hour LIMIT :limit
        ) AS oldest)"""
ROLLED_UP = "SELECT rolled_up FROM cities WHERE id = :city"
ROLL_UP = "UPDATE cities SET rolled_up = :seq WHERE id = :city AND rolled_up = :expected"


@dataclass(frozen=True, slots=True)
class Rollup:
    """The ended runs of one automation in one hour with one outcome and one model; `told` of them told their cost."""

    hour: datetime
    automation: str
    outcome: str
    model: str
    """Empty if it is not known, and for commands."""
    runs: int
    agent_runs: int
    told: int
    duration_us: int
    cost: float
    tokens: int


class Rollups:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, rows: Iterable[Rollup]) -> None:
        for row in rows:
            self._db.execute(ADD, {"city": self._city} | {
                "hour": stamp(row.hour), "automation": row.automation, "outcome": row.outcome, "model": row.model,
                "runs": row.runs, "agent_runs": row.agent_runs, "told": row.told, "duration_us": row.duration_us,
                "cost": float(row.cost), "tokens": row.tokens,
            })  # fmt: skip

    def since(self, since: datetime, *, automation: str | None = None) -> list[Rollup]:
        """Those of one automation if it is named, else all, oldest first."""
        params: dict[str, object] = {"city": self._city, "since": stamp(since)}
        if automation is None:
            rows = self._db.rows(SINCE, params)
        else:
            rows = self._db.rows(SINCE_OF, params | {"automation": automation})
        return [
            Rollup(
                instant(row["hour"]), row["automation"], row["outcome"], row["model"], row["runs"], row["agent_runs"],
                row["told"], row["duration_us"], row["cost"], row["tokens"],
            )
            for row in rows
        ]  # fmt: skip

    def by_hour(self, since: datetime) -> list[Rollup]:
        """Those of all automations and models together, oldest first: as many rows, however many automations."""
        return [
            Rollup(
                instant(row["hour"]), "", row["outcome"], "", int(row["runs"]), int(row["agent_runs"]),
                int(row["told"]), int(row["duration_us"]), float(row["cost"]), int(row["tokens"]),
            )
            for row in self._db.rows(BY_HOUR, {"city": self._city, "since": stamp(since)})
        ]  # fmt: skip

    def by_key(self, since: datetime, *, model: bool) -> list[Rollup]:
        """Those of each automation together, or of each model; their hour is the one asked for."""
        sql = BY_KEY.replace("{key}", "model" if model else "automation")
        return [
            Rollup(
                since, "" if model else row["name"], row["outcome"], row["name"] if model else "", int(row["runs"]),
                int(row["agent_runs"]), int(row["told"]), int(row["duration_us"]), float(row["cost"]),
                int(row["tokens"]),
            )
            for row in self._db.rows(sql, {"city": self._city, "since": stamp(since)})
        ]  # fmt: skip

    def days_of(self, names: Iterable[str], begins: Sequence[datetime]) -> list[tuple[str, str, int, int]]:
        """Automation, outcome, number of the day and runs, for days that begin at these times in order."""
        cases = " ".join(f"WHEN hour < {stamp(one)} THEN {number}" for number, one in enumerate(begins[1:]))
        day = f"CASE {cases} ELSE {len(begins) - 1} END" if cases else "0"
        told = {"city": self._city, "names": json.dumps(sorted(names)), "since": stamp(begins[0])}
        rows = self._db.rows(DAYS_OF.replace("{day}", day), told)
        return [(row["automation"], row["outcome"], int(row["day"]), int(row["runs"])) for row in rows]

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete about `limit` of the oldest, whole hours at a time."""
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})

    def position(self) -> int:
        """The seq of the last event whose run is in the rollups."""
        row = self._db.row(ROLLED_UP, {"city": self._city})
        return 0 if row is None else row["rolled_up"]

    def advance(self, seq: int, *, expected: int) -> bool:
        """False if another process has advanced it."""
        return self._db.execute(ROLL_UP, {"city": self._city, "seq": seq, "expected": expected}) == 1
