"""What people type for an id: a unique beginning or end of it, `last`, `last:AUTOMATION`, an automation's name; and for
an automation of a rig its name without the rig, where only one has it.

A request's field says what it names (`given(..., names="run")`); before an operation is carried out, what was typed is
replaced by the id it means, on every surface. What means nothing is left as it is: the operation says what is wrong.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import UsageError
from lamplighter.store.tx import Tx

Q = TypeVar("Q")

LAST = "last"
AUTOMATION, RIG = "automation", "rig"
SHORTEST = 4
"""So many characters of an id's end are needed; fewer may be its beginning."""
CANDIDATES = 5
BULKS = 1000
"""Among so many of the newest bulk actions one is looked for."""
NEWEST = 1000
"""Among so many of the newest of other kinds."""
SHOWN = 6
"""So much of the end of an id names a candidate, as tables do."""
_FULL = re.compile(r"[a-z]+_[0-9a-z]{26}")
_PART = re.compile(r"(?:[a-z]+_)?[0-9a-z]{1,26}")


class IdAmbiguous(UsageError):
    def __init__(self, text: str, noun: str, candidates: list[str], *, more: bool) -> None:
        told = "; ".join(candidates) + ("; …" if more else "")
        super().__init__(f"`{text}` could be several {noun}s.", hint=f"Type more of the one you mean: {told}.")


def resolved(tx: Tx, ask: Q) -> Q:
    """The request with the ids that its names mean. Raises IdAmbiguous."""
    named = names_of(type(ask))
    if getattr(ask, RIG, None):  # a name beside it is that of the rig's automation
        named = tuple((field, noun) for field, noun in named if noun != AUTOMATION)
    values = {field: getattr(ask, field) for field, _ in named}
    meant = {field: RESOLVERS[noun](tx, values[field]) for field, noun in named if values[field]}
    changed = {field: value for field, value in meant.items() if value != values[field]}
    return replace(ask, **changed) if changed else ask  # type: ignore[type-var]  # every request is a dataclass


