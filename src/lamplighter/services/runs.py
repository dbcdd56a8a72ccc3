"""Runs as transactions: start, adopt, renew, end, cancel, retry. Every move goes through the one table of moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import Outcome, SkipReason, streak
from lamplighter.domain.automations.decisions import retry as retry_decision
from lamplighter.domain.automations.model import AgentAction, Automation, TriggerKind
from lamplighter.domain.beads.model import BeadStatus
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.lease import LEASE, LeaseHeld, claim
from lamplighter.domain.runs.model import ACTIVE, By, IllegalMove, Moved, Mover, Run, RunState, Stage, move, retry_of
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.ids import IdSource
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import firing, outbox, snapshots
from lamplighter.services.registering import TOPIC as AUTOMATIONS
from lamplighter.store.artifacts import ArtifactRow
from lamplighter.store.automations import AutomationRow
from lamplighter.store.runs import NewRunEvent, RunEvent, RunFacts, RunRow
from lamplighter.store.tx import Tx

TOPIC = firing.TOPIC
LONGEST_ERROR = 2000
MESSAGE_BYTES = 300
SWEEP_AFTER = timedelta(minutes=1)
AT_ONCE = 100


@dataclass(frozen=True)
class Worker:
    """Who works: the owner whose proof of life holds its leases, on which machine, under which name."""

    owner: str
    node: str
    actor: str = "worker"


@dataclass(frozen=True)
class Ending:
    """How a run ends, and what is kept of its work."""

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
"""How long a program may go on after it completed its run: it says what it has to say, and what it cost."""


def start(tx: Tx, item: Item, worker: Worker, now: datetime) -> RunRow | None:
    """Claim the run, make it running and settle its item, all at once; None when there is nothing left to start.

    A run whose lease is another's keeps its item for later. Raises NotClaimed when the item was taken away.
    """
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.run.state is not RunState.READY:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before.run, lease=claim(before.run.lease, worker.owner, now))
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    moved = move(held, RunState.RUNNING, By(Mover.WORKER, worker.actor, held.lease.version), now)
    after = RunRow(moved.run, replace(before.facts, node=worker.node))
    tx.runs.swap(before.run, after)
    tell(tx, moved, {"owner": worker.owner, "lease": held.lease.version})
    outbox.done(tx, item, now)
    tx.wake(TOPIC)
    return after


def hold(tx: Tx, item: Item, worker: Worker, now: datetime) -> RunRow | None:
    """Claim a run that is not running yet, for a stage that will move it; None when it has ended or is another's."""
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.run.state not in ACTIVE - {RunState.RUNNING}:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before.run, lease=claim(before.run.lease, worker.owner, now))
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    after = RunRow(held, before.facts)
    tx.runs.swap(before.run, after)
    return after


def refuse(tx: Tx, item: Item, ending: Ending, worker: Worker, *, ids: IdSource, act: Act) -> RunRow | None:
    """End a run that cannot be started, and settle its item; None when there was nothing left to end."""
    held = hold(tx, item, worker, act.at)
    if held is None:
        return None
    by = By(Mover.WORKER, worker.actor, held.run.lease.version)
    ended = end(tx, held.run.id, ending, by, ids=ids, act=act)
    outbox.done(tx, item, act.at)
    return ended


def trigger_of(tx: Tx, row: RunRow) -> dict[str, Any]:
    """What the run's trigger has to say, as its action reads it from a file."""
    event = None if row.run.trigger_event is None else tx.trigger_events.get(row.run.trigger_event)
    payload = dict((event.payload if event is not None else None) or {})
    return {
        "automation": row.run.automation,
        "run": row.run.id,
        "trigger": {"id": row.facts.trigger, "kind": row.run.trigger_kind},
        "slot": None if event is None else event.slot,
        "fired_at": rfc3339(row.run.created_at),
        "events": payload.get("events", []),
        "payload": payload.get("payload"),
    }


