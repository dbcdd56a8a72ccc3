"""Messages to runs at work, and the runs that were told them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, instant, stamp

ADD = """
    INSERT INTO messages (city_id, id, run_id, text, sender, sent_at)
    VALUES (:city, :id, :run, :text, :sender, :at)"""
# the index messages_of_run serves these
WAITING = """
    SELECT id, text, sender, sent_at FROM messages
    WHERE city_id = :city AND run_id = :run AND taken_by IS NULL ORDER BY sent_at, id"""
TAKE = "UPDATE messages SET taken_by = :by WHERE city_id = :city AND run_id = :run AND taken_by IS NULL"
MOVE = """
    UPDATE messages SET run_id = :to WHERE city_id = :city AND run_id = :run AND taken_by IS NULL"""
DELETE_OF_RUNS = "DELETE FROM messages WHERE city_id = :city AND run_id {any:ids}"


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    run: str
    text: str
    sender: str
    sent_at: datetime


class Messages:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: Message) -> None:
        params = {"city": self._city, "id": row.id, "run": row.run, "text": row.text, "sender": row.sender,
                  "at": stamp(row.sent_at)}  # fmt: skip
        self._db.execute(ADD, params)

    def waiting(self, run: str) -> list[Message]:
        """In the order in which they were sent."""
        rows = self._db.rows(WAITING, {"city": self._city, "run": run})
        return [Message(row["id"], run, row["text"], row["sender"], instant(row["sent_at"])) for row in rows]

    def pass_on(self, run: str, to: str) -> int:
        """Let those that wait for the end of `run` wait for that of `to`."""
        return self._db.execute(MOVE, {"city": self._city, "run": run, "to": to})

    def take(self, run: str, by: str) -> int:
        """Record the run that is told them."""
        return self._db.execute(TAKE, {"city": self._city, "run": run, "by": by})

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})
