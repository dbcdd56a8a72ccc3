"""❌ on a message of a thread, or its button: the turn that works there is ended, with the rights of whoever did it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lamplighter.domain.access import Actor
from lamplighter.domain.delivery.outbox import ItemKind, NotClaimed, new_item
from lamplighter.domain.slack.events import Stop
from lamplighter.domain.slack.messages import STOP
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import changed
from lamplighter.services.context import Context
from lamplighter.services.operation import judged
from lamplighter.services.runs.operations import CANCEL_RUN, CancelRun
from lamplighter.services.slack.installing import member_of
from lamplighter.services.slack.pressing import SURFACE, Settle, ask_who, button, whisper
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.slack import Thread
from lamplighter.store.tx import Store, Tx


def read(payload: Mapping[str, Any]) -> Stop | None:
    """The press of a button that ends what works in its thread; None for anything else."""
    found = button(payload)
    if found is None or found.verb != STOP:
        return None
    return Stop(found.team, found.person, found.channel, found.message, found.at)


async def stop(
    store: Store, asked_for: Stop, ctx: Context, *, asked: bool = False, settle: Settle | None = None
) -> None:
    """End the turn that works in the thread; whoever may not is told so and nobody else.

    When this returns, it is committed. May be repeated: a reaction that was heard before does nothing. Where nothing
    works, nothing happens. With `asked`, Slack was asked who they are.
    """
    try:
        await store.transact(_stop, asked_for, ctx, asked=asked, settle=settle)
    except (StoreUnavailable, NotClaimed):
        raise
    except LampError as error:
        await store.transact(_refused, asked_for, error, ctx, settle=settle)


def _stop(tx: Tx, wanted: Stop, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    if settle is not None:
        settle(tx, ctx)
    elif not _heard(tx, wanted, ctx):
        return
    thread = _thread(tx, wanted)
    run = None if thread is None else _at_work(tx, thread)
    if thread is None or run is None:
        return
    who = member_of(tx, wanted.team, wanted.person)
    if who is None and not asked:
        payload = {"team": wanted.team, "person": wanted.person, "stop": asdict(wanted)}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SLACK_PRESS, payload, ctx.now))
    elif who is None:
        ask_who(tx, wanted.team, wanted.channel, wanted.person, ctx, thread=thread.thread)
    else:
        judged(tx, CANCEL_RUN, CancelRun(run), changed(ctx, actor=Actor(*who), surface=SURFACE))


def _thread(tx: Tx, wanted: Stop) -> Thread | None:
    """The thread at work that the message is the beginning of, a turn of, or what is being said in it."""
    for one in tx.slack.followed_in(wanted.team, wanted.channel):
        if wanted.message in {one.thread, one.message, *one.marked.split()}:
            return one
    return None


def _at_work(tx: Tx, thread: Thread) -> str | None:
    run = tx.runs.get(thread.run)
    while run is not None and run.ended and run.continued_by is not None:
        run = tx.runs.get(run.continued_by)
    return None if run is None or run.ended else run.id


def _heard(tx: Tx, wanted: Stop, ctx: Context) -> bool:
    return tx.slack.heard(wanted.team, f"stop:{wanted.channel}:{wanted.message}:{wanted.person}:{wanted.at}", ctx.now)


def _refused(tx: Tx, wanted: Stop, error: LampError, ctx: Context, *, settle: Settle | None) -> None:
    if settle is not None:
        settle(tx, ctx)
    elif not _heard(tx, wanted, ctx):
        return
    thread = _thread(tx, wanted)
    told = f"{error.message} {error.hint}".strip()
    whisper(tx, wanted.team, wanted.channel, wanted.person, told, ctx, thread="" if thread is None else thread.thread)
