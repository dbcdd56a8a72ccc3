"""What is told in a thread of the run that works there: how far it was told, and what comes next."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.target import FAILED_SELECTION
from lamplighter.domain.slack import stream as streaming
from lamplighter.domain.slack.doing import THINKS, doing
from lamplighter.domain.slack.markdown import harmless, plain, shown
from lamplighter.domain.slack.messages import LONGEST_PART, parts
from lamplighter.domain.slack.stream import Mode, Stream
from lamplighter.kit.records import changed
from lamplighter.ports.slack import Method
from lamplighter.services import configurations, outbox
from lamplighter.services.context import Context
from lamplighter.services.inbox.telling import body
from lamplighter.services.slack.calling import call
from lamplighter.services.slack.conversing import WORKING, is_free
from lamplighter.services.slack.following import begun_anew, set_status
from lamplighter.store.slack import Thread
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Tx

FAILED = "x"
MOST_EVENTS = 500
ASKED_AGAIN = timedelta(hours=1)
"""So long no answer is streamed where Slack said that the app may not."""
OF_THE_APP = frozenset({"missing_scope", "unknown_method", "not_allowed_token_type", "no_permission", "access_denied"})
"""Refusals that hold for all channels of a workspace."""
_ENDS = {
    RunState.SUCCEEDED: ("Done", True), RunState.NEEDS_HUMAN: ("Asks for a person", True),
    RunState.CANCELED: ("Stopped", True),
}  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """The text of the message that is being edited, or of the next one; `after` is the thread once that is told.

    `closes` says that no more goes into that message. Without a text the message says only what is being done, or, at
    the end of the run, is taken away.
    """

    thread: Thread
    text: str
    after: Thread
    closes: bool = False


@dataclass(frozen=True)
class Open:
    """The next message is to be streamed: it is begun with `mark`, and says nothing yet."""

    thread: Thread
    effect: str


@dataclass(frozen=True)
class Append:
    """What has come is added to the stream; `after` is the thread once that is told."""

    thread: Thread
    chunks: Sequence[Mapping[str, Any]]
    after: Thread


@dataclass(frozen=True)
class Close:
    """The stream ends, with nothing more said in it. This may be repeated."""

    thread: Thread
    chunks: Sequence[Mapping[str, Any]]
    after: Thread


@dataclass(frozen=True)
class Settle:
    """The stream is ended, and its message edited to hold `text`, all that is known to have been said in it.

    It is not known what it shows, or Slack ends it soon. This may be repeated.
    """

    thread: Thread
    text: str
    after: Thread


Step = Edit | Open | Append | Close | Settle


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


def look(tx: Tx, thread_id: str, now: datetime) -> Look | None:
    """What is to be told next; None where the thread is forgotten."""
    thread = tx.slack.thread(thread_id)
    if thread is None:
        return None
    run = tx.runs.get(thread.run)
    if run is None:
        return Look(thread, None)
    step = _step(tx, run, thread, now)
    if step is not None:
        return Look(thread, run, step)
    return Look(thread, run, ends=run.ended, asks=_asks(tx, run), places=places_of(tx, thread, run))


def _step(tx: Tx, run: Run, thread: Thread, now: datetime) -> Step | None:
    stream = streaming.read(thread.stream)
    is_old = stream.mode is Mode.OPEN and not run.ended and stream.is_old(now)
    if stream.mode is Mode.UNSURE or is_old:
        return _settle(thread)
    if thread.said and not thread.message:  # what did not fit the message before
        return _edit(thread, thread.session, thread.number, ())
    streams = stream.mode is Mode.OPEN or (stream.mode is Mode.NONE and _may_stream(tx, thread, now))
    closed = stream.mode is Mode.CLOSED  # what comes after all is said in a message of its own
    base = changed(thread, message="", said="", stream=streaming.EDITED) if closed else thread
    found = _next(tx, run, base, stream if streams else None, only_said=closed)
    if found is not None or not run.ended:
        return found
    if stream.mode is Mode.OPEN:
        return _ended(run, thread, stream)
    return Edit(thread, thread.said, _undressed(thread)) if thread.doing else None


def _next(tx: Tx, run: Run, thread: Thread, stream: Stream | None, *, only_said: bool) -> Step | None:
    """The step by which what has come since is told, streamed where there is a stream."""
    sessions = [one.id for one in tx.sessions.of_run(run.id)]
    at = sessions.index(thread.session) if thread.session in sessions else 0
    for session in sessions[at:]:
        number = thread.number if session == thread.session else 0
        while events := tx.transcripts.after(session, number, limit=MOST_EVENTS):
            number = events[-1].number
            said = list(filter(None, map(_said, events)))
            now = _doing(thread.doing, events)
            if stream is not None:
                step = _streamed(thread, stream, session, events)
                if step is not None:
                    return step
            elif said or (now != thread.doing and not only_said):
                return _edit(thread, session, number, said, now or THINKS)
    return None


def _said(event: TranscriptEvent) -> str:
    return str(event.body.get("text", "")).strip() if event.kind == "text" else ""


def _doing(before: str, events: Sequence[TranscriptEvent]) -> str:
    """What is being done since something was last said."""
    spoken = [number for number, one in enumerate(events) if one.kind == "text"]
    after = events[spoken[-1] + 1 :] if spoken else events
    tools = [str(one.body.get("name", "")) for one in after if one.kind == "tool_started"]
    return doing("" if spoken else before, tools)


def _undressed(thread: Thread) -> Thread:
    """Its message without what is being done; where nothing else was in it, it is gone."""
    return changed(thread, doing="", message=thread.message if thread.said else "")


def _edit(thread: Thread, session: str, number: int, said: Sequence[str], now: str = THINKS) -> Edit:
    """Add to the message as long as it fits; what does not fit goes on in the next message."""
    whole = _whole(thread, said)
    if not whole:
        return Edit(thread, "", changed(thread, session=session, number=number, doing=now))
    first, rest = _cut(whole)
    if not rest:
        return Edit(thread, whole, changed(thread, session=session, number=number, said=whole, doing=now))
    after = changed(thread, session=session, number=number, message="", said=rest, doing="")
    return Edit(thread, first, after, closes=True)


def _whole(thread: Thread, said: Sequence[str]) -> str:
    return "\n\n".join(([thread.said] if thread.said else []) + [shown(one) for one in said])


def _cut(whole: str) -> tuple[str, str]:
    """What fits a message that is edited, and the rest."""
    first = parts(whole, LONGEST_PART)[0]
    return first, whole[len(first) :].lstrip()


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _may_stream(tx: Tx, thread: Thread, now: datetime) -> bool:
    """Slack streams to whoever asked, and only for an app that it lets; it is asked again after a while."""
    if not thread.started_by or thread.message or thread.said:
        return False
    contact = tx.slack.contact(thread.team)
    refused_at = contact.unstreamed_at if contact.unstreamed in OF_THE_APP else None
    return refused_at is None or now - refused_at > ASKED_AGAIN


def _streamed(thread: Thread, stream: Stream, session: str, events: Sequence[TranscriptEvent]) -> Step | None:
    """What of these events goes into the stream; None where nothing of them is told."""
    fitting = _fitting(thread, events)
    if not fitting:  # the next message takes it: a stream, where it fits one
        if stream.mode is Mode.OPEN and (thread.said or stream.entries):
            after = changed(thread, message="", said="", doing="", stream="")
            return _close(thread, stream, streaming.GOES_ON, ok=True, after=after)
        edited = changed(thread, stream=streaming.EDITED)
        if stream.mode is Mode.OPEN:
            return _settle(thread)
        number, said = events[0].number, [_said(events[0])]
        return _edit(edited, session, number, said)
    entries, said = stream.entries, []
    for one in fitting:
        if one.kind == "tool_started":
            entries = streaming.begun(entries, str(one.body.get("tool_id", "")), str(one.body.get("name", "")))
        elif one.kind == "tool_ended":
            entries = streaming.ended(entries, str(one.body.get("tool_id", "")), ok=bool(one.body.get("ok")))
        elif text := _said(one):
            said.append(text)
    if not said and entries == stream.entries:
        rest = events[len(fitting) :]
        return _streamed(thread, stream, session, rest) if rest else None
    number = fitting[-1].number
    if stream.mode is Mode.NONE:
        return Open(thread, f"{thread.id}:{thread.run}:{thread.session}:{thread.number}:stream")
    # Blank lines end each part: what a part begins with may be lost where Slack joins them.
    text = "".join(f"{harmless(one)}\n\n" for one in said)
    after = changed(
        thread, session=session, number=number, said=_whole(thread, said),
        doing=_doing(thread.doing, fitting) or THINKS,
        stream=streaming.written(replace(stream, entries=entries)),
    )  # fmt: skip
    return Append(thread, streaming.added(stream, entries, text), after)


def _fitting(thread: Thread, events: Sequence[TranscriptEvent]) -> Sequence[TranscriptEvent]:
    """As many of the first events as one stream may hold besides what it holds."""
    length = len(thread.said)
    for number, one in enumerate(events):
        text = _said(one)
        length += len(shown(text)) + 2 if text else 0
        if length > streaming.LONGEST:
            return events[:number]
    return events


def _close(thread: Thread, stream: Stream, title: str, *, ok: bool, after: Thread | None = None) -> Close:
    over = after or changed(thread, doing="", stream=streaming.CLOSED)
    return Close(thread, streaming.closing(stream, title, ok=ok), over)


def _ended(run: Run, thread: Thread, stream: Stream) -> Close:
    title, ok = _ENDS.get(run.state, ("Failed", False))
    return _close(thread, stream, title, ok=ok)


def _settle(thread: Thread) -> Settle:
    doing = thread.doing or THINKS
    if not thread.said:
        return Settle(thread, "", changed(thread, doing=doing, stream=streaming.EDITED))
    first, rest = _cut(thread.said)
    if rest:
        return Settle(thread, first, changed(thread, message="", said=rest, doing="", stream=streaming.EDITED))
    return Settle(thread, first, changed(thread, doing=doing, stream=streaming.EDITED))


def opened(tx: Tx, item: Item, thread: Thread, *, mark: str, message: str, now: datetime) -> None:
    """The stream is begun. Raises NotClaimed."""
    if tx.slack.contact(thread.team).unstreamed:
        tx.slack.unstreamed(thread.team, "", now)
    stream = streaming.written(Stream(Mode.OPEN, mark, now))
    told(tx, item, changed(thread, message=message, stream=stream))


def not_opened(tx: Tx, item: Item, thread: Thread, *, why: str, now: datetime) -> None:
    """Slack does not have it streamed: the turn is told by a message that is edited. Raises NotClaimed."""
    tx.slack.unstreamed(thread.team, why, now)
    told(tx, item, changed(thread, stream=streaming.EDITED))


def unsure(tx: Tx, item: Item, thread: Thread) -> None:
    """A call is about to change what the stream shows. Raises NotClaimed."""
    stream = replace(streaming.read(thread.stream), mode=Mode.UNSURE)
    told(tx, item, changed(thread, stream=streaming.written(stream)))


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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
                doing=after.doing, stream=after.stream,
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
    set_status(tx, thread, "active", ctx)
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
