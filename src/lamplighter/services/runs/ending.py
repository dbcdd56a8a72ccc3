"""The end of a run with everything that follows from it, in one transaction, for one run or a batch of runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import Outcome, SkipReason, streak
from lamplighter.domain.automations.decisions import retry as retry_decision
from lamplighter.domain.automations.model import AgentAction, Automation, TriggerKind
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs.model import By, Moved, Mover, Run, RunState, Stage, move, retry_of
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.json_text import text_of
from lamplighter.kit.records import changed, record
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.automations import firing, snapshots
from lamplighter.services.automations.registering import TOPIC as AUTOMATIONS
from lamplighter.services.runs.workers import told
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine.batching import Call, Refused, batched, one
from lamplighter.store.run_rows import RunFacts, RunRow
from lamplighter.store.tx import Tx

TAKEN = "runs.taken"
"""Topic: runs were ended or freed by someone other than their holder; each process checks the runs it holds."""
LONGEST_ERROR = 2000
MESSAGE_BYTES = 300


@record
class Ending:
    """How a run ends, and the results that are kept."""

    state: RunState
    reason: str = ""
    stage: Stage | None = None
    error: str = ""
    exit_code: int | None = None
    output_tail: str = ""
    duration: timedelta | None = None
    summary: str = ""
    completion_id: str | None = None


LAST_WORDS = timedelta(seconds=10)
"""How long a program may go on after it completed its run, to write its last output and its usage."""


@dataclass
class _Ending:
    """The rows of one transaction that ends runs, updated by each end. For `end_many_held` run rows are not locked."""

    tx: Tx
    automations: dict[str, AutomationRow]
    rows: dict[str, RunRow]

    def end(self, run: str, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow | Refused:
        before = self.rows.get(run)
        if before is None:
            return Refused(RunUnknown(run))
        try:
            moved = move(before.run, ending.state, by, act.at, reason=ending.reason, stage=ending.stage)
        except LampError as error:
            return Refused(error)
        after = self.rows[run] = _ended(moved, ending, before)
        automation = self.automations.get(after.facts.automation_id)
        ended = _write(self.tx, moved, ending, before, after, automation, ids=ids, act=Act(by.actor, act.at, run))
        if ended is not None:
            self.automations[ended.id] = ended
        if by.mover is not Mover.WORKER:
            self.tx.wake(TAKEN)
        return after


def end_many(tx: Tx, calls: Sequence[Call]) -> list[RunRow | Refused]:
    """As `end`, for each call."""
    wanted = [call.args[0] for call in calls]
    found = tx.runs.automations_of(wanted)
    automations = _locked(tx, found.values(), calls)  # before the runs' own rows: the usual lock order
    this = _Ending(tx, automations, tx.runs.lock_some(wanted))
    return [this.end(*call.args, **call.kwargs) for call in calls]


def end_many_held(tx: Tx, calls: Sequence[Call]) -> list[RunRow | Refused]:
    """As `end_held`, for each call."""
    rows: dict[str, RunRow] = {call.args[0].run.id: call.args[0] for call in calls}
    this = _Ending(tx, _locked(tx, {row.facts.automation_id for row in rows.values()}, calls), rows)
    in_order = sorted(calls, key=lambda call: call.args[0].run.id)  # the usual order of changing rows
    answers = {id(call): this.end(call.args[0].run.id, *call.args[1:], **call.kwargs) for call in in_order}
    return [answers[id(call)] for call in calls]


def _locked(tx: Tx, automations: Iterable[str], calls: Sequence[Call]) -> dict[str, AutomationRow]:
    """Lock the automations of runs that end, and release the triggers that wait for one of their runs."""
    good = all(call.args[1].state is RunState.SUCCEEDED for call in calls)
    rows = tx.automations.lock_some(automations, stays=_unmoved_by_success if good else None)
    awaited = [row.id for row in rows.values() if not snapshots.side_by_side(row)]
    if awaited and tx.triggers.release(awaited):  # before the deferred writes, so that those are sent together
        tx.wake(AUTOMATIONS)
    return rows


def _unmoved_by_success(row: AutomationRow) -> bool:
    return row.failures == 0 and snapshots.side_by_side(row)


@batched(end_many)
def end(tx: Tx, run: str, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow:
    """End a run in one transaction: run, trigger event, tracking bead, bus event, failure streak, retry, held triggers.

    Raises RunUnknown, IllegalMove, LeaseLost.
    """
    ended: RunRow = one(end_many(tx, [Call((run, ending, by), {"ids": ids, "act": act})]))
    return ended


@batched(end_many_held)
def end_held(tx: Tx, row: RunRow, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow:
    """As `end`, for the holder of a command's run, with the row it already has: the row is not read again.

    Raises IllegalMove, LeaseLost, or StaleRun when another process ended or took over the run.
    """
    ended: RunRow = one(end_many_held(tx, [Call((row, ending, by), {"ids": ids, "act": act})]))
    return ended


def _ended(moved: Moved, ending: Ending, before: RunRow) -> RunRow:
    run = changed(
        moved.run,
        error=ending.error[:LONGEST_ERROR],
        exit_code=ending.exit_code,
        output_tail=ending.output_tail,
        summary=ending.summary or moved.run.summary,
        completion_id=ending.completion_id or moved.run.completion_id,
    )
    duration = ending.duration
    if duration is None and run.started_at is not None:
        duration = moved.at - run.started_at
    return RunRow(run, changed(before.facts, duration=duration))


def _write(  # noqa: PLR0913  all that an end touches
    tx: Tx,
    moved: Moved,
    ending: Ending,
    before: RunRow,
    after: RunRow,
    automation: AutomationRow | None,
    *,
    ids: IdSource,
    act: Act,
) -> AutomationRow | None:
    """Write the end and what follows from it; returns the automation's row afterwards."""
    tx.runs.end(before.run, after)
    tell(tx, moved, _ending_data(ending))
    _settle_trigger_event(tx, after.run)
    _close_bead(tx, after, act.at)
    tx.events.append(_ended_event(after, act))
    if after.facts.action == AgentAction.kind:
        _after_agent(tx, before.run, after, ids=ids, act=act)
    if automation is None:
        return None
    tried_again = _retry_by_policy(tx, after, automation, ids=ids, act=act) is not None
    return _count(tx, after, automation, tried_again=tried_again, act=act)


