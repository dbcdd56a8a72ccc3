"""How long to wait before the next attempt."""

from datetime import timedelta


def doubling(attempt: int, *, first: timedelta, most: timedelta, chance: float = 0.0) -> timedelta:
    """The delay after failed attempt `attempt` (0 for the first): `first·2^attempt`, at most `most`.

    `chance` in [0, 1) shortens it by up to half, so that many waiters do not return together.
    """
    factor: int = 2 ** min(max(attempt, 0), 32)
    delay = min(first * factor, most)
    return delay * (1 - chance / 2)
