"""The end of a session, told to whoever subscribed to it: queued where it is recorded, one notice for each."""

from datetime import datetime
from typing import Any

from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.inbox.notices import What
from lamplighter.services import outbox
from lamplighter.services.context import Context, acting
from lamplighter.services.inbox.telling import Telling, queue_notice
from lamplighter.store.sessions import SessionRow
from lamplighter.store.tx import Tx

ACTOR = "lamp"


def tell(tx: Tx, session: str, at: datetime, *, run: str | None = None) -> None:
    """Queue the telling of a session that has just ended, if anybody wants to know."""
    if tx.subscriptions.waiting(_subjects(session, run)):
        ctx = acting(ACTOR, at)
        payload = {"session": session} | ({"run": run} if run else {})
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.NOTIFY_SESSION_COMPLETE, payload, at))


def dispatch(tx: Tx, item: Item, telling: Telling, *, ctx: Context) -> None:
    """Queue one notice for each subscription that waits, and settle the outbox item.

    Each notice is then sent and tried again by itself: one that fails holds up no other.
    """
    session = item.payload["session"]
    row = tx.sessions.get(session)
    told = _told(session, row)
    for one in tx.subscriptions.waiting(_subjects(session, item.payload.get("run"))):
        notice = queue_notice(tx, session, one.destination, What.SESSION, told, telling, ctx=ctx)
        tx.subscriptions.queued(one, notice)
    outbox.done(tx, item, ctx.now)


def _subjects(session: str, run: str | None) -> list[str]:
    return [session, run] if run else [session]


def _told(session: str, row: SessionRow | None) -> dict[str, Any]:
    whose = session if row is None else row.agent or row.run or row.name
    why = "" if row is None or not row.end_reason else f": {row.end_reason}"
    status = "" if row is None or row.exit_status is None else f" (status {row.exit_status})"
    return {
        "sentence": f"The session of {whose} ended{why}{status}.",
        "subject": whose,
        "session": session,
        "run": None if row is None else row.run,
        "agent": None if row is None else row.agent,
        "summary": None if row is None else row.summary,
        "fix": f"lamp session show {session}",
    }
