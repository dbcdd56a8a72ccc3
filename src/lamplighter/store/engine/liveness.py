"""Proof of life: a lock that each working process holds for as long as it lives, and that no other process can hold.

On one machine it is a file lock under `.gc/owners/`; on PostgreSQL it is a session's advisory lock, on a connection of
its own. The kernel or the server releases it as soon as the process is gone, however it ended.
"""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from lamplighter.store.errors import ProofLost, StoreUnavailable


class Proofs(Protocol):
    def hold(self, owner: str) -> None:
        """Take the proof of `owner`, this process."""
        ...

    def check(self, owner: str) -> None:
        """Raises ProofLost when the proof of `owner`, held by this process, is gone."""
        ...

    def dead(self, owner: str) -> bool:
        """Whether no process holds the proof of `owner`."""
        ...

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        """Those of `owners` whose proof is held; on PostgreSQL with one query for all."""
        ...

    def release(self, owner: str) -> None: ...

    def close(self) -> None:
        """For a process that only asked about others and holds no proof itself."""
        ...


class FileProofs:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def hold(self, owner: str) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._directory / owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{self._directory} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreUnavailable(f"The proof of life {owner} is held already: {error.strerror}.") from error
        self._held[owner] = fd

    def check(self, owner: str) -> None:
        if owner not in self._held:
            raise ProofLost(owner)

    def dead(self, owner: str) -> bool:
        if owner in self._held:
            return False
        try:
            fd = os.open(self._directory / owner, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: another process that looks is no proof of life
        except BlockingIOError:
            return False
        else:
            (self._directory / owner).unlink(missing_ok=True)
            return True
        finally:
            os.close(fd)

    def living(self, owners: Iterable[str]) -> frozenset[str]:
        return frozenset(owner for owner in owners if not self.dead(owner))

    def release(self, owner: str) -> None:
        fd = self._held.pop(owner, None)
        if fd is not None:
            (self._directory / owner).unlink(missing_ok=True)
            os.close(fd)

    def close(self) -> None:
        for owner in tuple(self._held):
            self.release(owner)
