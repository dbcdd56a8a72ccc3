"""One connection as repositories see it: named parameters in, rows by column name out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:  # a command that only reads needs neither
    from lamplighter.store.engine.deferred import Write
    from lamplighter.store.engine.dialect import Dialect
    from lamplighter.store.engine.hints import Hints

Params = Mapping[str, Any]
Row = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


class Db(Protocol):
    dialect: "Dialect"
    hints: "Hints"

    def rows(self, sql: str, params: Params) -> list[Row]: ...

    def row(self, sql: str, params: Params) -> Row | None: ...

    def execute(self, sql: str, params: Params) -> int:
        """How many rows the statement changed."""
        ...

    def write(self, write: "Write", city: str, params: Params) -> bool:
        """Write one row of that city; False when no row was written.

        On PostgreSQL the write is held back until the next read or the commit, and True is an assumption until then. If
        it proves wrong, the whole transaction function is run again with every write sent at once.
        """
        ...

    def write_new(self, write: "Write", city: str, rows: Sequence[Params]) -> set[Any]:
        """Write these rows of one city at once; the keys of those written, while the others were there already.

        `write` has a key, and ends with `ON CONFLICT DO NOTHING`.
        """
        ...

    def execute_many(self, sql: str, params: list[Params]) -> None: ...


def stamp(at: datetime) -> int:
    """Times are kept as microseconds since 1970 in UTC on both databases: exact, ordered, and the same arithmetic."""
    return (at - _EPOCH) // _MICRO


def stamp_or_none(at: datetime | None) -> int | None:
    return None if at is None else stamp(at)


def instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def instant_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)
