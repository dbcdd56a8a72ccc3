"""Lists from a search that looks at a bounded number of records."""

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Found(list[T], Generic[T]):
    """What was found; `searched_to` is where the search stopped before its end, to go on from. None if it did not."""

    def __init__(self, found: Iterable[T], searched_to: str | None = None) -> None:
        super().__init__(found)
        self.searched_to = searched_to