def snapshots_of(run: Run) -> Automation:
    return snapshots.read(text_of(run.definition))


def tell(tx: Tx, moved: Moved, data: Mapping[str, Any] | None = None) -> None:
    tx.runs.add_event(told(moved, data))


def _ending_data(ending: Ending) -> dict[str, Any]:
    data: dict[str, Any] = {"reason": ending.reason} if ending.reason else {}
    if ending.exit_code is not None:
        data["exit_code"] = ending.exit_code
    return data


def _settle_trigger_event(tx: Tx, run: Run) -> None:
    if run.trigger_event is None:
        return
    match run.state:
        case RunState.SUCCEEDED:
            tx.trigger_events.settle(run.trigger_event, "completed", run.reason)
        case RunState.SKIPPED:
            tx.trigger_events.settle(run.trigger_event, "skipped", run.reason)
        case _:
            tx.trigger_events.settle(run.trigger_event, "failed", run.reason or run.state.value)


def _close_bead(tx: Tx, row: RunRow, now: datetime) -> None:
    """Close the tracking bead without an event; one that a person closed or deleted is no error."""
    if row.facts.bead is not None:
        tx.beads.close(row.facts.bead, now)


_EVENTS = {
    RunState.SUCCEEDED: "automation.completed",
    RunState.SKIPPED: "automation.skipped",
    RunState.CANCELED: "automation.canceled",
    RunState.NEEDS_HUMAN: "automation.needs_human",
}


