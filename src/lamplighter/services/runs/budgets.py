"""Budgets of a day: what the city and an automation may use until midnight, and what is used of it."""

from datetime import datetime, timedelta

from lamplighter.domain.automations.admission import UsedUp
from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.runs.budget import DayBudget, Limits, Over, midnight, next_midnight, used_up
from lamplighter.domain.runs.model import Run
from lamplighter.kit.errors import Conflict
from lamplighter.kit.json_text import text_of
from lamplighter.services.automations import snapshots
from lamplighter.services.rules import Rules
from lamplighter.store.tx import Tx

LOOK_AGAIN = timedelta(minutes=5)
"""Events that wait for the next day are looked at so often: the budget may have been raised."""


class BudgetUsedUp(Conflict):
    """What a person asks for is refused while a budget of the day leaves nothing for it."""

    def __init__(self, scoped_name: str, why: str) -> None:
        super().__init__(
            f"{scoped_name} cannot run: {why}",
            hint="It can again after midnight in the city's zone, or with a larger budget.",
        )


def of_automation(automation: Automation) -> Limits:
    budget = automation.policies.budget
    return Limits(budget.day_cost, budget.day_tokens, budget.day_time)


def bounded(automation: Automation, rules: Rules) -> bool:
    """Whether a budget of the day bounds its runs."""
    is_agent = isinstance(automation.action, AgentAction)
    return is_agent and (of_automation(automation).bounds or rules.budget.bounds)


def over(
    tx: Tx, automation_id: str, automation: Automation, rules: Rules, now: datetime, *, starting: bool = False
) -> Over | None:
    """The first budget of the day that is used up; its automation's own comes before the city's."""
    if not bounded(automation, rules):
        return None
    since = midnight(now, rules.zone)
    own = DayBudget(f"The runs of {automation.scoped_name}", of_automation(automation))
    if own.limits.bounds:
        found = used_up(own, tx.run_days.spent(since, now, automation=automation_id), starting=starting)
        if found is not None:
            return found
    if not rules.budget.bounds:
        return None
    return used_up(DayBudget("All runs of the city", rules.budget), tx.run_days.spent(since, now), starting=starting)


def left_for(tx: Tx, automation_id: str, automation: Automation, rules: Rules, now: datetime) -> UsedUp | None:
    """What keeps one more run from firing; None while something is left of each budget."""
    found = over(tx, automation_id, automation, rules, now, starting=True)
    if found is None:
        return None
    return UsedUp(found.message, min(next_midnight(now, rules.zone), now + LOOK_AGAIN))


def must_be_left(tx: Tx, run: Run, rules: Rules, now: datetime) -> None:
    """Raises BudgetUsedUp if none that goes on with the run could start."""
    found = over(tx, run.automation_id, snapshots.read(text_of(run.definition)), rules, now, starting=True)
    if found is not None:
        raise BudgetUsedUp(run.automation, found.message)
