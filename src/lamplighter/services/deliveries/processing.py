"""Processing a delivery: every trigger of its connection judges it, and those that it opens ask the one admission."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.automations.admission import Hold, Origin, Skip, barred
from lamplighter.domain.automations.conversations import key_at
from lamplighter.domain.automations.events import chain_loops, undelivered
from lamplighter.domain.automations.model import GATHER_MOST, Trigger, TriggerKind, Webhook
from lamplighter.domain.connections import fields as found_by
from lamplighter.domain.connections.reading import EVENT_ID, Reading, read
from lamplighter.domain.connections.verdicts import Judged, dedup_key, gathered_until, is_allowed, is_full, runs_named
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery_fields import SEARCHED
from lamplighter.domain.runs import tracing
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import changed
from lamplighter.services import outbox
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.firing import Attempt, Cause, Fired, fire_if_admitted
from lamplighter.services.context import Context
from lamplighter.services.deliveries.receiving import processed_by
from lamplighter.services.rules import Rules
from lamplighter.store.automations import AutomationRow
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow, Gathering, Verdict
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import TriggerRow
from lamplighter.store.tx import Tx

BEHIND_A_RUN = timedelta(seconds=5)
BLOCKED = timedelta(seconds=30)
"""How long a delivery waits before it is tried again: behind a run under way, or while the automation is held back."""
ALIKE_FOR = timedelta(days=1)
"""So long after a push or an edit fired, the same told in another way is it: GitHub's events come hours late."""


@dataclass(frozen=True)
class _Came:
    """A delivery as it is judged."""

    row: DeliveryRow
    connection: ConnectionRow
    payload: Mapping[str, Any]
    reading: Reading
    causes: tuple[str, ...]

    @property
    def key(self) -> str:
        """By what happened where that is known, so that a webhook and a poll that tell of it are one."""
        provider, known = self.connection.provider.value, self.reading.occasion
        return dedup_key(provider, known or self.row.external_id, self.row.id)

    @property
    def earlier_key(self) -> str:
        """The one under which it fired before occasions were known."""
        return dedup_key(self.connection.provider.value, self.row.external_id, self.row.id)

    @property
    def shared_key(self) -> str | None:
        """The one that a webhook and a poll share which tell of the same, where no id says so; None where one does."""
        alike = self.reading.alike
        return dedup_key(self.connection.provider.value, alike, self.row.id) if alike else None

    def is_told_by(self, fired: TriggerEvent, now: datetime) -> bool:
        """Whether what fired under the shared key is this, told in the other way, or this very delivery.

        The same told again in the same way happened once more, as when a branch is set back and forth.
        """
        known = str((fired.payload or {}).get("external_id") or "")
        other_way = known.startswith(EVENT_ID) is not str(self.row.external_id or "").startswith(EVENT_ID)
        return known == self.row.external_id or (other_way and now - fired.last_at <= ALIKE_FOR)

    def told(self) -> dict[str, Any]:
        """The delivery as one of several that a run receives."""
        told = {"delivery": self.row.id, "type": self.reading.event_type, "at": rfc3339(self.row.received_at)}
        return self._trace | told | {"message": self.reading.title, "payload": self.payload}

    def cause_payload(self) -> dict[str, Any]:
        return self._trace | {
            "provider": self.connection.provider.value,
            "event_type": self.reading.event_type,
            "external_id": self.row.external_id,
            "context": self.reading.context(self.connection.provider),
            "delivery": self.row.id,
            "payload": self.payload,
        }

    @property
    def _trace(self) -> dict[str, str]:
        trace = self.row.headers.get(tracing.HEADER, "")
        return {tracing.HEADER: trace} if tracing.is_sound(trace) else {}

    @property
    def fields(self) -> list[tuple[str, str]]:
        paths = self.connection.fields or SEARCHED[self.connection.provider]
        return found_by.values(paths, self.reading.fields, self.payload)


@dataclass(frozen=True)
class _Trigger:
    row: AutomationRow
    found: TriggerRow
    trigger: Trigger
    gate: Webhook


@dataclass(frozen=True)
class _Work:
    tx: Tx
    rules: Rules
    ctx: Context

    def judge(
        self, came: DeliveryRow, one: _Trigger, verdict: Judged, reason: str = "", run: str | None = None
    ) -> None:
        self.tx.deliveries.judge(
            Verdict(came.id, one.row.id, one.found.id, one.row.scoped_name, verdict.value, reason, run, self.ctx.now)
        )


