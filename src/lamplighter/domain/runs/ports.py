"""Blocks of ports for runs: which one is free, and how it is written down."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

FIRST = 20_000
LAST = 29_999
"""Between what servers usually take and what the system gives to outgoing connections."""


@dataclass(frozen=True, order=True)
class Block:
    base: int
    count: int

    def __str__(self) -> str:
        return f"{self.base}+{self.count}"

    @staticmethod
    def of(text: str) -> "Block":
        """Raises ValueError for anything that was not written by `str`."""
        base, _, count = text.partition("+")
        return Block(int(base), int(count))

    def meets(self, other: "Block") -> bool:
        return self.base < other.base + other.count and other.base < self.base + self.count


def free_block(count: int, taken: Iterable[Block], *, start: int = 0, busy: Collection[int] = ()) -> Block | None:
    """The first block of so many ports that meets none of `taken` and begins at none of `busy`; None if all are taken.

    `start` says which is looked at first, so that two cities on one machine seldom try the same.
    """
    held = list(taken)
    places = (LAST + 1 - FIRST) // count
    for number in range(places):
        block = Block(FIRST + (start + number) % places * count, count)
        if block.base not in busy and not any(block.meets(one) for one in held):
            return block
    return None
