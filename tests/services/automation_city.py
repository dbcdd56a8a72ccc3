"""A city without processes: its store, the clock and ids of the test, and short ways to move and ask it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.domain.acts import Act
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import due, editing, firing
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.store.automations import AutomationRow
from lamplighter.store.events import number_committed
from lamplighter.store.run_rows import RunRow
from lamplighter.store.tx import DirectStore
from lamplighter.store.url import Place, PostgresUrl
from lamplighter.testing.clock import FakeClock

CITY = "cty_test"


class City:
    """A store without a loop, moved by the test's clock."""

    def __init__(self, place: Place, store: DirectStore, clock: FakeClock, ids: IdSource) -> None:
        self.place, self.store, self.clock, self.ids = place, store, clock, ids
        self.rules = Rules(ZoneInfo("UTC"))
        self.position = 0

    @property
    def act(self) -> Act:
        return Act("tester", self.clock.now())

    def run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.store.transact(fn, *args, **kwargs)

    def read(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.store.read(fn, *args, **kwargs)

    def add(self, name: str, **keys: Any) -> AutomationRow:
        body = {"name": name, "exec": "true", "gate": "manual"} | keys
        if "triggers" in body or "agent" in body or "formula" in body:
            body = {key: value for key, value in body.items() if not (key == "gate" and "triggers" in keys)}
        if "agent" in keys or "formula" in keys:
            body.pop("exec")
        row: AutomationRow = self.run(editing.create, body, rules=self.rules, ids=self.ids, act=self.act)
        return row

    def tick(self) -> due.PassReport:
        """What the scheduler does in a pass: show new events, then fire what is due."""
        self.position = self.run(due.scan_events, self.position, self.clock.now())
        looked: due.PassReport = self.run(
            due.fire_due, limit=1000, rules=self.rules, ids=self.ids, act=Act("controller", self.clock.now())
        )
        return looked

    def emit(self, event_type: str, payload: Any = None, *, by_run: str | None = None) -> None:
        event = Act("tester", self.clock.now(), by_run).event(event_type, payload=payload)
        self.run(lambda tx: tx.events.append(event))
        if isinstance(self.place, PostgresUrl):
            self.run(lambda tx: number_committed(tx.db))

    def run_now(self, name: str, **keys: Any) -> firing.Fired:
        fired: firing.Fired = self.run(
            firing.run_by_hand, firing.ByHand(name, **keys), rules=self.rules, ids=self.ids, act=self.act
        )
        return fired

    def row(self, name: str) -> AutomationRow:
        row: AutomationRow = self.read(editing.get, name)
        return row

    def trigger(self, name: str, trigger: str | None = None) -> Any:
        rows = self.read(lambda tx: tx.triggers.of(tx.automations.named(name).id))
        return rows[0] if trigger is None else next(row for row in rows if row.id == trigger)

    def runs_of(self, name: str) -> list[RunRow]:
        """Oldest first."""
        found: list[RunRow] = self.read(lambda tx: tx.runs.page(automation=name, limit=1000))
        return sorted(found, key=lambda row: (row.run.created_at, row.run.attempt, row.run.id))

    def get(self, run: str) -> RunRow:
        row: RunRow = self.read(review.get, run)
        return row

    def start(self, run: str, worker: review.Worker | None = None) -> RunRow:
        """Take the run's item and make it running, as a worker does."""
        from lamplighter.services import outbox

        who = worker or review.Worker("own_test", "here")
        items = self.run(outbox.claim_due, who.owner, self.clock.now(), limit=1, run=run)
        started: RunRow = self.run(review.start, items[0], who, self.clock.now()).row
        return started

    def finish(self, run: str, state: str = "succeeded", reason: str = "") -> RunRow:
        """Start it if need be, and end it."""
        from lamplighter.domain.runs.model import By, Mover, RunState

        row = self.get(run)
        if row.run.state is RunState.READY:
            row = self.start(run)
        by = By(Mover.WORKER, "worker", row.run.lease.version)
        ending = review.Ending(RunState(state), reason)
        ended: RunRow = self.run(review.end, run, ending, by, ids=self.ids, act=self.act)
        return ended

    def events(self, event_type: str) -> list[Any]:
        if isinstance(self.place, PostgresUrl):
            self.run(lambda tx: number_committed(tx.db))
        found: list[Any] = self.read(lambda tx: tx.events.after_of_type(event_type, 0))
        return found

    def history(self, name: str) -> list[dict[str, Any]]:
        from lamplighter.services.automations import outlook

        found: list[dict[str, Any]] = self.read(outlook.history, name)
        return list(reversed(found))

    def advance(self, **span: float) -> None:
        self.clock.advance(timedelta(**span))
