"""The tools for beads: find work, claim it, change it, close it."""

from collections.abc import Callable
from typing import Any

from lamplighter.domain.access import Caller, Verb
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, BeadStatus, NewBead
from lamplighter.kit.errors import UsageError
from lamplighter.mcp.arguments import Arguments
from lamplighter.mcp.schemas import Schema, arguments, free, number, one_of, text, texts
from lamplighter.ports.beads import BeadStore

Call = Callable[[Arguments, Caller], Callable[[BeadStore], Any]]
Row = tuple[str, str, Schema, Verb, Call]


def _create(args: Arguments, caller: Caller) -> Callable[[BeadStore], Any]:
    new = NewBead(
        title=args.need("title"),
        type=args.text("type") or "task",
        labels=args.texts("labels"),
        assignee=args.text("assignee"),
        sender=caller.actor,
        parent=args.text("parent"),
        needs=args.texts("needs"),
        description=args.text("description") or "",
        metadata=args.pairs("metadata"),
    )
    rig = args.text("rig")
    args.check()
    return lambda beads: beads.create(new, rig=rig).as_json()


def _get(args: Arguments, _caller: Caller) -> Callable[[BeadStore], Any]:
    bead = args.need("id")
    args.check()
    return lambda beads: beads.get(bead).as_json() | {"children": [one.id for one in beads.children(bead)]}


def _list(args: Arguments, _caller: Caller) -> Callable[[BeadStore], Any]:
    wanted = BeadFilter(
        status=_status(args.text("status")),
        type=args.text("type"),
        label=args.text("label"),
        assignee=args.text("assignee"),
        parent=args.text("parent"),
    )
    limit = args.limit()
    args.check()
    return lambda beads: _shown(beads.matching(wanted, limit=limit))


def _ready(args: Arguments, _caller: Caller) -> Callable[[BeadStore], Any]:
    label, assignee, limit = args.text("label"), args.text("assignee"), args.limit()
    args.check()
    return lambda beads: _shown(beads.ready(label=label, assignee=assignee, limit=limit))


def _claim(args: Arguments, caller: Caller) -> Callable[[BeadStore], Any]:
    bead, assignee = args.need("id"), args.text("assignee") or caller.actor
    args.check()
    return lambda beads: beads.claim(bead, assignee).as_json()


def _update(args: Arguments, _caller: Caller) -> Callable[[BeadStore], Any]:
    bead = args.need("id")
    wanted = BeadChange(
        title=args.text("title"),
        description=args.text("description"),
        assignee=args.text("assignee"),
        parent=args.text("parent"),
        status=_status(args.text("status")),
        type=args.text("type"),
        add_labels=args.texts("add_labels"),
        remove_labels=args.texts("remove_labels"),
        add_needs=args.texts("add_needs"),
        remove_needs=args.texts("remove_needs"),
        metadata=args.pairs("metadata"),
    )
    args.check()
    return lambda beads: beads.change(bead, wanted).as_json()


def _close(args: Arguments, _caller: Caller) -> Callable[[BeadStore], Any]:
    bead = args.need("id")
    args.check()
    return lambda beads: beads.close(bead).as_json()


def _shown(found: Any) -> dict[str, Any]:
    beads: list[Bead] = list(found)
    return {"beads": [bead.as_json() for bead in beads]}


def _status(given: str | None) -> BeadStatus | None:
    if given is None:
        return None
    try:
        return BeadStatus(given)
    except ValueError:
        raise UsageError(f"`{given}` is not a status.", hint=f"One of {', '.join(BeadStatus)}.") from None


_ID = text("The bead's id, such as sf-4k2.")
_STATUS = one_of("Its status.", *BeadStatus)

ROWS: tuple[Row, ...] = (
    (
        "bead_create", "Write down a unit of work.",
        arguments(
            {"title": text("One line."), "description": text("All that is known."), "type": text("task when left out."),
             "labels": texts("Such as pool:coder."), "assignee": text("Who is to do it."), "parent": _ID,
             "needs": texts("Beads that must be closed first."), "rig": text("The rig it belongs to."),
             "metadata": free("Further texts by name.")},
            "title",
        ),
        Verb.WRITE, _create,
    ),
    ("bead_get", "One bead with its children.", arguments({"id": _ID}, "id"), Verb.READ, _get),
    (
        "bead_list", "Beads, newest first; every condition given must hold.",
        arguments(
            {"status": _STATUS, "type": text("Its type."), "label": text("A label it has."),
             "assignee": text("Whose it is."), "parent": _ID, "limit": number("At most so many; 50 when left out.")}
        ),
        Verb.READ, _list,
    ),
    (
        "bead_ready", "Work that can be done now, oldest first.",
        arguments(
            {"label": text("A label it has."), "assignee": text("Whose it is."), "limit": number("At most so many.")}
        ),
        Verb.READ, _ready,
    ),
    (
        "bead_claim", "Take a bead; of many claimants one wins.",
        arguments({"id": _ID, "assignee": text("For whom; yourself when left out.")}, "id"),
        Verb.WRITE, _claim,
    ),
    (
        "bead_update", "Change what is named; empty text clears an assignee or a parent. Closing goes by bead_close.",
        arguments(
            {"id": _ID, "title": text("One line."), "description": text("All that is known."), "status": _STATUS,
             "type": text("Its type."), "assignee": text("Whose it is."), "parent": _ID,
             "add_labels": texts("Labels to add."), "remove_labels": texts("Labels to take away."),
             "add_needs": texts("Beads it shall wait for."), "remove_needs": texts("Beads it need not wait for."),
             "metadata": free("Texts to set by name.")},
            "id",
        ),
        Verb.WRITE, _update,
    ),
    ("bead_close", "Say that a bead is done; may be repeated.", arguments({"id": _ID}, "id"), Verb.WRITE, _close),
)  # fmt: skip