def process(tx: Tx, item: Item, *, rules: Rules, ctx: Context) -> None:
    """Judge the deliveries for each trigger, or fire what was gathered. May be repeated: what fired fires no more.

    Raises NotClaimed.
    """
    outbox.mine(tx, item)
    work = _Work(tx, rules, ctx)
    until = _end_gathering(work, item.payload) if "gathering" in item.payload else _judge_all(work, deliveries_of(item))
    if until is None:
        outbox.done(tx, item, ctx.now)
    else:
        outbox.later(tx, item, until, ctx.now)


def process_each(tx: Tx, item: Item, ctx: Context) -> None:
    """Have each delivery of the item processed by an item of its own, so that one that fails holds up no other.

    Raises NotClaimed.
    """
    for delivery in deliveries_of(item):
        tx.outbox.add(processed_by([delivery], ctx))
    outbox.done(tx, item, ctx.now)


def deliveries_of(item: Item) -> Sequence[str]:
    found = item.payload.get("deliveries")
    return found if isinstance(found, list) else [item.payload["delivery"]]


def _judge_all(work: _Work, deliveries: Sequence[str]) -> datetime | None:
    """When the only delivery is to be judged again, because a trigger holds it; one of several gets its own item."""
    tx = work.tx
    rows = tx.deliveries.some(deliveries, locked=True)
    connections = tx.connections.some({row.connection for row in rows})
    verdicts = tx.deliveries.verdicts(row.id for row in rows)
    automations = {found.automation for name in connections for found in tx.triggers.of_connection(name)}
    for automation in sorted(automations):  # the usual order of locking rows
        tx.automations.lock(automation)
    for row in rows:
        if row.connection not in connections:
            tx.deliveries.processed(changed(row, state="processed", problem="its connection is gone"))
            continue
        wait = _judge(work, row, connections[row.connection], verdicts.get(row.id, ()), asks=bool(automations))
        if wait is not None and len(deliveries) == 1:
            return work.ctx.now + wait
        if wait is not None:
            tx.outbox.add(processed_by([row.id], work.ctx, after=wait))
    return None


def _judge(
    work: _Work, row: DeliveryRow, connection: ConnectionRow, before: Iterable[Verdict], *, asks: bool
) -> timedelta | None:
    """How long it has to wait because a trigger holds it; None if all triggers have judged it."""
    tx, came = work.tx, _read(work.tx, row, connection)
    problem, waits = _problem(came), list[timedelta]()
    fired = {(one.automation_id, one.trigger_id) for one in before if one.verdict == Judged.FIRED}
    for found in tx.triggers.of_connection(row.connection) if asks and not problem else []:
        one = _locked(tx, found)
        if one is None or (found.automation, found.id) in fired:
            continue
        wait = _judged(work, came, one)
        if wait is not None:
            waits.append(wait)
    said = came.reading
    tx.deliveries.processed(
        changed(
            row, state="waiting" if waits else "processed", event_type=said.event_type, title=said.title,
            author=said.author, problem=problem,
        )
    )  # fmt: skip
    return min(waits, default=None)


def _read(tx: Tx, row: DeliveryRow, connection: ConnectionRow) -> _Came:
    payload = json.loads(row.body)
    reading = read(connection.provider, row.headers, payload, connection.title)
    named = runs_named(row.body)
    chains = tx.runs.causes(named).values() if named else ()
    return _Came(row, connection, payload, reading, max(chains, key=len, default=()))


def _problem(came: _Came) -> str:
    """Why no trigger is asked at all; empty if they are."""
    author = came.reading.author
    if came.reading.ignored:
        return came.reading.ignored
    if came.connection.own and is_allowed(author, came.connection.own):
        return f"loop: `{author}` is what runs of this city act as"
    if not is_allowed(author, came.connection.authors):
        return f"`{author or 'nobody'}` is not among the authors that may fire anything here"
    return ""


def kept_from(tx: Tx, row: DeliveryRow, connection: ConnectionRow, gate: Webhook, automation: str) -> str:
    """Why a trigger with this gate would not fire on the delivery, in words; empty if it would, were it new."""
    came = _read(tx, row, connection)
    told = _problem(came) or undelivered(gate, came.reading.event_type, came.payload, came.reading.fields)
    if told or not chain_loops(came.causes, automation):
        return told
    return f"runs of {' ← '.join(came.causes)} caused it"


