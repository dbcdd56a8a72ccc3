"""A store that refuses writes, for a copied city."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record
from lamplighter.store.tx import DirectStore, Tx

P = ParamSpec("P")
R = TypeVar("R")


@record
class ReadOnlyStore:
    """`transact` raises `refusal`; `read` calls `warn` first."""

    store: DirectStore
    refusal: LampError
    warn: Callable[[], None]

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ARG002
        raise self.refusal

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        self.warn()
        return self.store.read(fn, *args, **kwargs)

    def close(self) -> None:
        self.store.close()