def names_of(request: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a request that name something, each with what it names."""
    return _names_of(request)


@lru_cache(maxsize=256)
def _names_of(request: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, one.metadata["names"]) for one in fields(request) if one.metadata.get("names") in RESOLVERS)


def run_id(tx: Tx, text: str) -> str:
    """The run that is meant by its id, a part of it, `last`, `last:AUTOMATION` or an automation's name (its newest)."""
    if _FULL.fullmatch(text):
        return text
    if text == LAST:
        return tx.runs.newest() or text
    automation = text.removeprefix(f"{LAST}:")
    newest = tx.runs.newest(automation=automation) or _newest_in_rigs(tx, text, automation)
    if newest is not None:
        return newest
    part = text.strip().casefold()
    if not _PART.fullmatch(part):
        return text
    kind, _, rest = part.rpartition("_")
    found = tx.runs.beginning(f"run_{rest}", limit=CANDIDATES + 1) if kind in {"", "run"} else []
    if not kind and len(rest) >= SHORTEST:
        found += tx.runs.ending(rest, limit=CANDIDATES + 1)
    return _the_one(text, "run", found, lambda run: _described(tx, run))


def automation_name(tx: Tx, text: str) -> str:
    """The scoped name that is meant: of an automation that the city does not have and only one rig has, that one's."""
    begun = f"{text}:rig:"
    if ":rig:" in text or tx.automations.is_there(text):
        return text
    of_rigs = [row.scoped_name for row in tx.automations.page(after=begun, limit=2)]
    of_rigs = [name for name in of_rigs if name.startswith(begun)]
    if len(of_rigs) != 1 or tx.runs.newest(automation=text) is not None:  # one of the city may be deleted
        return text
    return of_rigs[0]


def _newest_in_rigs(tx: Tx, text: str, automation: str) -> str | None:
    """The newest run of the automation of that name in the only rig that has runs of it. Raises IdAmbiguous."""
    begun = f"{automation}:rig:"
    rows = tx.automations.page(after=begun, limit=CANDIDATES + 1)
    names = [row.scoped_name for row in rows if row.scoped_name.startswith(begun)]
    found = [run for name in names if (run := tx.runs.newest(automation=name)) is not None]
    return _the_one(text, "run", found, lambda run: _described(tx, run)) if found else None


def bead_id(tx: Tx, text: str) -> str:
    """The bead that is meant by its id, the beginning of it, or what follows its prefix."""
    if tx.beads.root_of(text) is not None:
        return text
    return _the_one(text, "bead", tx.beads.like(text.strip().casefold(), limit=CANDIDATES + 1), str)


def matching(text: str, ids: Iterable[str]) -> list[str]:
    """Of these ids, those that begin with the text, or end with it if it is long enough; one that equals it alone."""
    known = list(ids)
    if text in known:
        return [text]
    long_enough = len(text) >= SHORTEST
    return [one for one in known if one.startswith(text) or (long_enough and one.endswith(text))]


def the_one(text: str, noun: str, ids: Iterable[str]) -> str | None:
    """The one id that matches; None if none does. Raises IdAmbiguous."""
    found = _the_one(text, noun, matching(text, ids), str)
    return found if found != text or found in ids else None


def _the_one(text: str, noun: str, found: Iterable[str], describe: Callable[[str], str]) -> str:
    different = sorted(set(found), reverse=True)
    if len(different) > 1:
        told = [describe(one) for one in different[:CANDIDATES]]
        raise IdAmbiguous(text, noun, told, more=len(different) > CANDIDATES)
    return different[0] if different else text


def _described(tx: Tx, run: str) -> str:
    row = tx.runs.get(run)
    return (
        run if row is None else f"{run[-SHOWN:]} ({row.automation}, {row.state.value}, {rfc3339(row.created_at)[:19]}Z)"
    )


def bulk_id(tx: Tx, text: str) -> str:
    """The bulk action that is meant by its id, a part of it, or `last`."""
    if _FULL.fullmatch(text):
        return text
    known = tx.bulk_actions.newest_ids(limit=BULKS)
    if text == LAST:
        return known[0] if known else text
    plain = text.strip().casefold()
    found = matching(plain, known) or [one for one in known if one.removeprefix("blk_").startswith(plain)]
    return _the_one(text, "bulk action", found, str)


def _among(noun: str, newest: Callable[[Tx], Iterable[str]]) -> Callable[[Tx, str], str]:
    """Finds what tables list by its id or a part of it, among the newest of its kind."""

    def resolve(tx: Tx, text: str) -> str:
        part = text.strip().casefold()
        if _FULL.fullmatch(text) or not _PART.fullmatch(part):
            return text
        known = list(newest(tx))
        found = matching(part, known) or [one for one in known if one.partition("_")[2].startswith(part)]
        return _the_one(text, noun, found, str)

    return resolve


def _outbox_items(tx: Tx) -> list[str]:
    return [one.item.id for state in ItemState for one in tx.outbox.page(state, limit=NEWEST)]


RESOLVERS: dict[str, Callable[[Tx, str], str]] = {
    "run": run_id,
    AUTOMATION: automation_name,
    "bead": bead_id,
    "bulk": bulk_id,
    "outbox": _among("outbox item", _outbox_items),
    "entry": _among("entry", lambda tx: [one.id for one in tx.audit.page(limit=NEWEST)]),
    "notice": _among("notice", lambda tx: [one.id for one in tx.notices.page(limit=NEWEST)]),
    "delivery": _among(
        "delivery", lambda tx: [one.id for one in tx.deliveries.page(connection=None, before=None, limit=NEWEST)]
    ),
    "item": _among("inbox item", lambda tx: [one.id for one in tx.inbox.page(limit=NEWEST)]),
}
