"""Buttons in Slack: a press is the operation itself, under the presser's own role, and the message says who did it."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lamplighter.domain.access import Actor
from lamplighter.domain.delivery.outbox import ItemKind, NotClaimed, new_item
from lamplighter.domain.inbox.items import State, how_settled
from lamplighter.domain.slack.markdown import plain
from lamplighter.domain.slack.messages import LONGEST_SECTION, PREFIX, cut, decided
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import changed
from lamplighter.ports.slack import Method
from lamplighter.services.context import Context
from lamplighter.services.inbox import operations as inbox
from lamplighter.services.operation import Operation, judged
from lamplighter.services.slack.calling import call
from lamplighter.services.slack.installing import CODE_HOLDS, link_by_email, mark_of, member_of
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.slack import Person
from lamplighter.store.tx import Store, Tx

SURFACE = "slack"
LONGEST_NAME = 80


@dataclass(frozen=True)
class Pressed:
    """`message` is the message with the button, `at` the press."""

    team: str
    person: str
    channel: str
    message: str
    at: str
    verb: str


@dataclass(frozen=True)
class Press(Pressed):
    """`value` is what the button of the item stands for, or a text."""

    item: str
    value: str
    text: str = ""
    blocks: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True)
class _Way:
    operation: Operation[Any, Any]
    ask: Any
    told: str
    keeps_buttons: bool = False


@dataclass(frozen=True)
class Button(Pressed):
    """The press of one of our buttons or menus: `of` is the item or the thread that it belongs to."""

    of: str
    action: Mapping[str, Any]
    shown: Mapping[str, Any]


def button(payload: Mapping[str, Any]) -> Button | None:
    """None for anything that is not ours."""
    actions = payload.get("actions")
    if payload.get("type") != "block_actions" or not isinstance(actions, list) or not actions:
        return None
    action = actions[0] if isinstance(actions[0], Mapping) else {}
    message = payload.get("message") if isinstance(payload.get("message"), Mapping) else {}
    assert isinstance(message, Mapping)  # noqa: S101  as above
    name, place = str(action.get("action_id", "")).split(":"), str(action.get("block_id", "")).split(":")
    found = Button(
        team=_id(payload, "team"), person=_id(payload, "user"), channel=_id(payload, "channel"),
        message=str(message.get("ts", "")), at=str(action.get("action_ts", "")),
        verb=name[1] if len(name) > 1 else "", of=place[1] if len(place) > 1 else "", action=action, shown=message,
    )  # fmt: skip
    ours = name[0] == place[0] == PREFIX and found.verb
    return found if ours and all((found.team, found.person, found.channel, found.message, found.of)) else None


def read(payload: Mapping[str, Any]) -> Press | None:
    """The press of a button of an inbox item; None for anything else."""
    found = button(payload)
    if found is None or found.verb not in _WAYS:
        return None
    return Press(
        team=found.team, person=found.person, channel=found.channel, message=found.message, at=found.at,
        verb=found.verb, item=found.of, value=str(found.action.get("value") or ""),
        text=str(found.shown.get("text", ""))[:LONGEST_SECTION],
        blocks=[one for one in found.shown.get("blocks") or () if isinstance(one, Mapping)],
    )  # fmt: skip


def _id(payload: Mapping[str, Any], key: str) -> str:
    found = payload.get(key)
    return str(found.get("id") or "") if isinstance(found, Mapping) else ""


_WAYS = {
    "claim": lambda press: _Way(inbox.CLAIM, inbox.ClaimItem(press.item), "Claimed", keeps_buttons=True),
    "resolve": lambda press: _Way(inbox.RESOLVE, inbox.ResolveItem(press.item), "Resolved"),
    "retry": lambda press: _Way(inbox.RETRY, inbox.RetryItem(press.item), "Tried again"),
    "answer": lambda press: _Way(inbox.ANSWER, inbox.AnswerItem(press.item, press.value), "Answered"),
    "approve": lambda press: _Way(inbox.APPROVE, inbox.ApproveItem(press.item), "Approved"),
    "reject": lambda press: _Way(inbox.REJECT, inbox.RejectItem(press.item), "Rejected"),
}


Settle = Callable[[Tx, Context], None]
"""Settles the outbox item that a press waited in, in the transaction that carries it out."""


async def press(
    store: Store, pressed: Press, ctx: Context, *, asked: bool = False, settle: Settle | None = None
) -> None:
    """Carry out what the button stands for; whoever may not, or comes too late, is told so and nobody else.

    A press of somebody unknown waits until Slack was asked who they are; with `asked` it was. When this returns, what
    became of it is committed. May be repeated: a press that was heard before does nothing.
    """
    try:
        await store.transact(_press, pressed, ctx, asked=asked, settle=settle)
    except (StoreUnavailable, NotClaimed):
        raise
    except LampError as error:
        await store.transact(_refused, pressed, error.message, ctx, asked=asked, settle=settle)


def _press(tx: Tx, pressed: Press, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    if settle is not None:
        settle(tx, ctx)
    if not asked and not _heard(tx, pressed, ctx):
        return
    who = member_of(tx, pressed.team, pressed.person)
    if who is None and not asked:
        payload = {"team": pressed.team, "person": pressed.person, "press": asdict(pressed)}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SLACK_PRESS, payload, ctx.now))
        return
    if who is None:
        ask_who(tx, pressed.team, pressed.channel, pressed.person, ctx)
        return
    way = _WAYS[pressed.verb](pressed)
    by = changed(ctx, actor=Actor(*who), surface=SURFACE)
    judged(tx, way.operation, way.ask, by)
    said = f": {cut(pressed.value, 500)}" if pressed.verb == "answer" else ""
    _update(tx, pressed, f"{way.told} by {who[0]}{said}", ctx, keeps_buttons=way.keeps_buttons)


def _heard(tx: Tx, pressed: Press, ctx: Context) -> bool:
    return tx.slack.heard(pressed.team, f"press:{pressed.message}:{pressed.person}:{pressed.at}", ctx.now)


def _refused(tx: Tx, pressed: Press, why: str, ctx: Context, *, asked: bool, settle: Settle | None) -> None:
    """Tell the presser; a message about what is settled by now says so, and has no buttons any more."""
    if settle is not None:
        settle(tx, ctx)
    if not asked and not _heard(tx, pressed, ctx):
        return
    whisper(tx, pressed.team, pressed.channel, pressed.person, why, ctx)
    item = tx.inbox.get(pressed.item)
    if item is not None and item.state is not State.OPEN:
        by = f", by {item.settled_by}" if item.settled_by else ""
        _update(tx, pressed, f"Over: {how_settled(item)}{by}", ctx, keeps_buttons=False)


def _update(tx: Tx, pressed: Press, told: str, ctx: Context, *, keeps_buttons: bool) -> None:
    blocks = [dict(one) for one in decided(pressed.blocks, told, keeps_buttons=keeps_buttons)]
    text = cut(f"{pressed.text}\n{plain(told)}", LONGEST_SECTION)
    args = {"channel": pressed.channel, "ts": pressed.message, "text": text, "blocks": blocks}
    call(tx, pressed.team, Method.UPDATE, args, ctx, while_open=pressed.item if keeps_buttons else "")


def is_over(tx: Tx, payload: Mapping[str, Any]) -> bool:
    """Whether a queued call is not to be made any more, because what it was about has been settled since."""
    item = tx.inbox.get(str(payload["while_open"])) if payload.get("while_open") else None
    return item is not None and item.state is not State.OPEN


def whisper(  # noqa: PLR0913  where, to whom, and what
    tx: Tx, team: str, channel: str, person: str, text: str, ctx: Context, *, thread: str = ""
) -> None:
    """Tell one person something that nobody else sees."""
    args = {"channel": channel, "user": person, "text": plain(text), **({"thread_ts": thread} if thread else {})}
    call(tx, team, Method.WHISPER, args, ctx)


# ── who is who ────────────────────────────────────────────────────────────────────────────────────────────────────


def known_by_email(tx: Tx, team: str, person: str, user: Mapping[str, Any], ctx: Context) -> bool:
    """Link a user of Slack by the address that Slack has verified, if a member has it for a name.

    Of anybody else it is noted what they are called there, unless they are linked.
    """
    profile = user.get("profile") if isinstance(user.get("profile"), Mapping) else {}
    assert isinstance(profile, Mapping)  # noqa: S101  as above
    email = str(profile.get("email") or "")
    sound = user.get("is_email_confirmed") is True and not user.get("is_bot") and not user.get("deleted")
    foreign = user.get("team_id") not in {None, team}
    called = cut(str(user.get("real_name") or user.get("name") or ""), LONGEST_NAME)
    if email and sound and not foreign and link_by_email(tx, team, person, email, ctx, called=called):
        return True
    before = tx.slack.person(team, person)
    if called and (before is None or before.member is None):
        code, at = (None, ctx.now) if before is None else (before.code, before.changed_at)
        tx.slack.put_person(Person(team, person, None, "link", code, at, called))
    return False


def ask_who(tx: Tx, team: str, channel: str, person: str, ctx: Context, *, thread: str = "") -> None:
    """Show a code, to that person alone, with which a member says that it is them."""
    code = secrets.token_hex(5).upper()
    before = tx.slack.person(team, person)
    called = "" if before is None else before.name
    tx.slack.put_person(Person(team, person, None, "link", mark_of(code), ctx.now, called))
    minutes = int(CODE_HOLDS.total_seconds() // 60)
    public = "" if ctx.configured is None else ctx.city.api.public_url.rstrip("/")
    page = f" or open {public}/settings/slack/link?code={code}" if public else ""
    told = (
        f"Lamplighter does not know who you are here. Within {minutes} minutes, run `lamp slack link {code}`{page}"
        " as yourself, then do it again."
    )
    whisper(tx, team, channel, person, told, ctx, thread=thread)
