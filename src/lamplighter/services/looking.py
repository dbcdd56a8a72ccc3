"""What a person has looked at, and what they keep on top: each person for themselves."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import given
from lamplighter.services.automations.firing import unknown
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.store.looks import Look
from lamplighter.store.tx import Tx

VISIT = timedelta(minutes=30)
"""Who comes back after so long begins a new visit."""
NOTED = timedelta(minutes=1)
"""A later look within so long changes nothing, so that a page that refreshes itself writes little."""
MOST_PINS = 50


@dataclass(frozen=True)
class LookAtHome:
    """Note that you look at the start page, and say when you did so before this visit."""


@dataclass(frozen=True)
class LookView:
    """`before` is when you last looked before this visit; None if this is your first one."""

    before: datetime | None


@dataclass(frozen=True)
class ListPins:
    """The automations that you keep on top."""


@dataclass(frozen=True)
class PinView:
    automation: str


@dataclass(frozen=True)
class PinAutomation:
    """Keep an automation on top of your lists."""

    automation: str = given("Its name; NAME:rig:RIG for one of a rig.", positional=True, names="automation")


@dataclass(frozen=True)
class UnpinAutomation:
    """Keep an automation on top no longer."""

    automation: str = given("Its name; NAME:rig:RIG for one of a rig.", positional=True, names="automation")


class TooManyPins(Conflict):
    def __init__(self) -> None:
        hint = "`lamp automation unpin NAME` takes one off."
        super().__init__(f"You keep {MOST_PINS} automations on top already.", hint=hint)


def look(tx: Tx, _ask: LookAtHome, ctx: Context) -> LookView:
    known = tx.looks.get(ctx.actor.name)
    after = looked(known, ctx.now)
    if after is not known:
        tx.looks.put(ctx.actor.name, after)
    return LookView(after.before)


def looked(known: Look | None, now: datetime) -> Look:
    """A visit lasts as long as its looks follow each other; the time before it is kept until it is over."""
    if known is None:
        return Look(now, None)
    if now - known.at >= VISIT:
        return Look(now, known.at)
    return Look(now, known.before) if now - known.at >= NOTED else known


def pins(tx: Tx, _ask: ListPins, ctx: Context) -> list[PinView]:
    return [PinView(name) for name in tx.looks.pins(ctx.actor.name)]


def pin(tx: Tx, ask: PinAutomation, ctx: Context) -> PinView:
    """Raises AutomationUnknown, TooManyPins."""
    if not tx.automations.is_there(ask.automation):
        raise unknown(tx, ask.automation)
    kept = tx.looks.pins(ctx.actor.name)
    if ask.automation not in kept and len(kept) >= MOST_PINS:
        raise TooManyPins
    tx.looks.pin(ctx.actor.name, ask.automation)
    return PinView(ask.automation)


def unpin(tx: Tx, ask: UnpinAutomation, ctx: Context) -> PinView:
    tx.looks.unpin(ctx.actor.name, ask.automation)
    return PinView(ask.automation)


LOOK = transaction(
    "inbox.look", Verb.READ, LookAtHome, LookView, look, http=Http("POST", "/inbox/look"), repeatable=True
)
PINS = read("automation.pins", Verb.READ, ListPins, list[PinView], pins, http=Http("GET", "/pins"))
PIN = transaction(
    "automation.pin",
    Verb.READ,
    PinAutomation,
    PinView,
    pin,
    http=Http("POST", "/automations/{automation}/pin"),
    repeatable=True,
)
UNPIN = transaction(
    "automation.unpin",
    Verb.READ,
    UnpinAutomation,
    PinView,
    unpin,
    http=Http("POST", "/automations/{automation}/unpin"),
    repeatable=True,
)