def _locked(tx: Tx, found: TriggerRow) -> _Trigger | None:
    """The trigger with its automation locked; None for one whose definition has changed, or cannot be read."""
    row = tx.automations.lock(found.automation)
    if row is None or row.definition is None:
        return None
    trigger = snapshots.of_row(row).trigger(found.id)
    if trigger is None or not isinstance(trigger.gate, Webhook):
        return None
    return _Trigger(row, found, trigger, trigger.gate)


def _judged(work: _Work, came: _Came, one: _Trigger) -> timedelta | None:
    """Record what this trigger makes of the delivery; returns how long it has to wait, if it has to."""
    reading = came.reading
    told = undelivered(one.gate, reading.event_type, came.payload, reading.fields)
    if told:
        work.judge(came.row, one, Judged.FILTERED, told)
        return None
    if chain_loops(came.causes, one.row.scoped_name):
        work.judge(came.row, one, Judged.LOOP, f"runs of {' ← '.join(came.causes)} caused it")
        return None
    fired, key = _known(work, came, one)
    if fired is not None:
        work.judge(came.row, one, Judged.DUPLICATE, "it has fired before", fired.run)
        return None
    if one.gate.gather is not None:
        return _gather(work, came, one, one.gate.gather)
    cause = Cause(
        one.found.id, TriggerKind.WEBHOOK, f"{reading.event_type} from {came.connection.name}: {reading.title}",
        key=key, payload=came.cause_payload(), causes=came.causes,
    )  # fmt: skip
    return _fire(work, one, cause, [came])


def _known(work: _Work, came: _Came, one: _Trigger) -> tuple[TriggerEvent | None, str]:
    """What the trigger has fired for it already, and the key under which it fires if that is nothing."""

    def of_key(key: str) -> TriggerEvent | None:
        return work.tx.trigger_events.of_key(one.row.id, one.found.id, key)

    fired = of_key(came.key)
    if fired is None and came.earlier_key != came.key:
        fired = of_key(came.earlier_key)
    shared = came.shared_key
    if fired is not None or shared is None:
        return fired, came.key
    alike = of_key(shared)
    if alike is None:
        return None, shared
    return (alike, shared) if came.is_told_by(alike, work.ctx.now) else (None, came.key)


def _fire(work: _Work, one: _Trigger, cause: Cause, came: Iterable[_Came]) -> timedelta | None:
    tx, several = work.tx, list(came)
    match fire_if_admitted(tx, Attempt(one.row, Origin.DELIVERY, cause), rules=work.rules, ctx=work.ctx):
        case Fired(run):
            for each in several:
                work.judge(each.row, one, Judged.FIRED, "", run)
                tx.run_fields.add(run, each.fields)
            state = replace(one.found.state, last_fired_at=work.ctx.now, last_slot=cause.key)
            tx.triggers.save_state(replace(one.found, state=state, last_skip=None))
        case Hold(run, until):
            why = f"run {run} is under way" if run else "the automation is held back"
            why = why if until is None else f"the budget of the day is used up until {rfc3339(until)}"
            for each in several:
                work.judge(each.row, one, Judged.HELD, why)
            at_least = BEHIND_A_RUN if run else BLOCKED
            return at_least if until is None else max(at_least, until - work.ctx.now)
        case Skip(reason):
            for each in several:
                work.judge(each.row, one, Judged.SKIPPED, reason.value)
            _note_skip(work, one, reason.value, several[0].row.received_at, len(several))
        case None:
            for each in several:
                work.judge(each.row, one, Judged.DUPLICATE, "it has fired before")
    return None


def _note_skip(work: _Work, one: _Trigger, reason: str, at: datetime, count: int) -> None:
    """A skip has no key, so that the delivery can still fire; repeats are counted on one record."""
    tx, ctx = work.tx, work.ctx
    if one.found.last_skip is not None and tx.trigger_events.repeat(one.found.last_skip, reason, ctx.now, count=count):
        return
    kind = TriggerKind.WEBHOOK.value
    event = TriggerEvent(
        ctx.ids.make("tev"), one.row.id, one.row.scoped_name, one.found.id, kind, "skipped", reason, at, ctx.now,
        count=count,
    )  # fmt: skip
    tx.trigger_events.insert(event)
    payload = {"trigger": one.found.id, "reason": reason, "due_at": rfc3339(at), "count": count}
    tx.events.append(ctx.event("automation.skipped", subject=one.row.scoped_name, message=reason, payload=payload))
    tx.triggers.save_state(replace(one.found, last_skip=event.id))


