"""What a run has used, as far as its program reports it, and whether that exceeds its limits."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


class Used(Protocol):
    """One usage event in a session's transcript."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...

    @property
    def cost_usd(self) -> float | None: ...


@dataclass(frozen=True)
class Spent:
    """`cost` stays None for programs that never report a cost."""

    tokens: int = 0
    cost: float | None = None

    def plus(self, used: Used) -> "Spent":
        cost = self.cost if used.cost_usd is None else (self.cost or 0.0) + max(used.cost_usd, 0.0)
        return Spent(self.tokens + max(used.input_tokens, 0) + max(used.output_tokens, 0), cost)


@dataclass(frozen=True)
class Limits:
    cost: float | None = None
    tokens: int | None = None
    time: timedelta | None = None


@dataclass(frozen=True)
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
