"""Who is at work and who waits for a place, as counted by whoever is to start a run."""

from datetime import datetime

from lamplighter.domain.runs.model import Run
from lamplighter.store.engine import Db, stamp
from lamplighter.store.run_rows import RUNS

MAKE = "INSERT INTO start_gates (city_id) VALUES (:city) ON CONFLICT DO NOTHING"
LOCK = "SELECT city_id FROM start_gates WHERE city_id = :city {for_update}"
# the index runs_by_state serves these
AT_WORK = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula' ORDER BY id"""
WAITING = f"""
    SELECT {RUNS.listed()} FROM runs
    WHERE city_id = :city AND state = 'ready' AND reason = :reason AND id < :before AND last_activity_at >= :since
    ORDER BY id"""


class RunGates:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def lock(self) -> None:
        """Let nobody else count and start until this transaction ends."""
        self._db.execute(MAKE, {"city": self._city})
        self._db.row(LOCK, {"city": self._city})

    def at_work(self) -> list[Run]:
        """The runs whose command or agent is at work, oldest first."""
        return [RUNS.read(row) for row in self._db.rows(AT_WORK, {"city": self._city})]

    def waiting(self, reason: str, *, before: str, since: datetime) -> list[Run]:
        """The runs older than `before` that wait for that reason, and have looked since `since`; oldest first."""
        params = {"city": self._city, "reason": reason, "before": before, "since": stamp(since)}
        return [RUNS.read(row) for row in self._db.rows(WAITING, params)]
