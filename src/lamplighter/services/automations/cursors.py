"""The cursor of an automation: up to where its runs have seen what they look at; moved by whoever names its place."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.cursors import CursorKind, same, written
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.shapes import given
from lamplighter.services.automations.notes import automation_of
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, transaction
from lamplighter.store.cursors import Cursor
from lamplighter.store.tx import Tx

TOOL = "automation_cursor"


@dataclass(frozen=True)
class KeepCursor:
    """Show up to where the runs of an automation have read, or move it with --set. Every run is told it.

    The value that was read must be named to move it: if another run moved it meanwhile, nothing is overwritten.
    """

    name: str | None = given(
        "The automation; inside a run, its own when left out.", default=None, positional=True, names="automation"
    )
    set: str | None = given("Where it is from now on, such as the last id or time that was seen.", default=None)
    expect: str | None = given("Where it is now, as it was read; empty if it has no value yet.", default=None)
    type: CursorKind | None = given(
        "What it is: text, integer or time. As it is now when left out, and text at first.", default=None
    )


@dataclass(frozen=True)
class CursorView:
    """`value` is null, and `version` 0, where there is none yet."""

    automation: str
    value: str | None
    type: CursorKind
    version: int
    written_by: str | None
    written_at: datetime | None


class CursorMoved(Conflict):
    def __init__(self, name: str, present: str | None, expected: str) -> None:
        super().__init__(
            f"The cursor of {name} is {_told(present)}, not {_told(expected or None)}: another run moved it meanwhile.",
            hint="Read it again, see what is still to be done from there, and name that value in `expect`.",
        )


def keep_cursor(tx: Tx, ask: KeepCursor, ctx: Context) -> CursorView:
    """Raises Forbidden for a run that names another automation than its own, CursorMoved, UsageError."""
    automation, name = automation_of(tx, ask.name, ctx, "the cursor")
    found = tx.cursors.get(automation)
    if ask.set is None:
        if ask.expect is not None or ask.type is not None:
            raise UsageError("`expect` and `type` go with `set`.", hint="Name the value it gets.")
        return _view(name, found)
    return _view(name, _move(tx, automation, name, found, ask, ctx))


def _move(tx: Tx, automation: str, name: str, found: Cursor | None, ask: KeepCursor, ctx: Context) -> Cursor:
    if ask.expect is None:
        raise UsageError("`expect` is missing.", hint="Name the value you read; empty if there is none yet.")
    present = None if found is None else found.value
    stands = not ask.expect.strip() if found is None else same(ask.expect, found.value, CursorKind(found.kind))
    if not stands:
        raise CursorMoved(name, present, ask.expect)
    kind = ask.type or (CursorKind.TEXT if found is None else CursorKind(found.kind))
    try:
        value = written(ask.set or "", kind)
    except ValueError as error:
        raise UsageError(f"`set` {error}.", hint=f"The cursor of {name} is of type {kind}.") from error
    made = Cursor(automation, kind.value, value, 1 if found is None else found.version + 1, ctx.actor.name, ctx.now)
    if not tx.cursors.put(made):  # nothing is locked here, as for notes
        raise CursorMoved(name, present, ask.expect)
    payload = {"value": value, "type": kind.value, "version": made.version}
    tx.events.append(ctx.event("automation.cursor_moved", subject=name, message=value[:300], payload=payload))
    return made


def _told(value: str | None) -> str:
    return "not set" if value is None else f"`{value[:80]}`"


def _view(name: str, found: Cursor | None) -> CursorView:
    if found is None:
        return CursorView(name, None, CursorKind.TEXT, 0, None, None)
    return CursorView(
        name, found.value, CursorKind(found.kind), found.version, found.written_by, found.written_at
    )  # fmt: skip


KEEP_CURSOR = transaction(
    "automation.cursor", Verb.KEEP_NOTES, KeepCursor, CursorView, keep_cursor, tool=TOOL,
    http=Http("POST", "/automations/{name}/cursor"), patient=True,
)  # fmt: skip