def _ended_event(row: RunRow, act: Act) -> Any:
    run = row.run
    name = _EVENTS.get(run.state, "automation.failed")
    if row.facts.wisp is not None and run.state is RunState.SUCCEEDED:
        name = "automation.finished"  # `automation.completed` was emitted when its wisp was cooked
    message = (run.error or run.reason or run.state.value)[:MESSAGE_BYTES]
    payload = {
        "run": run.id,
        "state": run.state.value,
        "reason": run.reason or None,
        "exit_code": run.exit_code,
        "output_tail": run.output_tail[-LONGEST_ERROR:] or None,
    }
    return act.event(name, subject=run.automation, message=message, payload=payload)


_TOLD = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.NEEDS_HUMAN, RunState.TIMED_OUT})


def _after_agent(tx: Tx, before: Run, row: RunRow, *, ids: IdSource, act: Act) -> None:
    """Queue outbox items for what follows an agent run's end: stop its session, notify people."""
    run = row.run
    if before.state is RunState.RUNNING and row.facts.node is not None:
        due = act.at + LAST_WORDS if run.completion_id is not None else act.at
        payload = {"session": run.id, "run": run.id, "node": row.facts.node}
        tx.outbox.add(new_item(ids.make("out"), ItemKind.STOP_SESSION, payload, due))
    if run.state in _TOLD:
        payload = {"run": run.id, "state": run.state.value}
        tx.outbox.add(new_item(ids.make("out"), ItemKind.NOTIFY_RUN_TERMINAL, payload, act.at))


def _retry_by_policy(
    tx: Tx, row: RunRow, automation: AutomationRow | None, *, ids: IdSource, act: Act
) -> RunRow | None:
    if automation is None or row.run.state not in {RunState.FAILED, RunState.TIMED_OUT}:
        return None
    policy = snapshots_of(row.run).policies.retry
    later = retry_decision(policy, Outcome(row.run.state.value), row.run.attempt, act.at)
    if later is None or not automation.enabled:
        return None
    return again(tx, row, later.at, ids=ids, act=act)


def again(tx: Tx, row: RunRow, at: datetime, *, ids: IdSource, act: Act) -> RunRow:
    new = retry_of(row.run, ids.make("run"), act.at, enriched=row.facts.action == AgentAction.kind)
    if new.deadline_at is not None:
        new = replace(new, deadline_at=new.deadline_at + (at - act.at))
    facts = RunFacts(row.facts.automation_id, row.facts.action, row.facts.trigger, row.facts.rig)
    prefix = (row.facts.bead or "gc-").rpartition("-")[0]
    data = {"retry_of": row.run.id, "at": rfc3339(at)}
    return firing.add_run(
        tx, RunRow(new, facts), prefix=prefix, ids=ids, act=Act(act.actor, act.at), data=data, due_at=at
    )


def _count(tx: Tx, row: RunRow, automation: AutomationRow, *, tried_again: bool, act: Act) -> AutomationRow:
    """Count consecutive failures; the one that reaches the limit disables the automation, with one event."""
    run = row.run
    if tried_again or run.state is RunState.CANCELED:
        return automation
    reason = SkipReason.PROJECT_MISSING if run.reason == SkipReason.PROJECT_MISSING else None
    by_hand = run.trigger_kind == TriggerKind.MANUAL
    limit = snapshots_of(run).policies.auto_disable_after
    counted = streak(automation.failures, Outcome(run.state.value), limit=limit, by_hand=by_hand, reason=reason)
    if not (counted.disable and automation.enabled):
        if counted.failures != automation.failures:
            tx.automations.count_failures(automation.id, counted.failures)
            return replace(automation, failures=counted.failures)
        return automation
    why = f"it failed {counted.failures} times in a row, last with {run.reason or run.state}"
    off = replace(
        automation, failures=counted.failures, enabled=False, disabled_reason=why, quiet_at=None, updated_at=act.at
    )
    tx.automations.save(off)
    tx.triggers.disarm(automation.id)
    payload = {"reason": "failures", "failures": counted.failures, "run": run.id}
    tx.events.append(act.event("automation.disabled", subject=automation.scoped_name, message=why, payload=payload))
    tx.wake(AUTOMATIONS)
    return off