def adopt(
    tx: Tx, worker: Worker, now: datetime, *, limit: int = AT_ONCE, rigs: frozenset[str] | None = None
) -> list[RunRow]:
    """Take up running runs of this node whose holder is gone; their processes may live or have ended."""
    adopted = []
    for before in tx.runs.orphans(worker.node, now, limit=limit, rigs=rigs):
        lease = claim(before.run.lease, worker.owner, now)
        after = RunRow(replace(before.run, lease=lease, last_activity_at=now), before.facts)
        tx.runs.swap(before.run, after)
        data = {"owner": worker.owner, "lease": lease.version}
        tx.runs.add_event(NewRunEvent(before.run.id, now, "run_adopted", worker.actor, data=data))
        adopted.append(after)
    return adopted


def renew(tx: Tx, held: Mapping[str, int], owner: str, now: datetime) -> set[str]:
    """Extend these leases, by run and version; returns the runs that are no longer this owner's."""
    until = now + LEASE
    return {run for run, version in sorted(held.items()) if not tx.runs.renew(run, owner, version, until=until)}


def lost_among(tx: Tx, held: Mapping[str, int], owner: str) -> set[str]:
    """Runs that ended or went to another holder while this one works on them: it must stop."""
    states = tx.runs.states(held)
    return {
        run for run, version in held.items() if run not in states or states[run] != (RunState.RUNNING, version, owner)
    }


def over_among(tx: Tx, found: Iterable[str], before: datetime) -> frozenset[str]:
    """Of these runs, those that are gone or ended by then: nothing of theirs has a right to live on."""
    rows = {run: tx.runs.get(run) for run in found}
    return frozenset(
        run for run, row in rows.items() if row is None or (row.run.ended_at is not None and row.run.ended_at <= before)
    )


