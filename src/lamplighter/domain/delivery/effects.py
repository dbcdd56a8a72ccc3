"""The ledger of side effects: an intent before, a result after, and an honest word where nobody can tell.

A destination that said no took nothing: its intent is deleted, and a later try begins anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.kit.canonical import fingerprint
from lamplighter.kit.errors import Conflict


class EffectState(StrEnum):
    INTENDED = "intended"
    DONE = "done"


@dataclass(frozen=True)
class Effect:
    """`id` is the same for every try. `doubts` counts tries of which nobody knows whether they arrived."""

    id: str
    kind: str
    request: str
    intended_at: datetime
    run: str | None = None
    state: EffectState = EffectState.INTENDED
    tries: int = 1
    doubts: int = 0
    result: Mapping[str, Any] = field(default_factory=dict)
    done_at: datetime | None = None


class EffectChanged(Conflict):
    def __init__(self, effect: Effect) -> None:
        super().__init__(
            f"Side effect {effect.id} was begun with another request.",
            hint="One id stands for one message; give a changed one an id of its own.",
        )


@dataclass(frozen=True)
class Send:
    """Record `effect`, commit, then send."""

    effect: Effect


@dataclass(frozen=True)
class LookUp:
    """An earlier try was cut off between sending and recording: ask the destination whether it arrived."""

    effect: Effect


@dataclass(frozen=True)
class AlreadyDone:
    """Send nothing; the result is this."""

    effect: Effect


@dataclass(frozen=True)
class Found:
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Absent:
    pass


@dataclass(frozen=True)
class CannotAsk:
    """The destination has no way to tell."""


Answer = Found | Absent | CannotAsk


def effect_id(kind: str, run: str, destination: str, state: str) -> str:
    """`notify:<run>:<destination>:<state>`: a run that ends anew, by a resolution, is told anew."""
    return f"{kind}:{run}:{destination}:{state}"


def begin(before: Effect | None, new: Effect) -> Send | LookUp | AlreadyDone:
    """Raises EffectChanged when the id stands for another request."""
    if before is None:
        return Send(new)
    if before.request != new.request:
        raise EffectChanged(before)
    return AlreadyDone(before) if before.state is EffectState.DONE else LookUp(before)


def after_look_up(effect: Effect, answer: Answer, now: datetime) -> Send | AlreadyDone:
    """Where the destination cannot be asked, the effect happens at least once, and the doubt is on record."""
    match answer:
        case Found(result):
            return AlreadyDone(done(effect, result, now))
        case Absent():
            return Send(replace(effect, tries=effect.tries + 1))
        case CannotAsk():
            return Send(replace(effect, tries=effect.tries + 1, doubts=effect.doubts + 1))


def done(effect: Effect, result: Mapping[str, Any], now: datetime) -> Effect:
    return replace(effect, state=EffectState.DONE, result=dict(result), done_at=now)


def request_of(value: Any) -> str:
    """What makes two requests the same."""
    return fingerprint(value)
