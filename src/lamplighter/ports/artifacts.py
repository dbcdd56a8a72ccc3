"""The store of run artifacts; an artifact's key is the same for every attempt to write it."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.kit.errors import NotFound, Unavailable


class ArtifactUnknown(NotFound):
    def __init__(self, key: str) -> None:
        super().__init__(f"There is no artifact {key}.", hint="`lamp run show` lists those of a run.")


class ArtifactsUnavailable(Unavailable):
    """The store does not answer or denies access; writing is tried again."""


class ArtifactStore(Protocol):
    """A write is atomic; a second one under the same key replaces the first.

    Every method raises KeyRefused for an invalid key or prefix.
    """

    async def put(self, key: str, content: bytes, *, content_type: str) -> None: ...

    async def get(self, key: str) -> bytes:
        """Raises ArtifactUnknown."""
        ...

    async def keys(self, prefix: str) -> Sequence[str]:
        """All keys below `prefix`, sorted. A prefix ends in a slash; an empty one means all keys."""
        ...

    async def delete(self, key: str) -> None:
        """May be repeated."""
        ...
