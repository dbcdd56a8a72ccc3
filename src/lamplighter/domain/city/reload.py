"""What becomes of a configuration that was read again: the same, refused, or swapped in."""

from dataclasses import dataclass, fields

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City


@dataclass(frozen=True)
class Same:
    """Nothing that counts was changed."""


@dataclass(frozen=True)
class Refused:
    why: str


@dataclass(frozen=True)
class Swap:
    changed: tuple[str, ...]
    """The sections that differ; `files` when only files they name do."""


Verdict = Same | Refused | Swap


def judge(current: LoadedCity, new: LoadedCity) -> Verdict:
    """Pure: what a running city does about `new`. Its name, its database and its session
    provider cannot change under it.
    """
    if new.revision == current.revision and new.city == current.city:
        return Same()
    if new.city.name != current.city.name:
        return Refused(
            f"workspace.name: is `{new.city.name}` now, but city `{current.city.name}` is running; "
            "stop it before you rename it"
        )
    if new.city.store.url != current.city.store.url:
        return Refused("store.url: cannot change while the city runs; restart it")
    if new.city.session.provider != current.city.session.provider:
        return Refused("session.provider: cannot change while the city runs; restart it")
    return Swap(_changed(current.city, new.city) or ("files",))


def _changed(old: City, new: City) -> tuple[str, ...]:
    return tuple(
        field.name for field in fields(City) if field.compare and getattr(old, field.name) != getattr(new, field.name)
    )
