"""What ended runs add up to: made by a tick that follows their ends, read by `lamp cost` and by strips of days."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.events import Event
from lamplighter.domain.runs.model import TERMINAL, Run, RunState
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, read
from lamplighter.store.rollups import Rollup
from lamplighter.store.tx import Tx

AT_ONCE = 500
SETTLED = timedelta(minutes=2)
"""A run's last words, with what they cost, may come after its end: it is counted when nothing more will come."""
ENDS = frozenset({
    "automation.completed", "automation.finished", "automation.failed", "automation.skipped", "automation.canceled",
    "automation.needs_human",
})  # fmt: skip
MOST_DAYS = 400


# ── the tick ──────────────────────────────────────────────────────────────────────────────────────────────────────


def follow(tx: Tx, *, now: datetime) -> int:
    """Count the runs of the next events; returns how many events were read. Raises Conflict if another process does."""
    before = tx.rollups.position()
    events = _settled(tx.events.after(before, limit=AT_ONCE), now)
    if not events:
        return 0
    ends = [event for event in events if event.type in ENDS and run_of(event) is not None]
    runs = tx.runs.some(str(run_of(event)) for event in ends)
    models = {row.name: str(row.body.get("model") or "") for row in tx.configurations.all()} if runs else {}
    tx.rollups.add(_summed(_counted(ends, runs, models)))
    if not tx.rollups.advance(events[-1].seq, expected=before):
        raise Conflict("Another process counts the ended runs of this city.", hint="The next look goes on from there.")
    return len(events)


def _settled(events: Sequence[Event], now: datetime) -> list[Event]:
    """Up to the first that is too young. One that lies ahead of the clock is from before it was set back."""
    young = next((at for at, one in enumerate(events) if now - SETTLED < one.at <= now), len(events))
    return list(events[:young])


def run_of(event: Event) -> str | None:
    """The run whose end it tells; the events of a cooked wisp and of a slot that was left out tell no end."""
    told = event.payload
    if not isinstance(told, dict) or told.get("state") not in TERMINAL:
        return None
    return told.get("run")


def _counted(ends: Iterable[Event], runs: Mapping[str, Run], models: Mapping[str, str]) -> Iterable[Rollup]:
    for event in ends:
        run = runs.get(str(run_of(event)))
        if run is None:
            continue  # deleted since
        now = _rollup(run, event.payload["state"], event.at, models)
        earlier = event.payload.get("before")
        if isinstance(earlier, dict):  # a person has resolved it: it was counted with its first outcome
            then = _rollup(run, earlier["state"], datetime.fromisoformat(earlier["ended_at"]), models)
            yield replace(
                then, runs=-1, agent_runs=-then.agent_runs, told=-then.told, duration_us=-then.duration_us,
                cost=-then.cost, tokens=-then.tokens,
            )  # fmt: skip
        yield now


def _rollup(run: Run, state: str, at: datetime, models: Mapping[str, str]) -> Rollup:
    agent = run.action == AgentAction.kind
    action = run.definition.get("action")
    asked = str(action.get("model") or "") if isinstance(action, Mapping) else ""
    took = 0 if run.duration is None else run.duration // timedelta(microseconds=1)
    return Rollup(
        hour=at.replace(minute=0, second=0, microsecond=0),
        automation=run.automation,
        outcome=RunState(state).value,
        model=(asked or models.get(run.configuration or "", "")) if agent else "",
        runs=1,
        agent_runs=int(agent),
        told=int(run.cost is not None),
        duration_us=took,
        cost=run.cost or 0.0,
        tokens=run.tokens or 0,
    )


def _summed(rows: Iterable[Rollup]) -> list[Rollup]:
    found: dict[tuple[datetime, str, str, str], Rollup] = {}
    for row in rows:
        key = (row.hour, row.automation, row.outcome, row.model)
        known = found.get(key)
        found[key] = row if known is None else replace(
            known, runs=known.runs + row.runs, agent_runs=known.agent_runs + row.agent_runs,
            told=known.told + row.told, duration_us=known.duration_us + row.duration_us,
            cost=known.cost + row.cost, tokens=known.tokens + row.tokens,
        )  # fmt: skip
    return [found[key] for key in sorted(found)]


def prune_rollups(tx: Tx, *, before: datetime) -> int:
    return tx.rollups.prune(before=before, limit=AT_ONCE)


# ── what is asked of them ─────────────────────────────────────────────────────────────────────────────────────────


class By(StrEnum):
    DAY = "day"
    AUTOMATION = "automation"
    MODEL = "model"


@record
class ShowCost:
    """What runs cost in the last days: by day, by automation or by model.

    Runs are counted some two minutes after their end, by the running city.
    """

    by: By = given("What to add up by: day, automation or model.", default=By.DAY)
    days: int = given("How many days, today included.", default=14, least=1, most=MOST_DAYS)
    automation: str | None = given("Only the runs of this automation.", default=None, names="automation")


@record
class CostLine:
    key: str
    """The day, the automation or the model; empty where the model is not known."""
    runs: int
    agent_runs: int
    told: int
    """How many of the agent runs told their cost."""
    cost: float
    tokens: int
    duration_s: timedelta
    outcomes: Mapping[str, int]


