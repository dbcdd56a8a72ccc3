"""What is told in a thread of the run that works there: how far it was told, and what comes next."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.target import FAILED_SELECTION
from lamplighter.domain.slack.doing import THINKS, doing
from lamplighter.domain.slack.markdown import plain, shown
from lamplighter.domain.slack.messages import LONGEST_PART, parts
from lamplighter.kit.records import changed
from lamplighter.ports.slack import Method
from lamplighter.services import configurations, outbox
from lamplighter.services.context import Context
from lamplighter.services.inbox.telling import body
from lamplighter.services.slack.conversing import WORKING, is_free
from lamplighter.services.slack.following import begun_anew
from lamplighter.services.slack.pressing import call
from lamplighter.store.slack import Thread
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Tx

FAILED = "x"
MOST_EVENTS = 500


@dataclass(frozen=True)
class Step:
    """The text of the message that is being edited, or of the next one; `after` is the thread once that is told.

    `closes` says that no more goes into that message. Without a text the message says only what is being done, or, at
    the end of the run, is taken away.
    """

    thread: Thread
    text: str
    after: Thread
    closes: bool = False


@dataclass(frozen=True)
class Look:
    """How a thread stands. `ends` says that the run has ended and all of it is told but how it ended.

    `asks` is what is told of the open inbox item of a run that asks for a person. `places` are those of which one is
    to be chosen, because no model did, each with what it is for.
    """

    thread: Thread
    run: Run | None
    step: Step | None = None
    ends: bool = False
    asks: Mapping[str, Any] | None = None
    places: Mapping[str, str] = field(default_factory=dict)


def look(tx: Tx, thread_id: str) -> Look | None:
    """What is to be told next; None where the thread is forgotten."""
    thread = tx.slack.thread(thread_id)
    if thread is None:
        return None
    run = tx.runs.get(thread.run)
    if run is None:
        return Look(thread, None)
    if thread.said and not thread.message:  # what did not fit the message before
        return Look(thread, run, _step(thread, thread.session, thread.number, ()))
    sessions = [one.id for one in tx.sessions.of_run(run.id)]
    at = sessions.index(thread.session) if thread.session in sessions else 0
    for session in sessions[at:]:
        number = thread.number if session == thread.session else 0
        seen = thread.doing
        while events := tx.transcripts.after(session, number, limit=MOST_EVENTS):
            number = events[-1].number
            said = [text for one in events if one.kind == "text" and (text := str(one.body.get("text", "")).strip())]
            now = _doing(seen, events)
            if said or now != seen:
                return Look(thread, run, _step(thread, session, number, said, now or THINKS))
    if run.ended and thread.doing:
        return Look(thread, run, Step(thread, thread.said, _undressed(thread)))
    return Look(thread, run, ends=run.ended, asks=_asks(tx, run), places=places_of(tx, thread, run))


def _doing(before: str, events: Sequence[TranscriptEvent]) -> str:
    """What is being done since something was last said."""
    spoken = [number for number, one in enumerate(events) if one.kind == "text"]
    after = events[spoken[-1] + 1 :] if spoken else events
    tools = [str(one.body.get("name", "")) for one in after if one.kind == "tool_started"]
    return doing("" if spoken else before, tools)


def _undressed(thread: Thread) -> Thread:
    """Its message without what is being done; where nothing else was in it, it is gone."""
    return changed(thread, doing="", message=thread.message if thread.said else "")


def _step(thread: Thread, session: str, number: int, said: Sequence[str], now: str = THINKS) -> Step:
    """Add to the message as long as it fits; what does not fit goes on in the next message."""
    whole = "\n\n".join(([thread.said] if thread.said else []) + [shown(one) for one in said])
    if not whole:
        return Step(thread, "", changed(thread, session=session, number=number, doing=now))
    first = parts(whole, LONGEST_PART)[0]
    if first == whole:
        return Step(thread, whole, changed(thread, session=session, number=number, said=whole, doing=now))
    rest = whole[len(first) :].lstrip()
    after = changed(thread, session=session, number=number, message="", said=rest, doing="")
    return Step(thread, first, after, closes=True)


def _asks(tx: Tx, run: Run) -> Mapping[str, Any] | None:
    if run.state is not RunState.NEEDS_HUMAN or not run.fingerprint:
        return None
    item = tx.inbox.open_of(run.fingerprint)
    return None if item is None or item.last_run != run.id else body(item)


def places_of(tx: Tx, thread: Thread, run: Run) -> dict[str, str]:
    """Where the run could have worked, if that was to be chosen and was not."""
    if run.state is not RunState.FAILED or run.reason != FAILED_SELECTION or run.continued_by is not None:
        return {}
    row = tx.slack.get(thread.team)
    known = configurations.known(tx)
    names = [] if row is None else json.loads(row.configurations)
    return {name: known[name].description for name in names if name in known}


def told(tx: Tx, item: Item, after: Thread) -> None:
    """Raises NotClaimed where another worker tells on by now."""
    outbox.mine(tx, item)
    locked = tx.slack.lock_thread(after.id)
    if locked is not None:
        tx.slack.save_thread(
            changed(
                locked, session=after.session, number=after.number, message=after.message, said=after.said,
                doing=after.doing,
            )
        )  # fmt: skip


def last_words(run: Run, *, said: str) -> str:
    """What is said at the end of a run; empty where the agent has said it all. `said` is what it said last."""
    if run.state is RunState.SUCCEEDED:
        told = said and (is_free(run) or shown(run.summary) in said)
        return "" if told else shown(run.summary)
    if run.state is RunState.NEEDS_HUMAN:
        return shown(str((run.question or {}).get("text") or run.summary or "It asks for a person."))
    if run.state is RunState.CANCELED:
        return ":x: Stopped." if run.reason == "canceled" else f":x: Stopped: {plain(run.reason or '')}."
    why = run.error or run.reason or run.state.value
    return f":x: The run ended as {run.state.value.replace('_', ' ')}: {plain(why[:1000])}"


def finish(tx: Tx, item: Item, thread_id: str, ctx: Context) -> None:
    """After the last words of a run: tell of the one that goes on with it, or leave the thread until somebody speaks.

    Raises NotClaimed.
    """
    outbox.mine(tx, item)
    thread = tx.slack.lock_thread(thread_id)
    if thread is None:
        outbox.done(tx, item, ctx.now)
        return
    run = tx.runs.get(thread.run)
    if run is not None and run.continued_by is not None:
        tx.slack.save_thread(begun_anew(thread, run.continued_by))
        outbox.later(tx, item, ctx.now, ctx.now)
        return
    _unmark(tx, thread, run, ctx)
    tx.slack.save_thread(changed(begun_anew(thread, thread.run), marked="", is_followed=0, follower=""))
    outbox.done(tx, item, ctx.now)


def _unmark(tx: Tx, thread: Thread, run: Run | None, ctx: Context) -> None:
    marks = thread.marked.split()
    for message in marks:
        args = {"channel": thread.channel, "timestamp": message, "name": WORKING}
        call(tx, thread.team, Method.REMOVE_REACTION, args, ctx)
    if marks and run is not None and run.state in {RunState.FAILED, RunState.TIMED_OUT}:
        args = {"channel": thread.channel, "timestamp": marks[-1], "name": FAILED}
        call(tx, thread.team, Method.ADD_REACTION, args, ctx)
