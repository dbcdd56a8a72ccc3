"""The base of every error a person may read: what happened, what to do next, and what kind it is."""

from enum import StrEnum


class Kind(StrEnum):
    """What a surface makes of an error; each surface maps kinds once, to an exit code or a status."""

    NO = "no"
    USAGE = "usage"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    GONE = "gone"


class LampError(Exception):
    """A cause outside the code: a sentence for the reader, a hint at the next step, a kind for the surface.

    A bug is not a LampError: it ends the tick, and the supervisor acts.
    """

    kind: Kind = Kind.NO

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LampError):
    kind = Kind.USAGE


class NotFound(LampError):
    kind = Kind.NOT_FOUND


class Conflict(LampError):
    kind = Kind.CONFLICT


class Unavailable(LampError):
    kind = Kind.UNAVAILABLE


class Fenced(Unavailable):
    """A process that may no longer work under its name: whatever it is doing ends, and it starts anew."""


class CityGone(Fenced):
    """The process ends for good and starts nothing anew; what it started lives on."""

    kind = Kind.GONE

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The city's state in {where} was deleted, moved or replaced while the city ran; the daemon ends.",
            hint="Its agents run on. Put the directory back, then start the city again.",
        )
