"""What agent runs used day by day, and how long they were at work: the sums that budgets of a day look at."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import zip_longest

from lamplighter.domain.runs.budget import DaySpent
from lamplighter.store.engine import Db, stamp

ADD = """
    INSERT INTO run_days (city_id, run_id, day, automation_id, tokens, cost)
    VALUES (:city, :run, :day, :automation, :tokens, :cost)
    ON CONFLICT (city_id, run_id, day)
        DO UPDATE SET tokens = run_days.tokens + excluded.tokens, cost = run_days.cost + excluded.cost"""
# the index run_days_by_day serves this
USED = """
    SELECT COALESCE(sum(tokens), 0) AS tokens, COALESCE(sum(cost), 0) AS cost FROM run_days
    WHERE city_id = :city AND day = :day {of}"""
# the index runs_worked serves this: what ended since then
WORKED = """
    SELECT COALESCE(sum(ended_at - CASE WHEN started_at > :since THEN started_at ELSE :since END), 0) AS us FROM runs
    WHERE city_id = :city AND action = 'agent' AND started_at IS NOT NULL AND ended_at > :since {of}"""
# the index runs_by_state serves this
WORKS = """
    SELECT COALESCE(sum(:now - CASE WHEN started_at > :since THEN started_at ELSE :since END), 0) AS us FROM runs
    WHERE city_id = :city AND state = 'running' AND action = 'agent' AND started_at < :now {of}"""
# As WORKED and WORKS, only those that a person took: when they were taken and given back. The primary key of the
# timeline serves the second part.
STOOD = """
    SELECT run_id, type, at, ended_at FROM runs JOIN run_events ON run_events.city_id = runs.city_id AND run_id = id
    WHERE runs.city_id = :city AND action = 'agent' AND {worked} {of} AND type IN ('run_taken', 'run_given')
    ORDER BY run_id, number"""
STOOD_BEFORE_END = "started_at IS NOT NULL AND ended_at > :since AND stood_us > 0"
STANDS = "state = 'running' AND (stood_us > 0 OR taken_at IS NOT NULL)"
DELETE_OF_RUNS = "DELETE FROM run_days WHERE city_id = :city AND run_id {any:ids}"
_OF = "AND automation_id = :automation"


class RunDays:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, run: str, automation: str, day: str, *, tokens: int, cost: float) -> None:
        """Add to what the run used on that day."""
        params = {"city": self._city, "run": run, "day": day, "automation": automation, "tokens": tokens, "cost": cost}
        self._db.execute(ADD, params)

    def spent(self, since: datetime, now: datetime, *, automation: str | None = None) -> DaySpent:
        """What all agent runs used, or those of one automation, on the day that began at `since`."""
        of = "" if automation is None else _OF
        params: dict[str, object] = {"city": self._city}
        if automation is not None:
            params["automation"] = automation
        used = self._db.row(USED.replace("{of}", of), params | {"day": day_named(since)})
        worked = self._db.row(WORKED.replace("{of}", of), params | {"since": stamp(since)})
        times = {"since": stamp(since), "now": stamp(now)}
        works = self._db.row(WORKS.replace("{of}", of), params | times)
        microseconds = sum(0 if row is None else int(row["us"]) for row in (worked, works))
        for which in (STOOD_BEFORE_END, STANDS):
            microseconds -= self._stood(which, of, params, since, now)
        if used is None:
            return DaySpent(time=timedelta(microseconds=microseconds))
        return DaySpent(int(used["tokens"]), float(used["cost"]), timedelta(microseconds=microseconds))

    def _stood(self, which: str, of: str, params: Mapping[str, object], since: datetime, now: datetime) -> int:
        """For how many microseconds since then persons had these runs."""
        sql = STOOD.replace("{worked}", which).replace("{of}", of)
        times = {"since": stamp(since)} if ":since" in which else {}
        rows = self._db.rows(sql, {**params, **times})
        found = 0
        for row, following in zip_longest(rows, rows[1:]):
            if row["type"] == "run_taken":
                given_back = following is not None and following["run_id"] == row["run_id"]
                until = following["at"] if given_back else row["ended_at"] or stamp(now)
                found += max(until - max(row["at"], stamp(since)), 0)
        return found

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})


def day_named(since: datetime) -> str:
    """The name of the day that begins at that local midnight, such as `2026-03-01`."""
    return since.date().isoformat()
