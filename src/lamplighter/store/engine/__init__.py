"""What lies below the repositories: connections, threads, groups of transactions, migrations, wake-ups, proofs of life.

Whoever is outside imports names from here only; `lint-imports` checks it. A name is loaded when it is first asked for,
because a short command uses few of them, and must not load an event loop or a driver that it does not need.

The engine knows no repository and no table but `events`, whose rows it numbers: it runs functions that get a `Scope`,
which the store makes.
"""

from importlib import import_module
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.engine.batching import Refused as Refused
    from lamplighter.store.engine.batching import batched as batched
    from lamplighter.store.engine.batching import one as one
    from lamplighter.store.engine.city_tables import CityTables as CityTables
    from lamplighter.store.engine.city_tables import Counted as Counted
    from lamplighter.store.engine.city_tables import Digest as Digest
    from lamplighter.store.engine.city_tables import Table as Table
    from lamplighter.store.engine.city_tables import shared_columns as shared_columns
    from lamplighter.store.engine.city_wakes import Publisher as Publisher
    from lamplighter.store.engine.city_wakes import WithDatagrams as WithDatagrams
    from lamplighter.store.engine.database import Database as Database
    from lamplighter.store.engine.database import DirectDatabase as DirectDatabase
    from lamplighter.store.engine.datagrams import Datagrams as Datagrams
    from lamplighter.store.engine.datagrams import topics as topics
    from lamplighter.store.engine.db import Db as Db
    from lamplighter.store.engine.db import Params as Params
    from lamplighter.store.engine.db import Row as Row
    from lamplighter.store.engine.db import instant as instant
    from lamplighter.store.engine.db import instant_or_none as instant_or_none
    from lamplighter.store.engine.db import stamp as stamp
    from lamplighter.store.engine.db import stamp_or_none as stamp_or_none
    from lamplighter.store.engine.death_watch import PostgresDeathWatch as PostgresDeathWatch
    from lamplighter.store.engine.deferred import NotAsExpected as NotAsExpected
    from lamplighter.store.engine.deferred import Write as Write
    from lamplighter.store.engine.deferred import as_json as as_json
    from lamplighter.store.engine.liveness import FileProofs as FileProofs
    from lamplighter.store.engine.liveness import Proofs as Proofs
    from lamplighter.store.engine.migrate import migrate_sqlite as migrate_sqlite
    from lamplighter.store.engine.postgres import PostgresDatabase as PostgresDatabase
    from lamplighter.store.engine.postgres import PostgresDirect as PostgresDirect
    from lamplighter.store.engine.postgres_liveness import PostgresProofs as PostgresProofs
    from lamplighter.store.engine.postgres_migrate import migrate_postgres as migrate_postgres
    from lamplighter.store.engine.postgres_tables import PostgresTables as PostgresTables
    from lamplighter.store.engine.rekey import rekey_sqlite as rekey_sqlite
    from lamplighter.store.engine.schema import PROGRAM as PROGRAM
    from lamplighter.store.engine.schema import Migration as Migration
    from lamplighter.store.engine.sqlite import SqliteDatabase as SqliteDatabase
    from lamplighter.store.engine.sqlite_direct import SqliteDirect as SqliteDirect
    from lamplighter.store.engine.sqlite_peek import PeekDb as PeekDb
    from lamplighter.store.engine.sqlite_peek import peek as peek
    from lamplighter.store.engine.sqlite_save import into_one_file as into_one_file
    from lamplighter.store.engine.sqlite_save import save_sqlite as save_sqlite
    from lamplighter.store.engine.sqlite_tables import SqliteTables as SqliteTables
    from lamplighter.store.engine.wakes import Wakes as Wakes

_WHERE = {
    "batching": "Refused batched one",
    "city_tables": "CityTables Counted Digest Table shared_columns",
    "city_wakes": "Publisher WithDatagrams",
    "database": "Database DirectDatabase",
    "datagrams": "Datagrams topics",
    "db": "Db Params Row instant instant_or_none stamp stamp_or_none",
    "death_watch": "PostgresDeathWatch",
    "deferred": "NotAsExpected Write as_json",
    "liveness": "FileProofs Proofs",
    "migrate": "migrate_sqlite",
    "postgres": "PostgresDatabase PostgresDirect",
    "postgres_liveness": "PostgresProofs",
    "postgres_migrate": "migrate_postgres",
    "postgres_tables": "PostgresTables",
    "rekey": "rekey_sqlite",
    "schema": "Migration PROGRAM",
    "sqlite": "SqliteDatabase",
    "sqlite_direct": "SqliteDirect",
    "sqlite_peek": "PeekDb peek",
    "sqlite_save": "into_one_file save_sqlite",
    "sqlite_tables": "SqliteTables",
    "wakes": "Wakes",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker would otherwise take any name for one of these

    def __getattr__(name: str) -> Any:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"the engine of the store has no {name}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value
