"""Settling inbox items: by a person, by what mends their cause, and by the sweep that finds what is over."""

from datetime import datetime, timedelta

from lamplighter.domain.inbox.items import OF_FAILURES, Folded, InboxItem, Kind, Need, State
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.records import changed
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs
from lamplighter.store.tx import Tx

RELIT_FOR = timedelta(minutes=2)
"""How long an agent must do without a new quarantine before its last one counts as over."""


def settle(tx: Tx, item: InboxItem, how: str, *, ctx: Context) -> InboxItem:
    """Settle an item whose row is locked."""
    after = changed(item, state=State.SETTLED, settled_at=ctx.now, settled_by=ctx.actor.name, settled_how=how)
    tx.inbox.save(after)
    tx.wake(needs.TOPIC)
    return after


def of_success(tx: Tx, automation: str, *, ctx: Context) -> None:
    """A run of the automation succeeded."""
    _of_subject(tx, automation, [kind.value for kind in OF_FAILURES], "succeeded", ctx)


def of_enabled(tx: Tx, automation: str, *, ctx: Context) -> None:
    _of_subject(tx, automation, [Kind.DISABLED.value, Kind.DRAFT.value], "enabled", ctx)


def of_disabled(tx: Tx, automation: str, *, ctx: Context) -> None:
    """Its failures disabled it: that has an item, which stands for them too."""
    _of_subject(tx, automation, [kind.value for kind in OF_FAILURES], "disabled", ctx)


def of_mended(tx: Tx, automation: str, *, ctx: Context) -> None:
    _of_subject(tx, automation, [Kind.BROKEN.value], "mended", ctx)


def of_fired(tx: Tx, automation: str, *, ctx: Context) -> None:
    _of_subject(tx, automation, [Kind.QUIET.value], "fired", ctx)


def of_lifted(tx: Tx, agent: str, by: str, now: datetime) -> None:
    if tx.inbox.settle_of_subject(agent, [Kind.QUARANTINED.value], by=by, how="lifted", now=now):
        tx.wake(needs.TOPIC)


def of_answered_prompts(tx: Tx, waiting: set[str], *, ctx: Context) -> None:
    """Settle the items of agents that no longer stand at a prompt; `waiting` are the fingerprints of those that do."""
    after = ""
    while page := tx.inbox.open_ones(after=after):
        for item in page:
            if item.kind is Kind.WAITING and item.fingerprint not in waiting:
                locked = tx.inbox.lock_open(item.fingerprint)
                if locked is not None:
                    settle(tx, locked, "unblocked", ctx=ctx)
        after = page[-1].fingerprint


def of_accepted(tx: Tx, *, ctx: Context) -> None:
    """The configuration of the files is in force."""
    item = tx.inbox.lock_open(needs.CONFIG)
    if item is not None:
        settle(tx, item, "mended", ctx=ctx)


def of_run(tx: Tx, fingerprint: str, how: str, *, ctx: Context) -> None:
    """A person dealt with a run: its item is settled with the last of its runs."""
    item = tx.inbox.lock_open(fingerprint)
    if item is None:
        return
    left = folded(tx, item)
    if left is None:
        settle(tx, item, how, ctx=ctx)
    else:
        tx.inbox.save(refreshed(tx, item, left))


def _of_subject(tx: Tx, subject: str, kinds: list[str], how: str, ctx: Context) -> None:
    if tx.inbox.settle_of_subject(subject, kinds, by=ctx.actor.name, how=how, now=ctx.now):
        tx.wake(needs.TOPIC)


def folded(tx: Tx, item: InboxItem) -> Folded | None:
    """The runs that an open item stands for; None if none of them is left."""
    return tx.runs.folded(item.fingerprint, after=covered(tx, item.fingerprint))


def covered(tx: Tx, fingerprint: str) -> int:
    """Runs of the fingerprint that ended until then belong to an item that is settled."""
    until = tx.inbox.settled_until(fingerprint)
    return -1 if until is None else until


def refreshed(tx: Tx, item: InboxItem, found: Folded) -> InboxItem:
    """The item as its runs are now. It says what the newest said, even after that one was retried."""
    last = tx.runs.get(found.last_run) if found.last_at > item.last_at else None
    facts = item.facts if last is None else needs.facts_of(last)
    return changed(
        item, facts=facts, count=found.count, first_at=found.first_at, last_at=found.last_at, last_run=found.last_run
    )  # fmt: skip


def recounted(tx: Tx, item: InboxItem) -> InboxItem:
    """The item as what it stands for is now, be it runs or work that was given up; itself if none of that is left."""
    if item.of_runs:
        found = folded(tx, item)
        return item if found is None else refreshed(tx, item, found)
    if item.kind is Kind.OUTBOX:
        left = [need for need in _given_up(tx) if need.fingerprint == item.fingerprint]
        if left:
            first, last = min(left, key=_began), max(left, key=_began)
            return changed(
                item, facts=last.facts, count=len(left), first_at=first.at, last_at=last.at, last_run=last.run
            )  # fmt: skip
    return item


def _began(need: Need) -> datetime:
    return need.at


def over(tx: Tx, item: InboxItem, now: datetime) -> str | None:
    """How an open item has come to its end; None while a person is still needed.

    Configuration, destinations and prompts of agents are judged by the process that knows them.
    """
    match item.kind:
        case Kind.NEEDS_HUMAN:
            return "gone" if folded(tx, item) is None else None
        case Kind.FAILED | Kind.TIMED_OUT | Kind.SKIPPED:
            return _failure_over(tx, item)
        case Kind.DISABLED | Kind.QUIET | Kind.BROKEN | Kind.DRAFT:
            return _automation_over(tx, item)
        case Kind.QUARANTINED:
            until = tx.agents.quarantine(SessionName(str(item.facts.get("session"))))
            return "lifted" if until is None or until + RELIT_FOR <= now else None
        case Kind.OUTBOX:
            return None if any(need.fingerprint == item.fingerprint for need in _given_up(tx)) else "delivered"
        case Kind.CONFIG | Kind.DESTINATION | Kind.WAITING:
            return None


def _given_up(tx: Tx) -> list[Need]:
    """What stands in the outbox as given up, and needs a person."""
    found = (needs.given_up(one.item, one.settled_at) for one in tx.outbox.given_up())
    return [need for need in found if need is not None]


def _failure_over(tx: Tx, item: InboxItem) -> str | None:
    found = folded(tx, item)
    row = tx.automations.named(item.subject)
    if found is None or row is None:
        return "gone"
    if needs.disabled(row) is not None:
        return "disabled"
    return "succeeded" if tx.runs.succeeded_since(item.subject, found.last_run, found.last_at) else None


def _automation_over(tx: Tx, item: InboxItem) -> str | None:
    row = tx.automations.named(item.subject)
    if row is None:
        return "gone"
    if any(need.kind is item.kind for need in needs.of_automation(row)):
        return None
    match item.kind:
        case Kind.QUIET:
            return "fired" if row.quiet_at is not None else "gone"
        case Kind.BROKEN:
            return "mended"
        case _:
            return "enabled" if row.enabled else "gone"
