"""Threads that are conversations: a mention or a direct message begins one, what follows in the thread is its turns."""

import json
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from lamplighter.domain.access import Actor, Verb, require
from lamplighter.domain.automations.model import AgentAction, Automation, Manual, Mode, Strategy, Trigger, deadline
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs.model import MESSAGE, Run, RunState, first_state
from lamplighter.domain.slack.events import EARLY_WITHIN, Said, counts, is_early
from lamplighter.domain.slack.messages import cut
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Conflict, LampError
from lamplighter.kit.json_text import text_of
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import from_json
from lamplighter.ports.slack import Method
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.runs.adopting import CONVERSATION, belongs
from lamplighter.services.runs.continuing import checked, send
from lamplighter.services.runs.creating import add_run
from lamplighter.services.runs.ending import Ending
from lamplighter.services.slack.calling import call
from lamplighter.services.slack.following import begun_anew, follow, set_status
from lamplighter.services.slack.installing import member_of
from lamplighter.services.slack.pressing import SURFACE, Settle, ask_who, whisper
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.slack import Early, Thread
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Store, Tx

FREE = "slack"
"""The trigger of conversations that end each turn by the end of the program: nothing is to be completed there."""
WORKING = "eyes"
PICK_WITHIN = timedelta(minutes=15)
"""For so long whoever began a conversation may choose where it works."""
LONGEST_TITLE = 200
_PROMPT = "Somebody speaks to you in Slack. What you write is shown to them there: write plainly, and not at length."


class NobodyWorks(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "No agent program works in the threads of this workspace.",
            hint="Install the app again with `lamp slack install --preset NAME`.",
        )


async def speak(store: Store, said: Said, ctx: Context, *, asked: bool = False, settle: Settle | None = None) -> None:
    """Begin a conversation, or go on with one; whoever may not is told so and nobody else.

    When this returns, it is committed. May be repeated: a message that was heard before does nothing. What somebody
    unknown says waits until Slack was asked who they are; with `asked` it was. A reply that comes before what it
    replies to waits for it.
    """
    await _spoken(store, said, ctx, asked=asked, settle=settle)
    for kept in await store.read(_waiting, said):
        with suppress(AnotherTookIt):
            reply = from_json(Said, json.loads(kept.said), strict=False)
            await _spoken(store, reply, ctx, asked=False, settle=_taking(kept))


async def _spoken(store: Store, said: Said, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    try:
        await store.transact(_speak, said, ctx, asked=asked, settle=settle)
    except StoreUnavailable:
        raise
    except LampError as error:
        await store.transact(_refused, said, error, ctx, asked=asked, settle=settle)


def _speak(tx: Tx, said: Said, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    if settle is not None:
        settle(tx, ctx)
    elif not _heard(tx, said, ctx) and not _brings_files(tx, said, ctx):
        return
    thread = tx.slack.find_thread(said.team, said.channel, said.thread)
    early = is_early(said, ctx.now)
    if thread is None and not said.to_us and not early:
        return
    if thread is None:
        tx.cities.lock()  # of two messages that come first at once, one begins it
        thread = tx.slack.find_thread(said.team, said.channel, said.thread)
    if thread is None and not said.to_us:
        _keep(tx, said, ctx)
        return
    thread = None if thread is None else _entered(tx, thread, said)
    if thread is not None and not counts(said, started_by=thread.started_by, others=bool(thread.others)):
        return
    who = member_of(tx, said.team, said.person)
    if not asked and (who is None or said.files):  # both take a while, and are done from the outbox
        payload = {"team": said.team, "person": said.person, "said": asdict(said)}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SLACK_PRESS, payload, ctx.now))
    elif who is None:
        ask_who(tx, said.team, said.channel, said.person, ctx, thread=said.thread)
    else:
        by = changed(ctx, actor=Actor(*who), surface=SURFACE)
        _turn(tx, said, thread, by)


def _entered(tx: Tx, thread: Thread, said: Said) -> Thread:
    """Who speaks first where a run opened the thread is who it talks with; after a third person all mention it."""
    after = thread
    if not thread.started_by:
        after = changed(thread, started_by=said.person)
    elif said.person != thread.started_by and not thread.others:
        after = changed(thread, others=1)
    if after is not thread:
        tx.slack.save_thread(after)
    return after


# ── replies that come before what they reply to ───────────────────────────────────────────────────────────────────


class AnotherTookIt(Conflict):
    def __init__(self) -> None:
        super().__init__("Another has taken up this reply.", hint="Nothing is left to be done.")


def _keep(tx: Tx, said: Said, ctx: Context) -> None:
    """What waited in vain is forgotten: most replies are in threads that are nothing to us."""
    tx.slack.forget_early(before=ctx.now - EARLY_WITHIN)
    written = json.dumps(asdict(said))
    tx.slack.keep_early(Early(said.team, said.channel, said.thread, said.message, written, ctx.now))


def _waiting(tx: Tx, said: Said) -> list[Early]:
    found = tx.slack.early_of(said.team, said.channel, said.thread)
    return found if found and tx.slack.is_thread(said.team, said.channel, said.thread) else []


