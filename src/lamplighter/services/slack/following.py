"""Threads that are told on: one outbox item for each, as long as something works there."""

from lamplighter.domain.delivery.outbox import SETTLED, ItemKind, new_item
from lamplighter.domain.slack.manifest import AGENT
from lamplighter.kit.records import changed
from lamplighter.ports.slack import Method
from lamplighter.services.context import Context
from lamplighter.services.slack.calling import call
from lamplighter.store.slack import Thread
from lamplighter.store.tx import Tx


def follow(tx: Tx, thread: Thread, ctx: Context) -> None:
    """Keep the thread, and see to it that an item tells on there: the one that does, or one in place of a lost one."""
    if is_told_on(tx, thread):
        tx.slack.save_thread(thread)
        return
    item = new_item(ctx.ids.make("out"), ItemKind.SLACK_FOLLOW, {"thread": thread.id}, ctx.now)
    tx.outbox.add(item)
    tx.slack.save_thread(changed(thread, is_followed=1, follower=item.id))


def is_told_on(tx: Tx, thread: Thread) -> bool:
    """Of a locked thread. The item itself is not locked: who settles it locks it first, and the thread after that."""
    found = tx.outbox.get(thread.follower) if thread.is_followed and thread.follower else None
    return found is not None and found.state not in SETTLED


def goes_on(tx: Tx, before: str, new: str, ctx: Context) -> None:
    """A run goes on with one that a thread tells of: it is told there too, wherever it was asked for."""
    thread = tx.slack.of_run(before)
    if thread is None:
        return
    if not thread.is_followed:
        thread = begun_anew(thread, new)
    follow(tx, thread, ctx)


def begun_anew(thread: Thread, run: str) -> Thread:
    return changed(thread, run=run, session="", number=0, message="", said="", doing="", stream="")


def set_status(tx: Tx, thread: Thread, status: str, ctx: Context, *, title: str = "") -> None:
    """Have Slack show whether something works in the thread, with its own Stop button, where the app may do that."""
    row = tx.slack.get(thread.team)
    if row is not None and AGENT in row.scopes.split(","):
        args = {"channel_id": thread.channel, "thread_ts": thread.thread, "status": status}
        call(tx, thread.team, Method.SET_STATUS, args | ({"title": title} if title else {}), ctx)
