"""Threads that runs open: an automation names a channel, and each of its runs is told in a thread of its own there."""

from dataclasses import dataclass

from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.runs.model import Run
from lamplighter.kit.json_text import text_of
from lamplighter.services import outbox
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.slack import following
from lamplighter.store.slack import Thread
from lamplighter.store.tx import Tx

NOBODY = ""
"""Who began such a thread; whoever speaks there first takes their place."""


def wanted(tx: Tx, run: Run, ctx: Context) -> None:
    """Queue the opening of a thread for a run that starts.

    One that goes on with another run, or tries it again, is told where that was.
    """
    place = snapshots.read(text_of(run.definition)).policies.notify.thread
    if place is None or run.continues is not None:
        return
    if run.retries is not None and tx.slack.of_run(run.retries) is not None:
        following.goes_on(tx, run.retries, run.id, ctx)
        return
    payload = {"run": run.id, "to": place}
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SLACK_OPEN, payload, ctx.now))


@dataclass(frozen=True)
class Place:
    team: str
    channel: str
    message: str


def opened(tx: Tx, item: Item, at: Place, ctx: Context) -> None:
    """Its first message stands there. Raises NotClaimed."""
    outbox.done(tx, item, ctx.now)
    thread = Thread(ctx.ids.make("slt"), at.team, at.channel, at.message, NOBODY, item.payload["run"], ctx.now)
    if tx.slack.add_thread(thread):
        following.follow(tx, thread, ctx)


def first_words(tx: Tx, run: Run, link: str) -> str:
    """What the thread begins with."""
    event = None if run.trigger_event is None else tx.trigger_events.get(run.trigger_event)
    why = "" if event is None or not event.reason else f": {event.reason}"
    seen = f" ([the run]({link}))" if link else ""
    return f"**{run.automation}** began{why}.{seen}"