def _taking(kept: Early) -> Settle:
    def settle(tx: Tx, _ctx: Context) -> None:
        if not tx.slack.take_early(kept):
            raise AnotherTookIt

    return settle


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _turn(tx: Tx, said: Said, thread: Thread | None, ctx: Context) -> None:
    if thread is None:
        require(ctx.actor, Verb.RUN_AUTOMATION)
        made = _begin(tx, said, ctx)
        thread = Thread(ctx.ids.make("slt"), said.team, said.channel, said.thread, said.person, made, ctx.now)
        tx.slack.add_thread(thread)
    else:
        require(ctx.actor, Verb.ANSWER_RUN)
        told, _ = send(tx, thread.run, said.text, ctx=ctx)
        thread = tx.slack.find_thread(said.team, said.channel, said.thread) or thread
        if not thread.is_followed:
            thread = begun_anew(thread, told.id)
    args = {"channel": thread.channel, "timestamp": said.message, "name": WORKING}
    call(tx, thread.team, Method.ADD_REACTION, args, ctx)
    set_status(tx, thread, "processing", ctx, title=cut(said.text, LONGEST_TITLE))
    follow(tx, changed(thread, marked=f"{thread.marked} {said.message}".strip()), ctx)


def _begin(tx: Tx, said: Said, ctx: Context) -> str:
    """The first run of a conversation. Raises NobodyWorks, UsageError."""
    row = tx.slack.get(said.team)
    places = () if row is None else tuple(json.loads(row.configurations))
    if row is None or not (row.preset or places):
        raise NobodyWorks
    text, by = checked(said.text), ctx.actor.name
    action = AgentAction(_PROMPT, preset=row.preset or None, mode=Mode(row.mode))
    if len(places) > 1:
        action = replace(action, strategy=Strategy.AGENT_DECIDE, configurations=places)
    elif places:
        action = replace(action, configuration=places[0])
    made = Automation(CONVERSATION, action, (Trigger(FREE, Manual()),), description="Conversations with people.")
    owner = belongs(tx, made, ctx)
    run, event = ctx.ids.make("run"), ctx.ids.make("tev")
    message = {"text": text, "by": by, "run": None}
    told = {"message": message, "messages": [{"text": text, "by": by, "at": rfc3339(ctx.now)}]}
    fired = TriggerEvent(
        id=event, automation_id=owner.id, automation=owner.scoped_name, trigger=MESSAGE, kind=MESSAGE, status="fired",
        reason=f"message of {by} in Slack", first_at=ctx.now, last_at=ctx.now, run=run, payload={"payload": told},
        dedup_key=f"slack:{said.team}:{said.channel}:{said.thread}",
    )  # fmt: skip
    if not tx.trigger_events.insert(fired):
        raise Conflict("This thread was a conversation before, which is not kept any more.", hint="Begin another one.")
    first = Run(
        id=run, automation=owner.scoped_name, state=first_state(enriched=True), created_at=ctx.now,
        trigger_kind=MESSAGE, trigger_event=event, definition=json.loads(snapshots.written(made)),
        deadline_at=ctx.now + deadline(made, MESSAGE, ctx.rules.deadline), last_activity_at=ctx.now,
        automation_id=owner.id, action=AgentAction.kind, trigger=MESSAGE, rig=row.rig or None,
    )  # fmt: skip
    prefix = ctx.rules.prefix_of(row.rig or None)
    data: dict[str, Any] = {"slack": {"team": said.team, "channel": said.channel, "thread": said.thread}, "by": by}
    add_run(tx, first, prefix=prefix, ctx=ctx.inside(None), data=data)
    return run


def _heard(tx: Tx, said: Said, ctx: Context) -> bool:
    """False for a message that was told before: a mention comes as two events."""
    first = tx.slack.heard(said.team, f"message:{said.channel}:{said.message}", ctx.now)
    if first and said.files:
        tx.slack.heard(said.team, f"files:{said.channel}:{said.message}", ctx.now)
    return first


def _brings_files(tx: Tx, said: Said, ctx: Context) -> bool:
    """Whether a message that was heard before has files that were not told of then: one of its two events may not."""
    return bool(said.files) and tx.slack.heard(said.team, f"files:{said.channel}:{said.message}", ctx.now)


def _refused(tx: Tx, said: Said, error: LampError, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    if settle is not None:
        settle(tx, ctx)
    elif not asked and not _heard(tx, said, ctx):
        return
    told = f"{error.message} {error.hint}".strip()
    whisper(tx, said.team, said.channel, said.person, told, ctx, thread=said.thread)


def replied(ending: Ending) -> Ending:
    """The end of a turn of a free conversation: it is enough that its program ended well."""
    if ending.reason != "no_completion" or ending.exit_code != 0:
        return ending
    return replace(ending, state=RunState.SUCCEEDED, reason="replied", stage=None, error="")


def is_free(run: Run) -> bool:
    """Whether a turn of it is over with the end of its program."""
    if run.automation != CONVERSATION:
        return False
    return any(one.id == FREE for one in snapshots.read(text_of(run.definition)).triggers)
