"""The base of every error a person may read: what happened, what to do next, and what kind it is."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

Place = tuple[str | int, ...]
"""Where a value stands: the keys and numbers on the way to it from the outermost value."""


class Misfit(NamedTuple):
    """A value that is not what is asked for; `told` says so in a clause that names the place."""

    place: Place
    told: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer (RFC 6901)."""
        return "".join("/" + str(one).replace("~", "~0").replace("/", "~1") for one in self.place)


def place_of(key: str) -> Place:
    """The place that a key such as `triggers[0].gate` names."""
    found = re.findall(r"[^.\[\]]+", key)
    return tuple(int(one) if one.isdecimal() else one for one in found)


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
    misfits: "Sequence[Misfit]" = ()
    """The single values that are wrong, where that is known."""


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
