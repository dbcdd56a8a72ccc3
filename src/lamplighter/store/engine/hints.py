"""What earlier transactions on a connection found out, kept as hints that spare a question and are always checked."""

from collections.abc import Hashable

MOST = 10_000


class Hints:
    """Belongs to a connection, as its prepared statements do; repositories remember nothing themselves."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, bool] = {}

    def get(self, key: Hashable) -> bool | None:
        return self._kept.get(key)

    def keep(self, found: dict[Hashable, bool]) -> None:
        """All earlier ones go when there are too many: a hint that is missing costs one question more."""
        if len(self._kept) + len(found) > MOST:
            self._kept.clear()
        self._kept |= found
