"""The choice of where a conversation works, by whoever began it, where no model could choose."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lamplighter.domain.access import Actor, Verb, require
from lamplighter.domain.automations.model import AgentAction, Strategy
from lamplighter.domain.slack.messages import LONGEST_SECTION, PLACE, PREFIX, cut, section
from lamplighter.kit.errors import Conflict, LampError
from lamplighter.kit.json_text import text_of
from lamplighter.kit.records import changed
from lamplighter.ports.slack import Method
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.runs import continuing, turns
from lamplighter.services.slack.calling import call
from lamplighter.services.slack.conversing import PICK_WITHIN
from lamplighter.services.slack.installing import member_of
from lamplighter.services.slack.pressing import SURFACE, Button, button, whisper
from lamplighter.services.slack.telling import places_of
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.slack import Thread
from lamplighter.store.tx import Store, Tx


@dataclass(frozen=True)
class Pick:
    pressed: Button
    place: str


class NotToBeChosen(Conflict):
    def __init__(self, why: str) -> None:
        super().__init__(f"{why}.", hint="Mention the app again to begin another conversation.")


def read(payload: Mapping[str, Any]) -> Pick | None:
    """A choice of ours; None for anything else."""
    pressed = button(payload)
    if pressed is None or pressed.verb != PLACE:
        return None
    option = pressed.action.get("selected_option")
    place = option.get("value") if isinstance(option, Mapping) else None
    return Pick(pressed, place) if isinstance(place, str) and place else None


async def pick(store: Store, picked: Pick, ctx: Context) -> None:
    """Go on where it was chosen; whoever may not, or comes too late, is told so and nobody else."""
    try:
        await store.transact(_pick, picked, ctx)
    except StoreUnavailable:
        raise
    except LampError as error:
        told = f"{error.message} {error.hint}".strip()
        await store.transact(_refused, picked, told, ctx)


def _pick(tx: Tx, picked: Pick, ctx: Context) -> None:
    at = picked.pressed
    if not _heard(tx, picked, ctx):
        return
    thread = tx.slack.lock_thread(at.of)
    who = member_of(tx, at.team, at.person)
    if thread is None or (thread.team, thread.channel) != (at.team, at.channel):
        raise NotToBeChosen("That conversation is not kept any more")
    if who is None or at.person != thread.started_by:
        raise NotToBeChosen("Only who began this conversation may choose")
    by = changed(ctx, actor=Actor(*who), surface=SURFACE)
    require(by.actor, Verb.RUN_AUTOMATION)
    _go_on(tx, thread, picked.place, by)
    told = f"It works in *{cut(picked.place, 100)}*, as {who[0]} chose."
    args = {"channel": at.channel, "ts": at.message, "text": cut(told, LONGEST_SECTION), "blocks": [section(told)]}
    call(tx, at.team, Method.UPDATE, args, ctx)


def _go_on(tx: Tx, thread: Thread, place: str, ctx: Context) -> None:
    run = continuing.locked(tx, thread.run)
    if place not in places_of(tx, thread, run):
        raise NotToBeChosen("There is nothing to choose here any more")
    if run.ended_at is None or ctx.now - run.ended_at > PICK_WITHIN:
        raise NotToBeChosen("It is too late to choose")
    made = snapshots.read(text_of(run.definition))
    action = made.action
    assert isinstance(action, AgentAction)  # noqa: S101  conversations are with agents
    chosen = replace(action, strategy=Strategy.FIXED, configuration=place, configurations=(), fallback=None)
    before = changed(run, definition=json.loads(snapshots.written(replace(made, action=chosen))))
    said = [continuing.Said(turns.told_by(tx, run), ctx.actor.name, ctx.now)]
    continuing.continue_run(tx, before, said, reason=f"{place} was chosen by {ctx.actor.name}", ctx=ctx)


def _heard(tx: Tx, picked: Pick, ctx: Context) -> bool:
    at = picked.pressed
    return tx.slack.heard(at.team, f"{PREFIX}:{PLACE}:{at.message}:{at.person}:{at.at}", ctx.now)


def _refused(tx: Tx, picked: Pick, why: str, ctx: Context) -> None:
    at = picked.pressed
    if not _heard(tx, picked, ctx):
        return
    thread = tx.slack.thread(at.of)
    whisper(tx, at.team, at.channel, at.person, why, ctx, thread="" if thread is None else thread.thread)