def end(tx: Tx, run: str, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow:
    """A run's end is one transaction: run, trigger event, tracking bead, bus event, streak, retry, what waited for it.

    Raises RunUnknown, IllegalMove, LeaseLost.
    """
    automation_id = tx.runs.automation_of(run)
    if automation_id is None:
        raise RunUnknown(run)
    automation = tx.automations.lock(automation_id)  # before the run's own row: everyone locks in this order
    before = _locked(tx, run)
    moved = move(before.run, ending.state, by, act.at, reason=ending.reason, stage=ending.stage)
    ended = replace(
        moved.run,
        error=ending.error[:LONGEST_ERROR],
        exit_code=ending.exit_code,
        output_tail=ending.output_tail,
        summary=ending.summary or moved.run.summary,
        completion_id=ending.completion_id or moved.run.completion_id,
    )
    after = RunRow(ended, replace(before.facts, duration=ending.duration))
    tx.runs.swap(before.run, after)
    tell(tx, moved, _ending_data(ending))
    act = Act(by.actor, act.at, run)
    _settle_trigger_event(tx, ended)
    _close_bead(tx, after, act.at)
    tx.events.append(_ended_event(after, act))
    if after.facts.action == AgentAction.kind:
        _after_agent(tx, before.run, after, ids=ids, act=act)
    again = _retry_by_policy(tx, after, automation, ids=ids, act=act)
    if automation is not None:
        _count(tx, after, automation, again=again is not None, act=act)
        if tx.triggers.release(automation.id):
            tx.wake(AUTOMATIONS)
    tx.wake(TOPIC)
    return after


def end_if_active(tx: Tx, run: str, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow | None:
    """As `end`, and nothing for a run that has ended or is gone."""
    found = tx.runs.get(run)
    if found is None or found.run.ended:
        return None
    try:
        return end(tx, run, ending, by, ids=ids, act=act)
    except IllegalMove:
        if _locked(tx, run).run.ended:  # by another process, after the first look; nothing was written here yet
            return None
        raise


def replace_by_policy(tx: Tx, run: str, *, ids: IdSource, act: Act) -> None:
    end_if_active(tx, run, Ending(RunState.CANCELED, "replaced"), By(Mover.POLICY, act.actor), ids=ids, act=act)


def cancel(tx: Tx, run: str, *, reason: str = "canceled", ids: IdSource, act: Act) -> RunRow:
    """A person ends it; whoever works on it is told at once. Raises IllegalMove for one that has ended."""
    return end(tx, run, Ending(RunState.CANCELED, reason), By(Mover.PERSON, act.actor), ids=ids, act=act)


def retry(tx: Tx, run: str, *, ids: IdSource, act: Act) -> RunRow:
    """A new run of the same definition and trigger, linked to the old one. Raises NotEnded, RunUnknown."""
    row = _locked(tx, run)
    return _again(tx, row, act.at, ids=ids, act=act)


def time_out(tx: Tx, *, ids: IdSource, act: Act) -> int:
    """End runs past their deadline, whatever their state; how many. Agents at work are the finalizer's to judge."""
    overdue = tx.runs.overdue(act.at, limit=AT_ONCE)
    for run in overdue:
        ending = Ending(RunState.TIMED_OUT, "deadline_exceeded", Stage.FINALIZER)
        end_if_active(tx, run, ending, By(Mover.FINALIZER, act.actor), ids=ids, act=act)
    return len(overdue)


def sweep(tx: Tx, *, ids: IdSource, act: Act) -> int:
    """A run that waits for a stage with no item and no holder gets its item back; returns how many."""
    lost = tx.runs.lost(act.at, before=act.at - SWEEP_AFTER, limit=AT_ONCE)
    for run, state, _action in lost:
        kind = ItemKind.COOK if state is RunState.RUNNING else ItemKind.ENQUEUE_EXECUTE
        if state in {RunState.QUEUED, RunState.ENRICHING}:
            kind = ItemKind.ENQUEUE_ENRICH
        tx.outbox.add(new_item(ids.make("out"), kind, stage_of(run, get(tx, run).facts.rig), act.at))
        tx.runs.add_event(NewRunEvent(run, act.at, "item_restored", act.actor, data={"kind": kind.value}))
    return len(lost)


def get(tx: Tx, run: str) -> RunRow:
    row = tx.runs.get(run)
    if row is None:
        raise RunUnknown(run)
    return row


def show(tx: Tx, run: str) -> dict[str, Any]:
    """In the shape of every surface, with its timeline and its artifacts. Raises RunUnknown."""
    return as_json(get(tx, run), tx.runs.events(run), tx.artifacts.of(run))


def page(
    tx: Tx, *, automation: str | None = None, state: RunState | None = None, before: str | None = None, limit: int = 50
) -> list[RunRow]:
    return tx.runs.page(automation=automation, state=state, before=before, limit=limit)


def snapshots_of(run: Run) -> Automation:
    import json

    return snapshots.read(json.dumps(run.definition, sort_keys=True))


def as_json(
    row: RunRow, events: Sequence[RunEvent] | None = None, artifacts: Sequence[ArtifactRow] = ()
) -> dict[str, Any]:
    """The shape of a run on every surface; `events` add its timeline."""
    run, facts = row.run, row.facts
    shape: dict[str, Any] = {
        "id": run.id,
        "automation": run.automation,
        "state": run.state.value,
        "reason": run.reason or None,
        "error": run.error or None,
        "action": facts.action,
        "rig": facts.rig,
        "trigger": {"id": facts.trigger, "kind": run.trigger_kind, "event_id": run.trigger_event},
        "attempt": run.attempt,
        "retry_of": run.retries,
        "causes": list(run.causes),
        "created_at": rfc3339(run.created_at),
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "deadline_at": _time(run.deadline_at),
        "duration_s": None if facts.duration is None else facts.duration.total_seconds(),
        "exit_code": run.exit_code,
        "output_tail": run.output_tail or None,
        "summary": run.summary or None,
        "session_id": run.session_id,
        "bead": facts.bead,
        "wisp": facts.wisp,
        "assigned_to": run.assigned_to,
        "cost": run.cost,
        "tokens": facts.tokens,
        "configuration": facts.configuration,
        "worktree": None if facts.worktree is None else dict(facts.worktree),
        "artifacts": [
            {"name": one.name, "key": one.key, "size": one.size, "written_at": rfc3339(one.written_at)}
            for one in artifacts
        ],
    }
    if events is not None:
        shape["events"] = [
            {"at": rfc3339(one.at), "type": one.type, "from": one.from_state, "to": one.to_state, "actor": one.actor,
             "data": one.data}
            for one in events
        ]  # fmt: skip
    return shape


def _locked(tx: Tx, run: str) -> RunRow:
    row = tx.runs.lock(run)
    if row is None:
        raise RunUnknown(run)
    return row


def tell(tx: Tx, moved: Moved, data: Mapping[str, Any] | None = None) -> None:
    event = NewRunEvent(moved.run.id, moved.at, moved.type, moved.actor, moved.from_state, moved.to_state, data)
    tx.runs.add_event(event)


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
    """Bookkeeping emits nothing; a bead that a person deleted is no reason to fail."""
    if row.facts.bead is None:
        return
    bead = tx.beads.get(row.facts.bead)
    if bead is None:
        return
    kind = "exec" if row.facts.action == "exec" else "wisp" if row.facts.action == "formula" else "agent"
    labels = [kind]
    if row.run.state in {RunState.FAILED, RunState.TIMED_OUT}:
        labels.append(f"{kind}-failed")
    if row.run.state is RunState.CANCELED:
        labels.append(f"{kind}-canceled")
    tx.beads.add_labels(bead.id, labels)
    tx.beads.save(replace(bead, status=BeadStatus.CLOSED, closed_at=now, updated_at=now))


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
        name = "automation.finished"  # it was called completed when its wisp was cooked
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
    """What follows an agent run's end is left to the outbox: its session stopped, people told."""
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
    again = retry_decision(policy, Outcome(row.run.state.value), row.run.attempt, act.at)
    if again is None or not automation.enabled:
        return None
    return _again(tx, row, again.at, ids=ids, act=act)


def _again(tx: Tx, row: RunRow, at: datetime, *, ids: IdSource, act: Act) -> RunRow:
    new = retry_of(row.run, ids.make("run"), act.at, enriched=row.facts.action == AgentAction.kind)
    if new.deadline_at is not None:
        new = replace(new, deadline_at=new.deadline_at + (at - act.at))
    facts = RunFacts(row.facts.automation_id, row.facts.action, row.facts.trigger, row.facts.rig)
    prefix = (row.facts.bead or "gc-").rpartition("-")[0]
    data = {"retry_of": row.run.id, "at": rfc3339(at)}
    firing.add_run(tx, RunRow(new, facts), prefix=prefix, ids=ids, act=Act(act.actor, act.at), data=data, due_at=at)
    return get(tx, new.id)


def _count(tx: Tx, row: RunRow, automation: AutomationRow, *, again: bool, act: Act) -> None:
    """Consecutive failures; the one that reaches the limit disables it in the same transaction, with one notice."""
    run = row.run
    if again or run.state is RunState.CANCELED:
        return
    reason = SkipReason.PROJECT_MISSING if run.reason == SkipReason.PROJECT_MISSING else None
    by_hand = run.trigger_kind == TriggerKind.MANUAL
    limit = snapshots_of(run).policies.auto_disable_after
    counted = streak(automation.failures, Outcome(run.state.value), limit=limit, by_hand=by_hand, reason=reason)
    if not (counted.disable and automation.enabled):
        if counted.failures != automation.failures:
            tx.automations.count_failures(automation.id, counted.failures)
        return
    why = f"it failed {counted.failures} times in a row, last with {run.reason or run.state}"
    off = replace(
        automation, failures=counted.failures, enabled=False, disabled_reason=why, quiet_at=None, updated_at=act.at
    )
    tx.automations.save(off)
    tx.triggers.disarm(automation.id)
    payload = {"reason": "failures", "failures": counted.failures, "run": run.id}
    tx.events.append(act.event("automation.disabled", subject=automation.scoped_name, message=why, payload=payload))
    tx.wake(AUTOMATIONS)


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
