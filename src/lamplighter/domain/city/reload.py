"""Decides about a configuration that was read again: unchanged, refused, or swapped in."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City


@dataclass(frozen=True)
class Same:
    """Neither the files nor the resulting city changed."""


@dataclass(frozen=True)
class Refused:
    why: str


@dataclass(frozen=True)
class Swap:
    changed: tuple[str, ...]
    """The sections that differ; `files` when only files that they name differ."""


Verdict = Same | Refused | Swap


WORKER_BINDS = ("store.url", "beads.provider", "runs.provider", "artifacts.url", "session.gc_fronts")
"""Settings that a worker reads only at its start."""

CONTROLLER_BINDS = (*WORKER_BINDS, "session.provider", "api.host", "api.port")


_FIXED = "cannot change while the city runs"
_STOP = "stop it before you rename it"


def is_bound(why: str) -> bool:
    """Whether a configuration was refused for what its agents were started with: they must be stopped before it."""
    return _FIXED in why or _STOP in why


def judge(current: LoadedCity, new: LoadedCity, *, bound: Sequence[str] = CONTROLLER_BINDS) -> Verdict:
    """What a running process does about `new`; the city's name and the `bound` settings cannot change while it runs."""
    if new.revision == current.revision and new.city == current.city:
        return Same()
    if new.city.name != current.city.name:
        return Refused(f"workspace.name: is `{new.city.name}` now, but city `{current.city.name}` is running; {_STOP}")
    moved = [name for name in bound if _setting(new.city, name) != _setting(current.city, name)]
    if moved:
        return Refused(f"{', '.join(moved)}: {_FIXED}; `lamp restart` restarts it")
    return Swap(_changed(current.city, new.city) or ("files",))


def _setting(city: City, name: str) -> object:
    section, _, key = name.partition(".")
    return getattr(getattr(city, section), key)


def _changed(old: City, new: City) -> tuple[str, ...]:
    return tuple(
        field.name for field in fields(City) if field.compare and getattr(old, field.name) != getattr(new, field.name)
    )
