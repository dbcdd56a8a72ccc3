"""The transactions of notices: who is told of items, what waits for the end of the quiet hours, what became of each."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.policies import Notify
from lamplighter.domain.city.model import City
from lamplighter.domain.city.sections import Destination, slack_destination
from lamplighter.domain.delivery.effects import EffectState, effect_id
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.inbox.items import COUNTING, OF_AUTOMATIONS, InboxItem, Kind, State, fix, how_settled, sentence
from lamplighter.domain.inbox.notices import (
    Notice,
    NoticeState,
    QuietHours,
    Rule,
    What,
    is_counted,
    is_held,
    quiet_hours,
    told_of,
    told_of_recovery,
)
from lamplighter.domain.runs.model import Run
from lamplighter.kit.canonical import fingerprint
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.json_text import text_of
from lamplighter.kit.records import changed, record
from lamplighter.services import outbox
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.store.disabled_destinations import Disabled
from lamplighter.store.tx import Tx

AT_ONCE = 100
PAGES = 10
"""So many times AT_ONCE items of failures are counted again in a tick; the sweep counts all."""
FAILING_AFTER = 3
"""Attempts of one notice after which its destination needs a person."""


@record
class Telling:
    """The rules of the city: its destinations with their own `after`, and what holds for whatever has no rules."""

    destinations: Mapping[str, int]
    to: tuple[str, ...]
    on: frozenset[str]
    after: int
    recovery: bool
    hours: QuietHours | None
    zone: ZoneInfo

    @staticmethod
    def of(city: City, zone: ZoneInfo) -> "Telling":
        rules = city.notifications
        known = {one.name: one.after for one in rules.every}
        return Telling(
            known,
            rules.to or tuple(known),
            frozenset(rules.on),
            rules.after,
            rules.recovery,
            quiet_hours(rules.quiet_hours),
            ZoneInfo(rules.quiet_zone) if rules.quiet_zone else zone,
        )

    def is_quiet(self, now: datetime) -> bool:
        return self.hours is not None and self.hours.hold(now.astimezone(self.zone))

    def knows(self, name: str) -> bool:
        return name in self.destinations or slack_destination(name) is not None

    def rules(self, own: Notify | None) -> list[Rule]:
        """What each destination is told; `own` are the rules of the automation that it is about."""
        if own is None or own == Notify():
            return [Rule(name, self.on, self.destinations.get(name) or self.after) for name in self.to]
        names = own.to or self.to
        return [Rule(name, frozenset(own.on), own.after or self.destinations.get(name) or self.after) for name in names]


def tell(tx: Tx, telling: Telling, *, ctx: Context) -> int:
    """Queue the notices of items that opened or were settled, and those that the quiet hours held back.

    Returns how many items it looked at, at most AT_ONCE.
    """
    found = tx.inbox.to_tell(limit=AT_ONCE)
    for item in found:
        if item.state is State.SETTLED:
            _tell_settled(tx, item, telling, ctx)
            tx.inbox.save(changed(item, told=item.state.value))
        else:
            _tell_open(tx, _counted(tx, item), telling, ctx)
    if len(found) < AT_ONCE:
        _count_again(tx, telling, ctx)
    if not telling.is_quiet(ctx.now):
        _release(tx, ctx)
    return len(found)


def _count_again(tx: Tx, telling: Telling, ctx: Context) -> None:
    """Tell of the failures that have happened often enough by now. Each failure wakes the tick that looks here."""
    after = ""
    for _ in range(PAGES):
        page = tx.inbox.counting(after=after, limit=AT_ONCE)
        for item in page:
            counted = _counted(tx, item)
            if item.state is State.OPEN and counted.count != item.count:
                _tell_open(tx, counted, telling, ctx)
        if len(page) < AT_ONCE:
            break
        after = page[-1].id


def _tell_open(tx: Tx, item: InboxItem, telling: Telling, ctx: Context) -> None:
    rules = telling.rules(_own_rules(tx, item))
    names = told_of(item, rules)
    held = is_held(item, telling.hours, ctx.now.astimezone(telling.zone))
    for name in names:
        if not telling.knows(name):
            why = f"{item.subject} names it in `notify`, and `[notifications]` declares no such destination"
            needs.open_item(tx, needs.silent(name, why, ctx.now, declared=False), ctx=ctx)
        else:
            _add(tx, item.id, name, What.OPENED, body(item), ctx, held=held)
    tx.inbox.save(changed(item, told=COUNTING if is_counted(item, rules) else item.state.value))


def _tell_settled(tx: Tx, item: InboxItem, telling: Telling, ctx: Context) -> None:
    """Whoever was told of it is told that it is over by itself; what was held is told to nobody any more."""
    earlier = tx.notices.of(item.id)
    for one in earlier:
        if one.state is NoticeState.HELD:
            tx.notices.save(changed(one, state=NoticeState.DROPPED))
    names = told_of_recovery(item, earlier) if telling.recovery else []
    held = is_held(item, telling.hours, ctx.now.astimezone(telling.zone))
    for name in names:
        if telling.knows(name):
            _add(tx, item.id, name, What.RECOVERED, body(item), ctx, held=held)


def tell_success(tx: Tx, item: Item, run: Run, telling: Telling, *, ctx: Context) -> None:
    """Queue the notices of a run that succeeded, where its automation asks for them, and settle the outbox item."""
    own = snapshots.read(text_of(run.definition)).policies.notify
    if "succeeded" in own.on:
        told = {
            "sentence": f"{run.automation} succeeded.",
            "subject": run.automation,
            "run": run.id,
            "summary": run.summary or None,
            "ended_at": None if run.ended_at is None else rfc3339(run.ended_at),
        }
        for name in own.to or telling.to:
            if telling.knows(name):
                _add(tx, run.id, name, What.SUCCEEDED, told, ctx, held=telling.is_quiet(ctx.now))
    outbox.done(tx, item, ctx.now)


def _add(  # noqa: PLR0913  what a notice is made of
    tx: Tx, about: str, destination: str, what: What, told: Mapping[str, Any], ctx: Context, *, held: bool = False
) -> str | None:
    """Returns its id; None if the destination was told of this occasion already."""
    state = NoticeState.HELD if held else NoticeState.PENDING
    notice = Notice(ctx.ids.make("ntc"), destination, about, what, told, ctx.now, state)
    if not tx.notices.add(notice):
        return None
    if not held:
        _queue(tx, notice, ctx)
    return notice.id


def queue_notice(  # noqa: PLR0913  what a notice is made of
    tx: Tx, about: str, destination: str, what: What, told: Mapping[str, Any], telling: Telling, *, ctx: Context
) -> str:
    """A notice that somebody asked for; returns its id. It waits for the end of the quiet hours as others do."""
    made = _add(tx, about, destination, what, told, ctx, held=telling.is_quiet(ctx.now))
    same = (one.id for one in tx.notices.of(about) if (one.destination, one.what) == (destination, what))
    return made or next(same)


def _queue(tx: Tx, notice: Notice, ctx: Context) -> None:
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SEND_NOTICE, {"notice": notice.id}, ctx.now))


def _release(tx: Tx, ctx: Context) -> None:
    """Send what was held: a single notice as it is, several to one destination as one digest."""
    waiting: dict[str, list[Notice]] = {}
    for one in tx.notices.held(limit=1000):
        waiting.setdefault(one.destination, []).append(one)
    for destination, held in waiting.items():
        if len(held) == 1:
            tx.notices.save(changed(held[0], state=NoticeState.PENDING))
            _queue(tx, held[0], ctx)
            continue
        for one in held:
            tx.notices.save(changed(one, state=NoticeState.DROPPED))
        lines = [str(one.body.get("sentence", "")) for one in held]
        told = {"sentence": f"{len(held)} things happened during the quiet hours.", "fix": "lamp inbox",
                "lines": lines, "notices": [dict(one.body) | {"what": one.what.value} for one in held]}  # fmt: skip
        digest = _add(tx, held[-1].id, destination, What.DIGEST, told, ctx)
        for one in held if digest is not None else ():
            if one.what is What.SESSION:
                tx.subscriptions.told_by(one.id, digest or "")


def body(item: InboxItem) -> dict[str, Any]:
    """What is told of an item."""
    over = item.state is State.SETTLED
    asked = item.kind is Kind.NEEDS_HUMAN and not over
    question = {key: item.facts.get(key) for key in ("choices", "answerable", "plan")} if asked else None
    return {
        "item": item.id,
        "kind": item.kind.value,
        "subject": item.subject,
        "sentence": f"Over: {how_settled(item)}. It was: {sentence(item)}" if over else sentence(item),
        "fix": None if over else fix(item),
        "count": item.count,
        "first_at": rfc3339(item.first_at),
        "last_at": rfc3339(item.last_at),
        "state": item.state.value,
        "run": item.last_run,
        **({"question": question} if question else {}),
    }


def _counted(tx: Tx, item: InboxItem) -> InboxItem:
    found = settling.folded(tx, item) if item.of_runs and item.state is State.OPEN else None
    return item if found is None else settling.refreshed(tx, item, found)


def _own_rules(tx: Tx, item: InboxItem) -> Notify | None:
    if not item.of_runs and item.kind not in OF_AUTOMATIONS:
        return None
    row = tx.automations.named(item.subject)
    if row is None or row.definition is None:
        return None
    return snapshots.of_row(row).policies.notify


# ── sending ───────────────────────────────────────────────────────────────────────────────────────────────────────


EFFECT = "notify"


def effect_of(notice: Notice) -> str:
    """The id of the notice in the ledger of side effects: one for each item, state and destination."""
    return effect_id(EFFECT, notice.about, notice.destination, notice.what.value)


def sent(tx: Tx, item: Item, notice: Notice, *, ctx: Context) -> None:
    """Raises NotClaimed."""
    outbox.done(tx, item, ctx.now)
    effect = tx.effects.lock(effect_of(notice))
    doubts, answer = (0, "") if effect is None else (effect.doubts, answer_of(effect.result))
    tx.notices.save(
        changed(
            notice, state=NoticeState.SENT, attempts=item.attempts + 1, last_error="", sent_at=ctx.now,
            doubts=doubts, answer=answer,
        )
    )  # fmt: skip
    tx.subscriptions.notified(notice.id, ctx.now)
    takes_notices(tx, notice.destination, ctx=ctx)


def answer_of(result: Mapping[str, Any]) -> str:
    """What is kept of the answer of a destination, as people read it."""
    words = [
        f"exit {result['exit']}" if "exit" in result else "",
        str(result.get("status", "")),
        result.get("said", ""),
    ]
    return " ".join(str(one) for one in words if one)


def takes_notices(tx: Tx, destination: str, *, ctx: Context) -> None:
    tx.disabled_destinations.delete(destination)
    if tx.inbox.settle_of_subject(
        destination, [Kind.DESTINATION.value], by=ctx.actor.name, how="delivered", now=ctx.now
    ):
        tx.wake(needs.TOPIC)


def not_sent(tx: Tx, item: Item, notice: Notice, error: str, *, permanent: bool, ctx: Context) -> None:
    """Keep the error, to be tried again; a destination that keeps failing needs a person. Raises NotClaimed."""
    after = outbox.failed(tx, item, error, permanent=permanent, ctx=ctx)
    over = after.state.value == "failed"
    state = NoticeState.FAILED if over else NoticeState.PENDING
    effect = tx.effects.lock(effect_of(notice))
    doubts = notice.doubts if effect is None else effect.doubts + (effect.state is EffectState.INTENDED)
    tx.notices.save(changed(notice, state=state, attempts=after.attempts, last_error=error, doubts=doubts))
    if over or after.attempts >= FAILING_AFTER:
        needs.open_item(tx, needs.silent(notice.destination, error, ctx.now), ctx=ctx)


def gone(tx: Tx, item: Item, notice: Notice, error: str, target: str, *, ctx: Context) -> None:
    """The destination wants no notices any more: it is disabled until it takes one, and needs a person."""
    why = _disabled(tx, notice.destination, target, error, ctx)
    not_sent(tx, item, notice, why, permanent=True, ctx=ctx)


def disable(tx: Tx, destination: str, target: str, error: str, *, ctx: Context) -> None:
    why = _disabled(tx, destination, target, error, ctx)
    needs.open_item(tx, needs.silent(destination, why, ctx.now), ctx=ctx)


def _disabled(tx: Tx, destination: str, target: str, error: str, ctx: Context) -> str:
    why = f"{error.rstrip('.')}, and is disabled."
    tx.disabled_destinations.put(Disabled(destination, target, why, ctx.now))
    return why


def target_of(destination: Destination) -> str:
    """Stands for where a destination leads to, without telling it."""
    return fingerprint({"kind": destination.kind, "url": destination.url})


def forget_destinations(tx: Tx, declared: Sequence[Destination], *, ctx: Context) -> None:
    """Settle the items of destinations that are declared no more, and of missing ones that are declared by now."""
    known = [one.name for one in declared]
    targets = {one.name: target_of(one) for one in declared}
    for one in tx.disabled_destinations.all():
        if targets.get(one.name) != one.target:
            tx.disabled_destinations.delete(one.name)
    for item in tx.inbox.open_ones(after="destination:"):
        if item.kind is not Kind.DESTINATION:
            break
        was_declared = not item.facts.get("undeclared")
        is_declared = item.subject in known or slack_destination(item.subject) is not None
        locked = tx.inbox.lock(item.id) if was_declared is not is_declared else None
        if locked is not None and locked.state is State.OPEN:
            settling.settle(tx, locked, "mended" if is_declared else "gone", ctx=ctx)
