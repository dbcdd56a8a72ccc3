"""A SQLite file without threads or an event loop, for commands, which run one transaction and exit."""

from pathlib import Path
from typing import Any

from lamplighter.store.engine.city_wakes import CityWakes
from lamplighter.store.engine.scope import MakeScope, Work
from lamplighter.store.engine.sqlite_connection import SqliteConnection, read_whole, told


class SqliteDirect:
    def __init__(self, path: Path, make: MakeScope) -> None:
        self._connection = SqliteConnection(path, make)
        self.wakes = CityWakes()

    def transact(self, city: str, fn: Work) -> Any:
        value, topics = self._connection.alone(city, fn)
        self.wakes.publish({city: topics})
        return value

    def read(self, city: str, fn: Work) -> Any:
        connection = self._connection
        connection.files.check()
        with told(connection.path):
            connection.raw.execute("PRAGMA query_only = ON")
            try:
                return read_whole(connection.raw, connection.scopes.of(city), connection.guard, fn)
            finally:
                connection.raw.execute("PRAGMA query_only = OFF")

    def close(self) -> None:
        self._connection.close()
