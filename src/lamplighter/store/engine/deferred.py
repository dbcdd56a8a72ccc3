"""Writes whose outcome nobody waits for: held back until something is read or committed, then sent together.

A server is asked as often as there are kinds of statement, not as there are rows: the rows of one kind go as one JSON
list. Measured on one machine, a row costs a tenth of a statement of its own.
"""

import json
from collections.abc import Mapping
from typing import Any, Self

from lamplighter.kit.errors import Conflict
from lamplighter.store.engine.dialect import PARAMETER

EACH = "{each}"
SHARED = "city"
"""The parameter that all rows of a statement have in common; it is given beside them."""
encode = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps with separators makes one each time


def as_json(value: Any) -> Any:
    """A value that is kept as JSON text. Objects and lists go on as they are: many rows are encoded in one go."""
    return value if value is None or isinstance(value, dict | list) else encode(value)


class Write(str):
    """A statement that writes one row, and that can be given many: `{each}` marks where their values come from.

    `whole` and `real` name its parameters that are numbers; `key` the one that tells rows apart, where two writes of
    one row must not share a statement; `must` says that the row is there: anything else means that another transaction
    was faster; `first` that it makes a row which others refer to, and refers to none that waits: it is sent first.
    `json` names parameters that are kept as JSON text: they are given as `as_json` has them, and encoded when they are
    sent.
    """

    __slots__ = ("first", "json", "key", "must", "real", "whole")

    whole: frozenset[str]
    real: frozenset[str]
    json: tuple[str, ...]
    key: str | None
    must: bool
    first: bool

    def __new__(  # noqa: PLR0913  all that is to be known of a statement, once for each of them
        cls,
        sql: str,
        *,
        whole: str = "",
        real: str = "",
        json: str = "",
        key: str | None = None,
        must: bool = True,
        first: bool = False,
    ) -> Self:
        if EACH not in sql:
            raise ValueError(f"no {EACH} in {sql}")
        made = super().__new__(cls, sql)
        made.whole, made.real = frozenset(whole.split()), frozenset(real.split())
        made.key, made.must, made.first = key, must, first
        made.json = tuple(json.split())
        return made

    def encoded(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """For a row of its own: what is kept as JSON, as text."""
        if not self.json:
            return params
        texts = {name: encode(params[name]) for name in self.json if isinstance(params[name], dict | list)}
        return {**params, **texts} if texts else params

    def for_many(self) -> str:
        """The statement for all rows of the JSON list `:rows`; values are renamed, for columns have their names.

        `OFFSET 0` keeps what they have in common from being known beforehand: a server that knows it finds all rows of
        the city first, and takes from them those that are listed.
        """
        names = [name for name in dict.fromkeys(PARAMETER.findall(self)) if name != SHARED]
        typed = ", ".join(f"{name} {self._type(name)}" for name in names)
        renamed = ", ".join(f"{name} AS given_{name}" for name in names)
        given = f"""
            FROM (SELECT CAST(:{SHARED} AS text) AS given_{SHARED}, {renamed}
                FROM json_to_recordset(CAST(:rows AS json)) AS listed ({typed}) OFFSET 0) AS given"""
        return PARAMETER.sub(r"given.given_\1", self).replace(EACH, given)

    def _type(self, name: str) -> str:
        return "bigint" if name in self.whole else "double precision" if name in self.real else "text"


class NotAsExpected(Conflict):
    """A write that was held back changed no row, or its row twice: the transaction must be done anew, step by step."""

    def __init__(self, sql: str) -> None:
        super().__init__(f"A row was changed by another process: {' '.join(sql.split())[:80]} …", hint="Try again.")


class DeferredWrites:
    """What waits to be sent, by statement, in the order in which the statements came first."""

    __slots__ = ("_city", "_keys", "_rows")

    def __init__(self) -> None:
        self._city = ""
        self._rows: dict[Write, list[Mapping[str, Any]]] = {}
        self._keys: dict[Write, set[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, write: Write, city: str, params: Mapping[str, Any]) -> bool:
        """False where it may not be sent together with what waits."""
        if city != self._city:
            if self._rows:
                return False
            self._city = city
        rows = self._rows.get(write)
        if rows is None:
            rows = self._rows[write] = []
            self._keys[write] = set()
        if write.key is not None:
            keys, key = self._keys[write], params[write.key]
            if key in keys:
                return False
            keys.add(key)
        rows.append(params)
        return True

    def take(self) -> tuple[str, list[tuple[Write, list[Mapping[str, Any]]]]]:
        """Whose rows they are, and the rows of each statement."""
        rows, self._rows = self._rows, {}
        self._keys = {}
        return self._city, sorted(rows.items(), key=lambda held: not held[0].first)
