"""A city without processes: its store, the clock and ids of the test, and short ways to move and ask it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from lamplighter.domain.access import owner
from lamplighter.domain.automations.gates import Checked
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.city.model import Rig, Workspace
from lamplighter.domain.runs.model import Run
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.kit.shapes import to_json
from lamplighter.ports.commands import CommandRunner
from lamplighter.services.automations import due, editing, firing, outlook
from lamplighter.services.automations.queries import HISTORY, AutomationHistory
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured, Context, acting
from lamplighter.services.host import Host
from lamplighter.services.operation import Kind, Operation, judged
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.services.runs.queries import ShowRun, show_run
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.tx import DirectStore, Store
from lamplighter.store.url import Place, PostgresUrl
from lamplighter.testing.clock import FakeClock

CITY = "cty_test"


@dataclass(frozen=True)
class OnlyStore:
    """A host that holds nothing but the city's store; commands of conditions exit with `exits`, by their lines."""

    store: Store
    clock: Clock = field(default_factory=FakeClock)
    exits: Mapping[str, int] = field(default_factory=dict)

    @property
    def commands(self) -> CommandRunner:
        raise AssertionError("this host runs no commands")

    async def check_conditions(self, asked: Sequence[outlook.Asked]) -> list[Checked]:
        return [Checked(self.exits[one.gate.check]) for one in asked]

    def outside_beads(self) -> None:
        return None


class City:
    """A store without a loop, moved by the test's clock."""

    def __init__(self, place: Place, store: DirectStore, clock: FakeClock, ids: IdSource) -> None:
        self.place, self.store, self.clock, self.ids = place, store, clock, ids
        self.rules = Rules(ZoneInfo("UTC"))
        self.position = 0

    @property
    def context(self) -> Context:
        return acting("tester", self.clock.now(), self.ids)

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
        row: AutomationRow = self.run(editing.create, body, rules=self.rules, ctx=self.context)
        return row

    def tick(self) -> due.PassReport:
        """What the scheduler does in a pass: show new events, then fire what is due."""
        self.position = self.run(due.scan_events, self.position, self.clock.now())
        looked: due.PassReport = self.run(
            due.fire_due, limit=1000, rules=self.rules, ctx=acting("controller", self.clock.now(), self.ids)
        )
        return looked

    def shown(self, run: str) -> dict[str, Any]:
        """The run as every surface shows it."""
        found: dict[str, Any] = to_json(self.read(show_run, ShowRun(run), self.context))
        return found

    @property
    def configured(self) -> Configured:
        city = CityConfig(workspace=Workspace(name="test"), rigs=(Rig(name="web", path="web"),))
        return Configured(city, self.rules)

    def operations(self, store: Store, exits: Mapping[str, int] | None = None) -> CityOperations:
        host = cast("Host", OnlyStore(store, self.clock, exits or {}))
        return CityOperations(host, self.clock, self.ids, lambda: self.configured)

    def do(self, operation: Operation[Any, Any], ask: Any, *, surface: str = "cli") -> Any:
        """Carry out a read or a transaction as an owner."""
        ctx = Context(owner("tester"), self.clock.now(), self.ids, surface, self.configured)
        carry_out = self.read if operation.kind is Kind.READ else self.run
        return carry_out(judged, operation, ask, ctx)

    def emit(self, event_type: str, payload: Any = None, *, by_run: str | None = None) -> None:
        event = acting("tester", self.clock.now(), self.ids).inside(by_run).event(event_type, payload=payload)
        self.run(lambda tx: tx.events.append(event))
        if isinstance(self.place, PostgresUrl):
            self.run(lambda tx: number_committed(tx.db))

    def run_now(self, name: str, **keys: Any) -> firing.Fired:
        fired: firing.Fired = self.run(
            firing.run_by_hand, firing.ByHand(name, **keys), rules=self.rules, ctx=self.context
        )
        return fired

    def row(self, name: str) -> AutomationRow:
        row: AutomationRow = self.read(editing.get, name)
        return row

    def trigger(self, name: str, trigger: str | None = None) -> Any:
        rows = self.read(lambda tx: tx.triggers.of(tx.automations.named(name).id))
        return rows[0] if trigger is None else next(row for row in rows if row.id == trigger)

    def runs_of(self, name: str) -> list[Run]:
        """Oldest first."""
        found: list[Run] = self.read(lambda tx: tx.runs.page(automation=name, limit=1000))
        return sorted(found, key=lambda row: (row.created_at, row.attempt, row.id))

    def get(self, run: str) -> Run:
        row: Run = self.read(review.get, run)
        return row

    def start(self, run: str, worker: review.Worker | None = None) -> Run:
        """Take the run's item and make it running, as a worker does."""
        from lamplighter.services import outbox

        who = worker or review.Worker("own_test", "here")
        items = self.run(outbox.claim_due, who.owner, self.clock.now(), limit=1, run=run)
        started: Run = self.run(review.start, items[0], who, self.clock.now()).row
        return started

    def finish(self, run: str, state: str = "succeeded", reason: str = "", error: str = "") -> Run:
        """Start it if need be, and end it."""
        from lamplighter.domain.runs.model import By, Mover, RunState

        row = self.get(run)
        if row.state is RunState.READY:
            row = self.start(run)
        by = By(Mover.WORKER, "worker", row.lease.version)
        ending = review.Ending(RunState(state), reason, error=error)
        ended: Run = self.run(review.end, run, ending, by, ctx=self.context)
        return ended

    def events(self, event_type: str) -> list[Any]:
        if isinstance(self.place, PostgresUrl):
            self.run(lambda tx: number_committed(tx.db))
        found: list[Any] = self.read(lambda tx: tx.events.after_of_type(event_type, 0))
        return found

    def history(self, name: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return [to_json(one) for one in reversed(self.do(HISTORY, AutomationHistory(name)))]

    def advance(self, **span: float) -> None:
        self.clock.advance(timedelta(**span))
