"""Where a store is: the city's own SQLite file, or a PostgreSQL database by its URL."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from lamplighter.kit.errors import UsageError
from lamplighter.kit.masking import masked
from lamplighter.store.engine.datagrams import Datagrams
from lamplighter.store.engine.liveness import FileProofs, PostgresProofs, Proofs
from lamplighter.store.engine.schema import Migration
from lamplighter.store.tx import DirectStore, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.engine.wakes import Wakes  # imports asyncio, which commands do not need


@dataclass(frozen=True)
class SqliteUrl:
    path: Path
    runtime: Path
    """The city's `.gc` directory, which holds the wake-up sockets and the proofs of life."""

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class PostgresUrl:
    url: str
    runtime: Path

    def __str__(self) -> str:
        return masked(self.url)


Place = SqliteUrl | PostgresUrl


def parse_store_url(url: str, runtime: Path) -> Place:
    """`""` is the file in the city; `sqlite:PATH` another file; `postgresql://…` a server. Else raises UsageError."""
    if not url:
        return SqliteUrl(runtime / "lamp.db", runtime)
    scheme, _, rest = url.partition(":")
    match scheme:
        case "sqlite":
            path = Path(re.sub("^/{2,}", "/", rest) if rest.startswith("///") else rest.removeprefix("//"))
            return SqliteUrl(path if path.is_absolute() else runtime.parent / path, runtime)
        case "postgresql" | "postgres":
            return PostgresUrl(url, runtime)
        case _:
            raise UsageError(
                f"[store] url: `{masked(url)}` names no store we know.",
                hint="Leave it out for SQLite inside the city, or write postgresql://user@host/database.",
            )


def datagrams_of(place: Place) -> Datagrams:
    return Datagrams(place.runtime / "wake")


def open_store(place: Place, city: str, wakes: "Wakes") -> Store:
    match place:
        case SqliteUrl(path):
            from lamplighter.store.engine.sqlite import SqliteStore

            return SqliteStore(path, city, wakes=wakes, datagrams=datagrams_of(place))
        case PostgresUrl(url):
            _need_psycopg()
            from lamplighter.store.engine.postgres import PostgresStore

            return PostgresStore(url, city, wakes=wakes)
        case _:
            assert_never(place)


def open_direct(place: Place, city: str) -> DirectStore:
    match place:
        case SqliteUrl(path):
            from lamplighter.store.engine.sqlite_direct import SqliteDirect

            return SqliteDirect(path, city, datagrams=datagrams_of(place))
        case PostgresUrl(url):
            _need_psycopg()
            from lamplighter.store.engine.postgres import PostgresDirect

            return PostgresDirect(url, city)
        case _:
            assert_never(place)


def open_proofs(place: Place) -> Proofs:
    match place:
        case SqliteUrl():
            return FileProofs(place.runtime / "owners")
        case PostgresUrl(url):
            _need_psycopg()
            return PostgresProofs(url)
        case _:
            assert_never(place)


def migrate(place: Place, *, make: bool = True) -> list[Migration]:
    """Bring the database to this program's schema. Without `make`, raises StoreLost for a missing or empty SQLite file.

    A new URL points to an empty database on a server, so that one gets the schema either way.
    """
    from lamplighter.store.engine.migrate import migrate_postgres, migrate_sqlite

    match place:
        case SqliteUrl(path):
            return migrate_sqlite(path, make=make)
        case PostgresUrl(url):
            _need_psycopg()
            return migrate_postgres(url)
        case _:
            assert_never(place)


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UsageError(
            "PostgreSQL needs the `postgres` extra.", hint="Install it with: pip install 'lamplighter[postgres]'"
        ) from None
