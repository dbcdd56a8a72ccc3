"""How long to wait before the next attempt."""

from datetime import timedelta


def doubling(attempt: int, *, first: timedelta, most: timedelta, chance: float = 0.0) -> timedelta:
    """The delay after failed attempt `attempt` (0 for the first): `first·2^attempt`, at most `most`.

    `chance` in [0, 1) shortens it by up to half, so that many waiters do not return together.
    """
    return _doubled(first, max(attempt, 0), most) * (1 - chance / 2)


def _doubled(first: timedelta, attempt: int, most: timedelta) -> timedelta:
    """Compared in whole numbers, which cannot overflow as a timedelta can."""
    micro = timedelta(microseconds=1)
    micros = (first // micro) << min(attempt, 64)
    return most if micros >= most // micro else timedelta(microseconds=micros)
