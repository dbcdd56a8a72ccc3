"""The store in a SQLite file without threads or an event loop, for the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from lamplighter.store.engine.datagrams import Datagrams
from lamplighter.store.engine.sqlite_connection import SqliteConnection, read_whole, told
from lamplighter.store.tx import Tx

P = ParamSpec("P")
R = TypeVar("R")


class SqliteDirect:
    """The same transactions on the caller's thread: for commands, which run one and exit."""

    def __init__(self, path: Path, city: str, *, datagrams: Datagrams) -> None:
        self._connection = SqliteConnection(path, city)
        self._datagrams = datagrams

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        value, wakes = self._connection.alone(lambda tx: fn(tx, *args, **kwargs))
        self._datagrams.send(wakes)
        return value  # type: ignore[no-any-return]  # what fn gave

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        connection = self._connection
        connection.files.check()
        with told(connection.path):
            connection.raw.execute("PRAGMA query_only = ON")
            try:
                value: R = read_whole(
                    connection.raw, connection.tx, connection.guard, lambda tx: fn(tx, *args, **kwargs)
                )
                return value
            finally:
                connection.raw.execute("PRAGMA query_only = OFF")

    def close(self) -> None:
        self._connection.close()
        self._datagrams.close()
