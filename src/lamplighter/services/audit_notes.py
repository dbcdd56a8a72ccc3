"""What is noted about a change that a person asked for."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lamplighter.kit.masking import MASK, is_secret, masked
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import to_json
from lamplighter.services.context import Context
from lamplighter.store.audit import AuditRow
from lamplighter.store.tx import Tx

LONGEST_TEXT = 500
LONGEST_LIST = 50


def note(tx: Tx, operation: str, ask: Any, ctx: Context, cities: Collection[str] = ()) -> None:
    """`cities` are those whose record tells of it too, with the name of this one."""
    asked = shown(ask)
    actor = ctx.actor
    row = AuditRow(
        ctx.ids.make("adt"), ctx.now, actor.name, actor.token, ctx.surface, operation, _object(asked), asked, ctx.bulk
    )
    tx.audit.add(row)
    others = sorted(set(cities) - {tx.city})
    here = tx.cities.find() if others else None
    for other in others:
        Tx(tx.db, other).audit.add(changed(row, asked_in=tx.city if here is None else here.name))


def shown(ask: Any) -> dict[str, Any]:
    """The request as JSON, as it may be read by others; what was left out is left out."""
    if not is_dataclass(ask):
        return {}
    given_keys = {one.name: getattr(ask, one.name) for one in fields(ask)}
    return {
        name: _plain(name, to_json(value)) for name, value in given_keys.items() if value not in (None, (), "", {}, [])
    }


def _plain(name: str, value: Any) -> Any:
    if is_secret(name) and isinstance(value, str):
        return MASK
    match value:
        case str():
            return masked(value) if len(value) <= LONGEST_TEXT else masked(value[:LONGEST_TEXT]) + "…"
        case dict():
            return {key: _plain(f"{name}.{key}", one) for key, one in value.items()}
        case list():
            left = len(value) - LONGEST_LIST
            told = [_plain(name, one) for one in value[:LONGEST_LIST]]
            return [*told, f"and {left} more"] if left > 0 else told
        case _:
            return value


def _object(asked: Mapping[str, Any]) -> str | None:
    for name in ("run", "bulk", "bead", "message", "name", "member", "token", "title", "type"):
        if isinstance(asked.get(name), str):
            return str(asked[name])
    body = asked.get("body")
    return str(body["name"]) if isinstance(body, Mapping) and "name" in body else None
