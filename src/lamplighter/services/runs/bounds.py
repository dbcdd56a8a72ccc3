"""What keeps a run from starting now: budgets of the day skip it, or, if it tells what a person said, let it
wait, as limits and little memory do.
"""

from dataclasses import field, replace
from datetime import datetime, timedelta

from lamplighter.domain.automations.model import AgentAction, deadline
from lamplighter.domain.automations.policies import CatchUpMode
from lamplighter.domain.city.run_sections import Limits
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.at_work import LIMIT, LOOK_EVERY, MEMORY, Counted, Most, full, pause
from lamplighter.domain.runs.budget import Over, next_midnight
from lamplighter.domain.runs.model import Run
from lamplighter.kit.records import record
from lamplighter.services import outbox
from lamplighter.services.context import Context
from lamplighter.services.rules import Rules
from lamplighter.services.runs import budgets
from lamplighter.services.runs.ending import snapshots_of
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

HELD = "run_held"
FOR_RIG, FOR_PRESET, FOR_LOGIN = "for_rig", "for_preset", "for_login"
ABSENT_AFTER = LOOK_EVERY * 10 + timedelta(minutes=1)
"""A run that waits and has not looked for so long takes no place from others: whoever was to start it is gone."""


@record
class Wait:
    """The run waits, and looks again at `until`."""

    reason: str
    why: str
    until: datetime
    at_latest: datetime | None = None
    """When it can go on, if that is known: its patience reaches beyond that."""


@record
class Bounds:
    """What the configuration in force says, and what is known of the run that is to start."""

    rules: Rules
    most: Most = field(default_factory=Most)
    rig: str = ""
    preset: str = ""
    login: str = ""
    memory: str = ""
    """Why nothing starts on this machine for want of memory; empty if it may."""

    @property
    def told(self) -> dict[str, str]:
        """What is kept of it with the run, so that others can count it."""
        found = {FOR_RIG: self.rig, FOR_PRESET: self.preset, FOR_LOGIN: self.login}
        return {name: value for name, value in found.items() if value}


def most_of(limits: Limits) -> Most:
    return Most(limits.runs, limits.per_rig, limits.per_preset, limits.per_login, limits.rigs, limits.presets)


def lock(tx: Tx, bounds: Bounds | None) -> None:
    """Before anything else is locked: two that start at once must not take the same place."""
    if bounds is not None and bounds.most.bounds_agents:
        tx.run_gates.lock()


def spent(tx: Tx, run: Run, bounds: Bounds | None, now: datetime) -> Over | None:
    """The budget of the day that leaves nothing for the run."""
    if bounds is None or run.action != AgentAction.kind:
        return None
    return budgets.over(tx, run.automation_id, snapshots_of(run), bounds.rules, now, starting=True)


def next_day(over: Over, bounds: Bounds, now: datetime) -> Wait:
    """What a run waits for that must not be skipped for a budget of the day; the budget may be raised meanwhile."""
    midnight = next_midnight(now, bounds.rules.zone)
    return Wait(over.reason, over.message, min(midnight, now + budgets.LOOK_AGAIN), at_latest=midnight)


def in_the_way(tx: Tx, run: Run, bounds: Bounds | None, now: datetime) -> Wait | None:
    """What the run waits for; None if it may start. The gate is locked."""
    if bounds is None:
        return None
    if bounds.memory:
        return Wait(MEMORY, bounds.memory, now + LOOK_EVERY)
    if not bounds.most.bounds_agents:
        return None
    at_work = [_counted(one) for one in tx.run_gates.at_work()]
    waiting = tx.run_gates.waiting(LIMIT, before=run.id, since=now - ABSENT_AFTER)
    found = full(bounds.most, _asks(run, bounds), at_work, [_counted(one) for one in waiting])
    return None if found is None else Wait(LIMIT, found.told, now + pause(len(waiting)))


def hold(tx: Tx, item: Item, run: Run, wait: Wait, bounds: Bounds, *, ctx: Context) -> None:
    """Keep the locked run `ready`, with what it waits for; its deadline is set anew when it starts."""
    told = {**(run.in_force or {}), **bounds.told}
    after = replace(
        run, reason=wait.reason, error=wait.why, in_force=told or None, last_activity_at=ctx.now,
        deadline_at=_patience(run, bounds.rules, wait.at_latest),
    )  # fmt: skip
    tx.runs.swap(run, after)
    if run.reason != wait.reason:
        data = {"reason": wait.reason, "why": wait.why}
        tx.runs.add_event(NewRunEvent(run.id, ctx.now, HELD, ctx.actor.name, run.state, run.state, data))
    outbox.later(tx, item, wait.until, ctx.now)


def let_go(run: Run, bounds: Bounds | None, now: datetime) -> Run:
    """The run as it starts: one that waited has its time from now on."""
    if bounds is None:
        return run
    told = {**(run.in_force or {}), **bounds.told}
    if not run.reason:
        return replace(run, in_force=told or None)
    at = now + deadline(snapshots_of(run), run.trigger_kind, bounds.rules.deadline)
    return replace(run, in_force=told or None, error="", deadline_at=at, lifts_at=None)


def _patience(run: Run, rules: Rules, at_latest: datetime | None) -> datetime:
    """Until when it may wait and work in all."""
    automation = snapshots_of(run)
    catch_up = automation.policies.catch_up
    patience = timedelta(0) if catch_up.mode is CatchUpMode.SKIP else catch_up.within
    waits = run.created_at + patience
    return max(waits, at_latest or waits) + deadline(automation, run.trigger_kind, rules.deadline)


def _asks(run: Run, bounds: Bounds) -> Counted:
    return Counted(run.id, bounds.rig or run.rig or "", bounds.preset, bounds.login)


def _counted(run: Run) -> Counted:
    """A run that another one started or keeps waiting; one from before the limits has less on record."""
    told = run.in_force or {}
    return Counted(
        run.id, told.get(FOR_RIG) or run.rig or "", told.get(FOR_PRESET) or told.get("preset") or "",
        told.get(FOR_LOGIN) or "",
    )  # fmt: skip
