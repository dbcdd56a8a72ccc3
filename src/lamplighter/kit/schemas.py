"""JSON Schema 2020-12 of our own types, as `kit/shapes.py` reads and writes them, with named parts in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from lamplighter.kit.shapes import hints_of, key_of

Schema = dict[str, Any]
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", timedelta: "number", NoneType: "null"}
WHERE = "#/components/schemas/"


class Schemas:
    """Collects the schema of each dataclass it meets under the class's name; `named` has them all."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}
        self._kinds: dict[str, Any] = {}

    def of(self, kind: Any) -> Schema:  # noqa: PLR0911  a table of types
        """The schema of a value as it is written. Raises ValueError for two classes of one name."""
        while hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        origin = get_origin(kind)
        if kind is Any:
            return {}
        if origin in (Union, UnionType):
            return _either([self.of(one) for one in get_args(kind)])
        if is_dataclass(kind):
            return self._reference(kind)
        if origin is not None and issubclass(origin, Mapping):
            inner = self.of((get_args(kind) or (str, Any))[1])
            return {"type": "object", "additionalProperties": inner or True}
        if origin is not None and issubclass(origin, Sequence | frozenset | set):
            return {"type": "array", "items": self.of((get_args(kind) or (Any,))[0])}
        if kind is datetime:
            return {"type": "string", "format": "date-time"}
        if kind is date:
            return {"type": "string", "format": "date"}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"type": "string", "enum": [one.value for one in kind]}
        return {"type": _NAMES.get(kind, "string")}

    def _reference(self, kind: Any) -> Schema:
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            raise ValueError(f"two classes are called {name}: {kind} and {self._kinds[name]}")
        if name not in self.named:
            self.named[name] = {}  # it may contain itself
            self.named[name] = self._record(kind)
        return {"$ref": WHERE + name}

    def _record(self, kind: Any) -> Schema:
        """All keys are always written."""
        shown = [one for one in fields(kind) if not one.metadata.get("whole")]
        found = {key_of(one): self.field(kind, one) for one in shown}
        made: Schema = {"type": "object", "properties": found, "required": list(found)}
        own = kind.__doc__ or ""
        if own and not own.startswith(f"{kind.__name__}("):
            made["description"] = " ".join(own.split())
        if len(shown) < len(fields(kind)):
            made["additionalProperties"] = True
        return made

    def field(self, kind: Any, one: "Field[Any]") -> Schema:
        found = dict(self.of(hints_of(kind)[one.name]))
        if one.metadata.get("help"):
            found["description"] = one.metadata["help"]
        return found

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

    def taken(self, kind: Any, one: "Field[Any]") -> Schema:
        """The schema of a field as it is read: with its bounds and its default."""
        found = self.field(kind, one)
        bounds = {"minimum": one.metadata.get("least"), "maximum": one.metadata.get("most")}
        found |= {key: bound for key, bound in bounds.items() if bound is not None}
        if one.default is not MISSING and isinstance(one.default, (str, int, float, bool)):
            found["default"] = one.default.value if isinstance(one.default, Enum) else one.default
        return found


def is_needed(one: "Field[Any]") -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _either(found: Sequence[Schema]) -> Schema:
    """One of these; a type of one word takes `null` into its list of types."""
    others = [one for one in found if one != {"type": "null"}]
    if len(others) == len(found):
        return {"anyOf": list(found)}
    if len(others) == 1 and isinstance(others[0].get("type"), str):
        made = others[0] | {"type": [others[0]["type"], "null"]}
        return made | {"enum": [*made["enum"], None]} if "enum" in made else made
    return {} if {} in others else {"anyOf": [*others, {"type": "null"}]}
