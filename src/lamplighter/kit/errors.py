"""The base of every error a person may read: what happened, what to do next, and what kind it is."""

from enum import StrEnum


class Kind(StrEnum):
    """The kind of an error; each surface maps kinds, in one place, to an exit code or a status."""

    NO = "no"
    USAGE = "usage"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    GONE = "gone"


class LampError(Exception):
    """An error with a cause outside the code: a sentence for the reader, a hint at the next step, a kind.

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
    """Raised when this process may no longer work under its owner id: all its work ends, and it starts anew."""


class CityGone(Fenced):
    """Unlike after other Fenced errors, the process ends for good; the agents it started live on."""

    kind = Kind.GONE

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The city's state in {where} was deleted, moved or replaced while the city ran; the daemon ends.",
            hint="Its agents run on. Put the directory back, then start the city again.",
        )