# ── gathering ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _gather(work: _Work, came: _Came, one: _Trigger, quiet: timedelta) -> timedelta | None:
    """Let it wait with others about the same thing; one that an automation is off for is skipped at once.

    Returns how long it has to wait if those before it are as many as fire together.
    """
    tx, now = work.tx, work.ctx.now
    refused = barred(work.rules.switches(one.row), Origin.DELIVERY)
    if isinstance(refused, Skip):
        work.judge(came.row, one, Judged.SKIPPED, refused.reason.value)
        _note_skip(work, one, refused.reason.value, came.row.received_at, 1)
        return None
    entity = _entity(came, one)
    found = tx.deliveries.gathering(one.row.id, one.found.id, entity)
    most = one.gate.gather_most or quiet * GATHER_MOST
    if found is None:
        made = Gathering(
            one.row.id, one.found.id, entity, work.ctx.ids.make("gat"), (came.row.id,), now,
            gathered_until(now, now, quiet, most),
        )  # fmt: skip
        _end_later(work, made)
    elif came.row.id in found.deliveries:
        return None
    elif _is_full(work, found):
        work.judge(came.row, one, Judged.HELD, "as many as fire together came before it, and have not fired yet")
        return BEHIND_A_RUN
    else:
        until = gathered_until(found.began_at, now, quiet, most)
        made = replace(found, deliveries=(*found.deliveries, came.row.id), due_at=until)
        if _is_full(work, made):
            made = replace(made, due_at=now)
            _end_later(work, made)
    tx.deliveries.gather(made)
    work.judge(came.row, one, Judged.GATHERED, f"waits for others until {rfc3339(made.due_at)}")
    return None


def _entity(came: _Came, one: _Trigger) -> str:
    """What deliveries that become one run have in common: the thing they are about, and their conversation."""
    path = one.trigger.continue_by
    return came.reading.entity if path is None else f"{came.reading.entity} {key_at(path, came.told()) or ''}"


def _is_full(work: _Work, one: Gathering) -> bool:
    return is_full(len(one.deliveries), lambda: work.tx.deliveries.size(one.deliveries))


def _end_later(work: _Work, one: Gathering) -> None:
    """Have the gathering ended when it is due. Of several such items the first that can ends it."""
    payload = {
        "delivery": one.deliveries[0], "gathering": one.id, "automation": one.automation_id,
        "trigger": one.trigger_id, "entity": one.entity,
    }  # fmt: skip
    work.tx.outbox.add(new_item(work.ctx.ids.make("out"), ItemKind.PROCESS_DELIVERY, payload, one.due_at))


def _end_gathering(work: _Work, payload: Mapping[str, Any]) -> datetime | None:
    """Fire once with all that were gathered; returns when to look again if more came, or something is in the way."""
    tx, now = work.tx, work.ctx.now
    row = tx.automations.lock(payload["automation"])
    gathered = tx.deliveries.gathering(payload["automation"], payload["trigger"], payload["entity"])
    if row is None or gathered is None or gathered.id != payload["gathering"]:
        return None
    if gathered.due_at > now:
        return gathered.due_at
    rows = tx.deliveries.some(gathered.deliveries)
    connections = tx.connections.some({each.connection for each in rows})
    came = [_read(tx, each, connections[each.connection]) for each in rows if each.connection in connections]
    found = next((one for one in tx.triggers.of(row.id) if one.id == payload["trigger"]), None)
    one = None if found is None else _locked(tx, found)
    if one is None or not came:
        tx.deliveries.let_go(gathered)
        return None
    newest = came[-1]
    cause = Cause(
        one.found.id, TriggerKind.WEBHOOK, f"{len(came)} from {newest.connection.name}: {newest.reading.title}",
        key=gathered.id, payload=newest.cause_payload() | {"events": [each.told() for each in came]},
        causes=max((each.causes for each in came), key=len),
    )  # fmt: skip
    wait = _fire(work, one, cause, came)
    if wait is not None:
        return now + wait
    tx.deliveries.let_go(gathered)
    return None
