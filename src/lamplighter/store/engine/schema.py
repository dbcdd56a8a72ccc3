"""Which schema a database has, and whether it fits this program: checked at the start and again while it runs."""

from typing import NamedTuple

from lamplighter.store.engine.db import Db
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


def migrations(dialect: str) -> list[Migration]:
    """Every migration shipped for `dialect`, in order; a file's first line names its `oldest`, as in Level."""
    from importlib.resources import files

    found = []
    for entry in files("lamplighter.store").joinpath("migrations").iterdir():
        stem, _, ending = entry.name.partition(".")
        if ending == f"{dialect}.sql":
            number, _, name = stem.partition("_")
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(int(number), name, _oldest(text), text))
    return sorted(found)


def _oldest(text: str) -> int:
    first = text.partition("\n")[0]
    return int(first.removeprefix("-- oldest:").strip())


# The schema this program is written for. A constant, so that opening a store need not read the migrations; a test
# checks that it equals the last one shipped.
PROGRAM = 7


class SchemaGuard:
    """Refuses work on a database that this program is too old or too new for; cheap enough to ask every time."""

    def __init__(self, where: str, db: Db) -> None:
        self._where = where
        self._db = db

    def check(self) -> None:
        row = self._db.row(READ_LEVEL, {})
        if row is None or row["version"] < PROGRAM:
            raise StoreOld(self._where, 0 if row is None else row["version"], PROGRAM)
        if row["oldest"] > PROGRAM:
            raise StoreNewer(self._where, row["version"], row["oldest"], PROGRAM)
