"""Which schema a database has, and whether it fits this program: checked at the start and again while it runs."""

from typing import NamedTuple

from lamplighter.store.engine.db import Db, Row
from lamplighter.store.errors import StoreNewer, StoreOld

READ_LEVEL = "SELECT version, oldest FROM schema_level"


class Level(NamedTuple):
    version: int
    """The last migration applied."""
    oldest: int
    """The lowest schema a program may be written for and still work on this database."""


class Migration(NamedTuple):
    version: int
    name: str
    oldest: int
    sql: str


# The schema this program is written for. A constant, so that opening a store need not read the migrations; a test
# checks that it equals the last one shipped.
PROGRAM = 30


class SchemaGuard:
    """Refuses work on a database that this program is too old or too new for; cheap enough to ask every time."""

    def __init__(self, where: str, db: Db) -> None:
        self._where = where
        self._db = db

    def check(self) -> None:
        row = self._db.row(READ_LEVEL, {})
        if fits(row):
            return
        if row is None or row["version"] < PROGRAM:
            raise StoreOld(self._where, 0 if row is None else row["version"], PROGRAM)
        raise StoreNewer(self._where, row["version"], row["oldest"], PROGRAM)


def fits(level: Row | None) -> bool:
    """Whether this program may work on a database with that row of READ_LEVEL."""
    return level is not None and bool(level["version"] >= PROGRAM >= level["oldest"])
