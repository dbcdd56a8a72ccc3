"""Runs whose every end is told to a webhook that fails, and that loses answers, in a city that is killed meanwhile."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from automation_watch import look, place_of
from crew import JobPool

from lamplighter.adapters.files.city import CityPaths
from lamplighter.domain.events import NewEvent
from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.kit.clock import SystemClock
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct
from lamplighter.testing.webhooks import Received, Receiver

PATIENCE = 900
REFUSED, LOST = 0.3, 0.1
MOST_FAILURES = 6
"""Of one notice: ten tries are made of each."""
CONFIG = """
[[notifications.destinations]]
name = "team"
kind = "webhook"
url = "{url}/hook"
signing_env = "TEAM_SECRET"
allow_private = true
"""
AUTOMATION = """[automation]
exec = "true"
gate = "event"
on = "load.step"
batch = 1
overlap = "allow"
[automation.notify]
to = ["team"]
on = ["succeeded"]
"""


@dataclass
class Trouble:
    """Refuses three of ten requests, and takes one of ten without an answer; what it took is counted here."""

    chance: random.Random = field(default_factory=lambda: random.Random(7))
    failures: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    lost: int = 0

    def judge(self, got: Received) -> int:
        notice, drawn = got.headers["webhook-id"], self.chance.random()
        fails = drawn < REFUSED + LOST and self.failures[notice] < MOST_FAILURES
        self.failures[notice] += fails
        if fails and drawn < REFUSED:
            return 503
        self.taken[notice] += 1
        self.lost += fails
        return 0 if fails else 204


def drill(city: Path, crew: JobPool, receiver: Receiver, count: int, *, kills: int = 2) -> Trouble:
    """Fire so many runs, kill the daemon in between, and go on until every notice was sent."""
    trouble = Trouble()
    receiver.judge = trouble.judge
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(CONFIG.format(url=receiver.url))
    folder = city / ".gc/formulas/automations/load"
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(AUTOMATION)
    crew.live("one", city, "up")
    crew.up("one")
    emit(city, count)
    for number in range(kills):
        until(city, lambda reached=(number + 1) * count // (kills + 2): sum(trouble.taken.values()) >= reached)
        crew.kill("one")
        crew.live("one", city, "up")
        crew.up("one")
    until(city, lambda: look(city, lambda tx: sent(tx) == count))
    assert crew.stop("one") == 0
    return trouble


def emit(city: Path, count: int, kind: str = "load.step") -> None:
    store = open_direct(place_of(city), CityPaths(city).city_id())
    now = SystemClock().now()
    try:
        for number in range(count):
            event = NewEvent(kind, now, "tester", payload={"step": number})
            store.transact(lambda tx, event=event: tx.events.append(event))
    finally:
        store.close()


def until(city: Path, holds: Callable[[], bool]) -> None:
    """Until it holds. What waits for another try is due at once: the schedule of three days is not on trial here."""
    until = time.monotonic() + PATIENCE
    store = open_direct(place_of(city), CityPaths(city).city_id())
    try:
        while not holds():
            assert time.monotonic() < until, "notices do not arrive"
            store.transact(_due_now)
            time.sleep(0.2)
    finally:
        store.close()


def _due_now(tx: Tx) -> None:
    if tx.db.execute(
        "UPDATE outbox SET due_at = 0 WHERE city_id = :city AND state = 'pending' AND kind = 'send_notice'"
        " AND attempts > 0 AND due_at > 0",
        {"city": tx.city},
    ):
        tx.wake("outbox")


def sent(tx: Tx) -> int:
    return sum(one.state is NoticeState.SENT for one in tx.notices.page(limit=100_000))


def unaccounted(city: Path, trouble: Trouble) -> list[str]:
    """Notices that did not arrive, or arrived more often than once without a doubt on record for each time more."""
    notices = look(city, lambda tx: tx.notices.page(limit=100_000))
    wrong = [one.id for one in notices if not 1 <= trouble.taken[one.id] <= 1 + one.doubts]
    runs = Counter(one.about for one in notices)
    return wrong + [run for run, number in runs.items() if number != 1]
