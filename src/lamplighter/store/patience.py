"""A direct store that waits while its database is unavailable, for commands that agents call during their work."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from lamplighter.store.errors import CommitUnknown, StoreUnavailable
from lamplighter.store.tx import DirectStore, Tx

P = ParamSpec("P")
R = TypeVar("R")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
TOLD_AFTER = 2.0


@dataclass(frozen=True)
class Patience:
    """How many seconds to wait in all; `tell` is called once if the wait takes longer than a moment."""

    seconds: float
    tell: Callable[[StoreUnavailable], None]
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class PatientStore:
    """Opens the store when first needed. If the answer to a commit is lost, repeats only what did not take."""

    def __init__(self, open_store: Callable[[], DirectStore], patience: Patience) -> None:
        self._open_store = open_store
        self._patience = patience
        self._store: DirectStore | None = None

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Raises CommitUnknown if it cannot be found out whether the commit took."""
        wait = _Wait(self._patience)
        while True:
            try:
                return wait.for_(lambda: self._opened().transact(fn, *args, **kwargs))
            except CommitUnknown as unknown:
                if unknown.settle is None:
                    raise
                settled = wait.for_(unknown.settle)
                if settled.took:
                    return settled.value  # type: ignore[no-any-return]  # what fn gave
                if settled.took is None:
                    raise

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return _Wait(self._patience).for_(lambda: self._opened().read(fn, *args, **kwargs))

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def _opened(self) -> DirectStore:
        if self._store is None:
            self._store = self._open_store()
        return self._store


class _Wait:
    """One limit of time for all attempts."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._began = patience.monotonic()
        self._pause = FIRST_PAUSE
        self._told = False

    def for_(self, attempt: Callable[[], R]) -> R:
        """The value of `attempt`. Raises its last error when the time is up; one that will not pass, immediately."""
        while True:
            try:
                return attempt()
            except StoreUnavailable as error:
                waited = self._patience.monotonic() - self._began
                left = self._patience.seconds - waited
                if not error.passing or left <= 0:
                    raise
                if waited >= TOLD_AFTER and not self._told:
                    self._told = True
                    self._patience.tell(error)
                self._patience.sleep(min(self._pause, left))
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
