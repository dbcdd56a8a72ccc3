"""Artifacts: what runs leave behind, kept under names that are the same for every try."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.kit.errors import NotFound, Unavailable


class ArtifactUnknown(NotFound):
    def __init__(self, key: str) -> None:
        super().__init__(f"There is no artifact {key}.", hint="`lamp run show` lists those of a run.")


class ArtifactsUnavailable(Unavailable):
    """The store does not answer, or does not let us; writing is tried again."""


class ArtifactStore(Protocol):
    """A write is whole or not there; a second one under the same key replaces the first.

    A key that is none raises KeyRefused, everywhere.
    """

    async def put(self, key: str, content: bytes, *, content_type: str) -> None: ...

    async def get(self, key: str) -> bytes:
        """Raises ArtifactUnknown."""
        ...

    async def keys(self, prefix: str) -> Sequence[str]:
        """All keys below `prefix`, which ends in a slash; sorted."""
        ...

    async def delete(self, key: str) -> None:
        """May be repeated."""
        ...
