"""The ledger of side effects: an intent is recorded before sending, a result after; unknown outcomes are counted.

When a destination refuses, nothing happened there: the intent is deleted, and a later try starts from the beginning.
Unless an earlier try is in doubt: that one may have arrived all the same, and stays on record.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.kit.canonical import fingerprint
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record


class EffectState(StrEnum):
    INTENDED = "intended"
    DONE = "done"


@record
class Effect:
    """`id` is the same for every try. `doubts` counts tries of which it is unknown whether they arrived."""

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


@record
class Send:
    """Record `effect`, commit, then send."""

    effect: Effect


@record
class LookUp:
    """An earlier try was interrupted before its result was recorded: ask the destination whether it arrived."""

    effect: Effect


@record
class AlreadyDone:
    """Send nothing; `effect` has the result."""

    effect: Effect


@record
class InDoubt:
    """Send nothing: as many tries as may arrive are in doubt, and the destination cannot be asked."""

    effect: Effect


@record
class Found:
    result: Mapping[str, Any]


@record
class Absent:
    pass


@record
class CannotAsk:
    """The destination cannot be asked whether an earlier try arrived.

    `at_most` is how often it may arrive there; None where a receiver tells a repeat from the first by itself.
    """

    at_most: int | None = None


Answer = Found | Absent | CannotAsk


def effect_id(kind: str, run: str, destination: str, state: str) -> str:
    """`notify:<run>:<destination>:<state>`: a run whose end state a resolution changes is notified again."""
    return f"{kind}:{run}:{destination}:{state}"


def begin(before: Effect | None, new: Effect) -> Send | LookUp | AlreadyDone:
    """The first step of a try. Raises EffectChanged when the id was used for another request."""
    if before is None:
        return Send(new)
    if before.request != new.request:
        raise EffectChanged(before)
    return AlreadyDone(before) if before.state is EffectState.DONE else LookUp(before)


def after_look_up(effect: Effect, answer: Answer, now: datetime) -> Send | AlreadyDone | InDoubt:
    """The step after a look-up. If the destination cannot be asked, send again and record the doubt, as long as it
    cannot have arrived too often by that.
    """
    match answer:
        case Found(result):
            return AlreadyDone(done(effect, result, now))
        case Absent():
            return Send(replace(effect, tries=effect.tries + 1))
        case CannotAsk(at_most) if at_most is not None and effect.doubts + 1 >= at_most:
            return InDoubt(effect)
        case CannotAsk():
            return Send(replace(effect, tries=effect.tries + 1, doubts=effect.doubts + 1))


def done(effect: Effect, result: Mapping[str, Any], now: datetime) -> Effect:
    return replace(effect, state=EffectState.DONE, result=dict(result), done_at=now)


def refused(effect: Effect) -> Effect | None:
    """What stays on record of an effect whose last try was refused: its doubts, one of them as the try that is open."""
    return replace(effect, doubts=effect.doubts - 1) if effect.doubts else None


def request_of(value: Any) -> str:
    """A digest of the request; equal digests mean the same request."""
    return fingerprint(value)
