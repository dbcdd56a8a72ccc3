"""Ids: sortable by the time they were made, with a prefix that names the kind."""

import os
from collections.abc import Callable

from lamplighter.kit.clock import Clock

_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u, so that ids survive being read aloud
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class IdSource:
    """Makes ids from a clock and a source of chance; both are injected, so tests can foretell every id."""

    def __init__(self, clock: Clock, chance: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._chance = chance

    def make(self, prefix: str) -> str:
        """`run` gives `run_` and 26 characters: 48 bits of milliseconds, then 80 bits of chance."""
        millis = int(self._clock.now().timestamp() * 1000)
        number = (millis << 80) | int.from_bytes(self._chance(10), "big")
        return f"{prefix}_{_digits(number, _BASE32, 26)}"

    def short(self, length: int) -> str:
        """A short random word for ids that people type, such as the `4k2` of `sf-4k2`."""
        number = int.from_bytes(self._chance(length + 2), "big") % (36**length)
        return _digits(number, _BASE36, length)


def _digits(number: int, alphabet: str, width: int) -> str:
    base = len(alphabet)
    out = [""] * width
    for place in range(width - 1, -1, -1):
        number, digit = divmod(number, base)
        out[place] = alphabet[digit]
    return "".join(out)
