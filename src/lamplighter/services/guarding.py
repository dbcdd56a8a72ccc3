"""What a client can ask for with a request: that it has its effect once, and only on the version it has seen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lamplighter.kit.canonical import canonical
from lamplighter.kit.errors import Conflict, LampError, UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.services.context import Context
from lamplighter.services.operation import Kind, Operation, judged, meant_by, permit
from lamplighter.store.idempotency import Slot
from lamplighter.store.tx import Tx

LONGEST_KEY = 255


class KeyReused(LampError):
    def __init__(self, key: str) -> None:
        super().__init__(
            f"The key `{key}` was used for a request with another content.",
            hint="Take a new key for each thing that is asked for, and the same one only to ask again.",
        )


class KeyNotTaken(UsageError):
    def __init__(self, operation: str, why: str) -> None:
        super().__init__(f"{operation} takes no Idempotency-Key: {why}.", hint="Leave the header out.")


class VersionChanged(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "It has changed since it was read; nothing was done.",
            hint="Read it again, look at the change, and ask with its new ETag.",
        )


@dataclass(frozen=True)
class Guard:
    """`key` is for one effect only, `versions` are those of which one must still hold; `*` stands for any."""

    key: str | None = None
    asked: str = ""
    """A hash of the request, to tell the same from another."""
    versions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """`answer` is that of the operation, or `again` its JSON as it was answered before."""

    answer: Any
    version: str | None = None
    again: Any = None
    is_repeated: bool = False


NO_GUARD = Guard()


def hash_of(request: Mapping[str, Any]) -> str:
    return sha256(canonical(request).encode()).hexdigest()


def takes_key(operation: Operation[Any, Any]) -> bool:
    """Whether the operation's effect and the answer under its key can be one transaction."""
    return operation.kind is Kind.TRANSACTION and operation.settle is None and not operation.is_secret


def check_guard(operation: Operation[Any, Any], guard: Guard, *, outside: bool) -> None:
    """Raises UsageError for what cannot be promised here."""
    if guard.key is not None:
        if not 0 < len(guard.key) <= LONGEST_KEY:
            raise UsageError(f"A key has 1 to {LONGEST_KEY} characters.", hint="A random one of 20 is enough.")
        if not takes_key(operation) or outside:
            why = "it changes more than the city's store"
            if operation.settle is not None or operation.is_secret:
                why = "its answer is kept nowhere" if operation.is_secret else "it can be repeated as it is"
            raise KeyNotTaken(operation.name, why)
    if guard.versions and (operation.version is None or operation.kind is not Kind.TRANSACTION or outside):
        raise UsageError(f"{operation.name} takes no If-Match.", hint="Leave the header out.")


def guarded(tx: Tx, operation: Operation[Any, Any], ask: Any, ctx: Context, guard: Guard) -> Outcome:
    """As `judged`, with what the client asked for. Raises KeyReused, VersionChanged, and what `judged` raises."""
    slot = None if guard.key is None else Slot(ctx.actor.name, operation.name, guard.key)
    if slot is not None:
        permit(tx, operation.verb, ctx, locks=True)
        kept = tx.idempotency.take(slot, guard.asked, ctx.now)
        if kept is not None:
            if kept.asked != guard.asked:
                raise KeyReused(slot.key)
            return Outcome(None, again=json.loads(kept.answer), is_repeated=True)
        tx.idempotency.prune(ctx.now)
    if guard.versions and operation.version is not None:
        permit(tx, operation.verb, ctx, locks=True)
        held = operation.version(tx, meant_by(tx, operation, ask), lock=True)
        if "*" not in guard.versions and held not in guard.versions:
            raise VersionChanged
    answer = judged(tx, operation, ask, ctx)
    if slot is not None:
        tx.idempotency.keep(slot, json.dumps(to_json(answer)))
    return Outcome(answer)


def versioned(tx: Tx, operation: Operation[Any, Any], ask: Any, ctx: Context) -> Outcome:
    """As `judged` for a read, with the version of what is read."""
    answer = judged(tx, operation, ask, ctx)
    if operation.version is None:
        return Outcome(answer)
    return Outcome(answer, operation.version(tx, meant_by(tx, operation, ask), lock=False))
