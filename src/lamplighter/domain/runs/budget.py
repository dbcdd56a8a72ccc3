"""What runs have used, as far as their programs report it, and whether that exceeds their limits: by run and by day."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from lamplighter.kit.durations import format_duration
from lamplighter.kit.records import record


class Used(Protocol):
    """One usage event in a session's transcript."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...

    @property
    def cost_usd(self) -> float | None: ...


@record
class Spent:
    """`cost` stays None for programs that never report a cost."""

    tokens: int = 0
    cost: float | None = None

    def plus(self, used: Used) -> "Spent":
        cost = self.cost if used.cost_usd is None else (self.cost or 0.0) + max(used.cost_usd, 0.0)
        return Spent(self.tokens + max(used.input_tokens, 0) + max(used.output_tokens, 0), cost)


@record
class Limits:
    cost: float | None = None
    tokens: int | None = None
    time: timedelta | None = None

    @property
    def bounds(self) -> bool:
        return any(one is not None for one in (self.cost, self.tokens, self.time))


@record
class DaySpent:
    """What agent runs used since the city's last midnight, those at work included."""

    tokens: int = 0
    cost: float = 0.0
    time: timedelta = timedelta(0)


@record
class DayBudget:
    """A budget of one day; `whose`, such as `All runs`, begins the sentence that tells of it."""

    whose: str
    limits: Limits


@record
class Over:
    reason: str
    message: str


def total(usages: Iterable[Used]) -> Spent:
    spent = Spent()
    for used in usages:
        spent = spent.plus(used)
    return spent


def exceeded(limits: Limits, spent: Spent, started_at: datetime | None, now: datetime) -> Over | None:
    """The first limit that was exceeded; reaching a limit exactly does not exceed it."""
    if limits.cost is not None and spent.cost is not None and spent.cost > limits.cost:
        return Over("budget_cost", f"It cost {spent.cost:.4f}, and its budget is {limits.cost:g}.")
    if limits.tokens is not None and spent.tokens > limits.tokens:
        return Over("budget_tokens", f"It used {spent.tokens} tokens, and its budget is {limits.tokens}.")
    if limits.time is not None and started_at is not None and now - started_at > limits.time:
        return Over("budget_time", f"It ran longer than its budget of {limits.time.total_seconds():g} s.")
    return None


DAY = "budget"
"""The reason of a run that a day's budget ended or kept from starting."""
_SECOND = timedelta(seconds=1)


def midnight(now: datetime, zone: ZoneInfo) -> datetime:
    """When the day of `now` began in that zone: budgets of a day begin anew then."""
    local = now.astimezone(zone)
    return datetime(local.year, local.month, local.day, tzinfo=zone)


def next_midnight(now: datetime, zone: ZoneInfo) -> datetime:
    local = now.astimezone(zone) + timedelta(days=1)
    return datetime(local.year, local.month, local.day, tzinfo=zone)


def used_up(budget: DayBudget, spent: DaySpent, *, starting: bool = False) -> Over | None:
    """The first limit of the day that does not hold any more.

    A run under way is ended once more is used than the limit; one that is `starting` needs something to be left.
    """
    limits = budget.limits
    if limits.cost is not None and _beyond(spent.cost, limits.cost, starting):
        return _over(budget, f"{limits.cost:g} USD", f"{spent.cost:.4f} USD")
    if limits.tokens is not None and _beyond(spent.tokens, limits.tokens, starting):
        return _over(budget, f"{limits.tokens} tokens", f"{spent.tokens} tokens")
    if limits.time is not None and _beyond(spent.time.total_seconds(), limits.time.total_seconds(), starting):
        return _over(budget, format_duration(limits.time), format_duration(spent.time - spent.time % _SECOND))
    return None


def _beyond(spent: float, limit: float, starting: bool) -> bool:  # noqa: FBT001  passed on as it came
    return spent >= limit if starting else spent > limit


def _over(budget: DayBudget, limit: str, spent: str) -> Over:
    return Over(DAY, f"{budget.whose} may use {limit} a day and have used {spent} today.")
