"""Ids: sortable by the time they were made, with a prefix that names the kind."""

import os
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Protocol

_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u, so that ids survive being read aloud
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class Now(Protocol):
    def now(self) -> datetime: ...


class Chance:
    """The system's random bytes, fetched many at a time, because each system call lets all other threads run first."""

    CHUNK = 16
    CHUNKS = 256

    def __init__(self) -> None:
        self._left: deque[bytes] = deque()
        os.register_at_fork(after_in_child=self._left.clear)  # else parent and child would make the same ids

    def __call__(self, count: int) -> bytes:
        if count > self.CHUNK:
            return os.urandom(count)
        while True:
            try:
                return self._left.popleft()[:count]
            except IndexError:
                fresh = os.urandom(self.CHUNK * self.CHUNKS)
                self._left.extend(fresh[at : at + self.CHUNK] for at in range(0, len(fresh), self.CHUNK))


CHANCE = Chance()


class IdSource:
    """Makes ids from a clock and a source of random bytes; both are injected, so that tests can predict every id."""

    def __init__(self, clock: Now, chance: Callable[[int], bytes] = CHANCE) -> None:
        self._clock = clock
        self._chance = chance

    def make(self, prefix: str) -> str:
        """`run` gives `run_` and 26 characters: 48 bits of milliseconds, then 80 random bits."""
        return f"{prefix}_{_moment(int(self._clock.now().timestamp() * 1000))}{_letters(self._chance(16))}"

    def short(self, length: int) -> str:
        """A short random word for ids that people type, such as the `4k2` of `sf-4k2`."""
        number = int.from_bytes(self._chance(length + 2), "big") % (36**length)
        return _word(number, length)


class At:
    """A clock that stands at one instant: for ids made at the time of an act."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at


def oldest_id(prefix: str, at: datetime) -> str:
    """The lowest id with that prefix at `at`: no id made then or later sorts before it."""
    return f"{prefix}_{_moment(int(at.timestamp() * 1000))}{_BASE32[0] * 16}"


@lru_cache(maxsize=16)
def _moment(millis: int) -> str:
    """Ten digits of five bits each; cached, because many ids are made in one millisecond."""
    return "".join([_BASE32[millis >> shift & 31] for shift in range(45, -1, -5)])


_FIVE_BITS = "".join(_BASE32[byte & 31] for byte in range(256)).encode()


def _letters(chance: bytes) -> str:
    """One base-32 digit for the low five bits of each byte."""
    return chance.translate(_FIVE_BITS).decode()


_TWO_DIGITS = [second + first for first in _BASE36 for second in _BASE36]


def _word(number: int, length: int) -> str:
    """The number's base-36 digits, lowest first, converted two at a time."""
    found = ""
    while len(found) < length:
        number, two = divmod(number, 36 * 36)
        found += _TWO_DIGITS[two]
    return found[:length]