@record
class CostView:
    by: By
    since: str
    """The first day, such as 2026-03-01."""
    until: str
    lines: list[CostLine]
    total: CostLine


@dataclass
class _Sum:
    runs: int = 0
    agent_runs: int = 0
    told: int = 0
    cost: float = 0.0
    tokens: int = 0
    duration_us: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def add(self, row: Rollup) -> None:
        self.runs += row.runs
        self.agent_runs += row.agent_runs
        self.told += row.told
        self.cost += row.cost
        self.tokens += row.tokens
        self.duration_us += row.duration_us
        self.outcomes[row.outcome] = self.outcomes.get(row.outcome, 0) + row.runs

    def line(self, key: str) -> CostLine:
        return CostLine(
            key, self.runs, self.agent_runs, self.told, round(self.cost, 6), self.tokens,
            timedelta(microseconds=self.duration_us), dict(sorted(self.outcomes.items())),
        )  # fmt: skip


def show_cost(tx: Tx, ask: ShowCost, ctx: Context) -> CostView:
    zone = ctx.rules.zone
    days = _days(ctx.now, zone, ask.days)
    sums: dict[str, _Sum] = {day.isoformat(): _Sum() for day in days} if ask.by is By.DAY else {}
    total = _Sum()
    begins = _begins(days[0], zone)
    for row in _rows(tx, ask, begins):
        key = _day(row, zone).isoformat() if ask.by is By.DAY else getattr(row, ask.by.value)
        for one in (sums.setdefault(key, _Sum()), total):
            one.add(row)
    lines = [one.line(key) for key, one in sums.items()]
    if ask.by is not By.DAY:
        lines.sort(key=lambda line: (-line.cost, -line.runs, line.key))
    return CostView(ask.by, days[0].isoformat(), days[-1].isoformat(), lines, total.line("total"))


def _rows(tx: Tx, ask: ShowCost, begins: datetime) -> list[Rollup]:
    """Added up by the database where all automations are asked about: there are many rows of them."""
    if ask.automation is not None:
        return tx.rollups.since(begins, automation=ask.automation)
    if ask.by is By.DAY:
        return tx.rollups.by_hour(begins)
    return tx.rollups.by_key(begins, model=ask.by is By.MODEL)


@record
class ShowStrip:
    """How the runs of the last days ended: for each automation and day, how many with which outcome."""

    name: str | None = given(
        "Only this automation; NAME:rig:RIG for one of a rig.", default=None, positional=True, names="automation"
    )
    days: int = given("How many days, today included.", default=14, least=1, most=MOST_DAYS)
    among: Sequence[str] = given("Only these automations; every one is answered, also without runs.", default=())


@record
class StripDay:
    day: str
    """Such as 2026-03-01."""
    runs: int
    outcomes: Mapping[str, int]


@record
class StripView:
    automation: str
    days: list[StripDay]
    """Every day, oldest first, also those without runs."""


def show_strip(tx: Tx, ask: ShowStrip, ctx: Context) -> list[StripView]:
    zone = ctx.rules.zone
    days = _days(ctx.now, zone, ask.days)
    names = list(ask.among) or ([] if ask.name is None else [ask.name])
    found: dict[str, dict[date, dict[str, int]]] = {name: {} for name in names}
    if ask.among:
        begins = [_begins(day, zone) for day in days]
        for name, outcome, number, runs in tx.rollups.days_of(ask.among, begins):
            found[name].setdefault(days[number], {})[outcome] = runs
        return [_strip(name, days, of) for name, of in sorted(found.items())]
    for row in tx.rollups.since(_begins(days[0], zone), automation=ask.name):
        outcomes = found.setdefault(row.automation, {}).setdefault(_day(row, zone), {})
        outcomes[row.outcome] = outcomes.get(row.outcome, 0) + row.runs
    return [_strip(name, days, of) for name, of in sorted(found.items())]


def _strip(name: str, days: Sequence[date], of: Mapping[date, Mapping[str, int]]) -> StripView:
    return StripView(name, [_strip_day(day, of.get(day, {})) for day in days])


def _strip_day(day: date, outcomes: Mapping[str, int]) -> StripDay:
    return StripDay(day.isoformat(), sum(outcomes.values()), dict(sorted(outcomes.items())))


def _days(now: datetime, zone: ZoneInfo, count: int) -> list[date]:
    today = now.astimezone(zone).date()
    return [today - timedelta(days=back) for back in range(count - 1, -1, -1)]


def _begins(day: date, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone)


def _day(row: Rollup, zone: ZoneInfo) -> date:
    return row.hour.astimezone(zone).date()


_MORE: dict[str, Any] = {"needs": Need.CONFIG}
SHOW_COST = read(
    "cost.show", Verb.READ, ShowCost, CostView, show_cost, command="cost", http=Http("GET", "/cost"), **_MORE
)
SHOW_STRIP = read(
    "automation.strip", Verb.READ, ShowStrip, list[StripView], show_strip, http=Http("GET", "/strips"), **_MORE
)
