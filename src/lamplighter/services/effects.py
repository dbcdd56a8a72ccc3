"""The ledger of side effects: intent recorded before sending, result after; in doubt it asks the destination."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.delivery.effects import (
    AlreadyDone,
    Answer,
    CannotAsk,
    Effect,
    InDoubt,
    LookUp,
    Send,
    after_look_up,
    begin,
    done,
    refused,
    request_of,
)
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Conflict
from lamplighter.store.tx import Store, Tx

LookFor = Callable[[Effect], Awaitable[Answer]]
Sender = Callable[[Effect], Awaitable[Mapping[str, Any]]]


class Refused(Conflict):
    """The destination refused and did nothing; the doubts of earlier tries stay on record, if there are any."""


class Doubtful(Conflict):
    """It may have arrived, as often as it may arrive at all, and nobody can be asked: it is not sent again."""

    def __init__(self, effect: Effect) -> None:
        super().__init__(
            f"It is not known whether it arrived: {effect.doubts + 1} tries had no answer, and there is nobody to ask.",
            hint="It is not sent again unless it turns out that it is not there.",
        )


async def cannot_ask(_effect: Effect) -> Answer:
    return CannotAsk()


@dataclass(frozen=True)
class Ledger:
    store: Store
    clock: Clock

    async def once(
        self, effect: str, kind: str, request: Any, *, run: str | None, send: Sender, look: LookFor = cannot_ask
    ) -> Mapping[str, Any]:
        """Carry out the effect once for all calls with this id, and return its result.

        Raises EffectChanged, Refused, Doubtful, and whatever `send` raises. An error of `send` other than Refused keeps
        the intent, because the effect may have arrived: the next call asks the destination with `look` first. A
        destination that cannot be asked may get the effect more than once, or as often as `look` says.
        """
        new = Effect(effect, kind, request_of(request), self.clock.now(), run)
        step = await self.store.transact(_begin, new)
        if isinstance(step, LookUp):
            found = after_look_up(step.effect, await look(step.effect), self.clock.now())
            if isinstance(found, InDoubt):
                raise Doubtful(found.effect)
            step = found
            await self.store.transact(_put, step.effect)
        if isinstance(step, AlreadyDone):
            return step.effect.result
        try:
            result = await send(step.effect)
        except Refused:
            await self.store.transact(_refused, step.effect)
            raise
        await self.store.transact(_put, done(step.effect, result, self.clock.now()))
        return result


def _begin(tx: Tx, new: Effect) -> Send | LookUp | AlreadyDone:
    step = begin(tx.effects.lock(new.id), new)
    if isinstance(step, Send):
        tx.effects.put(step.effect)
    return step


def _put(tx: Tx, effect: Effect) -> None:
    tx.effects.put(effect)


def _refused(tx: Tx, effect: Effect) -> None:
    left = refused(effect)
    if left is None:
        tx.effects.forget(effect.id)
    else:
        tx.effects.put(left)
