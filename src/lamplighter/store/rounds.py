"""The rounds of runs whose success is verified: what was claimed each time, and what the verification said of it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp

ADD = """
    INSERT INTO rounds (city_id, run_id, number, completion_id, completion, claimed_at)
    VALUES (:city, :run, :number, :completion_id, :completion, :at)"""
# the primary key serves these
JUDGE = """
    UPDATE rounds SET judged_at = :at, passed = :passed, exit_code = :exit_code, why = :why, output_tail = :tail
    WHERE city_id = :city AND run_id = :run AND number = :number AND judged_at IS NULL"""
OF = """
    SELECT number, completion_id, completion, claimed_at, judged_at, passed, exit_code, why, output_tail FROM rounds
    WHERE city_id = :city AND run_id = :run ORDER BY number"""
DELETE_OF_RUNS = "DELETE FROM rounds WHERE city_id = :city AND run_id {any:ids}"


@dataclass(frozen=True, slots=True)
class Round:
    """`passed` is None until the claim is judged."""

    run: str
    number: int
    completion_id: str
    completion: str
    claimed_at: datetime
    judged_at: datetime | None = None
    passed: bool | None = None
    exit_code: int | None = None
    why: str = ""
    output_tail: str = ""


class Rounds:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: Round) -> None:
        params = {"city": self._city, "run": row.run, "number": row.number, "completion_id": row.completion_id,
                  "completion": row.completion, "at": stamp(row.claimed_at)}  # fmt: skip
        self._db.execute(ADD, params)

    def judge(self, row: Round) -> bool:
        """Record what the verification said; False when that is on record already."""
        params = {"city": self._city, "run": row.run, "number": row.number, "passed": int(bool(row.passed)),
                  "exit_code": row.exit_code, "why": row.why, "tail": row.output_tail,
                  "at": None if row.judged_at is None else stamp(row.judged_at)}  # fmt: skip
        return self._db.execute(JUDGE, params) == 1

    def of(self, run: str) -> list[Round]:
        return [_round(run, row) for row in self._db.rows(OF, {"city": self._city, "run": run})]

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})


def _round(run: str, row: Row) -> Round:
    passed = row["passed"]
    return Round(
        run, row["number"], row["completion_id"], row["completion"], instant(row["claimed_at"]),
        instant_or_none(row["judged_at"]), None if passed is None else bool(passed), row["exit_code"],
        row["why"], row["output_tail"],
    )  # fmt: skip
