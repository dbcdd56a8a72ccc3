"""Where a store is: the city's own SQLite file, or a PostgreSQL database by its URL."""

import re
from pathlib import Path
from typing import assert_never

from lamplighter.kit.errors import UsageError
from lamplighter.kit.masking import masked
from lamplighter.kit.records import record
from lamplighter.store import engine
from lamplighter.store.engine import Database, Datagrams, DirectDatabase, Migration, Proofs, Publisher
from lamplighter.store.stores import CityDirect, CityStore
from lamplighter.store.tx import Store, Tx


@record
class SqliteUrl:
    path: Path
    runtime: Path
    """The city's `.gc` directory, which holds the wake-up sockets and the proofs of life."""

    def __str__(self) -> str:
        return str(self.path)


@record
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


def open_database(place: Place) -> Database:
    """The database that several cities share; `open_store` opens the store of each of them on it."""
    match place:
        case SqliteUrl(path):
            return engine.SqliteDatabase(path, Tx)
        case PostgresUrl(url):
            _need_psycopg()
            return engine.PostgresDatabase(url, Tx)
        case _:
            assert_never(place)


def open_store(place: Place, city: str, wakes: Publisher, *, database: Database | None = None) -> Store:
    """The city's store on `database`, which stays open when the store is closed; without one, on its own."""
    datagrams = datagrams_of(place) if isinstance(place, SqliteUrl) else None
    return CityStore(database or open_database(place), city, wakes, datagrams=datagrams, owns=database is None)


def open_direct(place: Place, city: str, *, beside: CityDirect | None = None) -> CityDirect:
    """`beside` is a store on the same database: the new one uses its connection, and does not close it."""
    database = _open_direct(place) if beside is None else beside.database
    datagrams = datagrams_of(place) if isinstance(place, SqliteUrl) else None
    return CityDirect(database, city, datagrams=datagrams, owns=beside is None)


def _open_direct(place: Place) -> DirectDatabase:
    match place:
        case SqliteUrl(path):
            return engine.SqliteDirect(path, Tx)
        case PostgresUrl(url):
            _need_psycopg()
            return engine.PostgresDirect(url, Tx)
        case _:
            assert_never(place)


def file_of(store: Store) -> "engine.SqliteDatabase | None":
    """The database file that the store is in; None on PostgreSQL."""
    database = store.database if isinstance(store, CityStore) else None
    return database if isinstance(database, engine.SqliteDatabase) else None


def open_death_watch(place: Place) -> "engine.PostgresDeathWatch | None":
    return engine.PostgresDeathWatch(place.url) if isinstance(place, PostgresUrl) else None


def open_proofs(place: Place) -> Proofs:
    match place:
        case SqliteUrl():
            return engine.FileProofs(place.runtime / "owners")
        case PostgresUrl(url):
            _need_psycopg()
            return engine.PostgresProofs(url)
        case _:
            assert_never(place)


def migrate(place: Place, *, make: bool = True) -> list[Migration]:
    """Bring the database to this program's schema. Without `make`, raises StoreLost for a missing or empty SQLite file.

    A new URL points to an empty database on a server, so that one gets the schema either way.
    """
    match place:
        case SqliteUrl(path):
            return engine.migrate_sqlite(path, make=make)
        case PostgresUrl(url):
            _need_psycopg()
            return engine.migrate_postgres(url)
        case _:
            assert_never(place)


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UsageError(
            "PostgreSQL needs the `postgres` extra.", hint="Install it with: pip install 'lamplighter[postgres]'"
        ) from None
