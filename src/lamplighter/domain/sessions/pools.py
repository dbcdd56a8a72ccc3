"""Pools: which instances are wanted, given demand, bounds and the running instances."""

from collections.abc import Mapping

from lamplighter.domain.sessions.idle import DrainReason, draining
from lamplighter.domain.sessions.model import Seen
from lamplighter.kit.records import record


@record
class Bounds:
    least: int = 0
    most: int = 1


def instance_names(pool: str, most: int) -> tuple[str, ...]:
    """A pool of one instance uses the pool's own name; larger pools number their instances from 1."""
    if most <= 1:
        return (pool,) if most == 1 else ()
    return tuple(f"{pool}-{number}" for number in range(1, most + 1))


def demand_of(text: str) -> int | None:
    """The number that a pool check printed; None, meaning unknown and not zero, if it printed no number."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.removeprefix("-").isdigit() else None


def wanted_instances(
    pool: str, bounds: Bounds, demand: int | None, running: Mapping[str, Seen], busy: frozenset[str]
) -> tuple[str, ...]:
    """The instances to keep or start, by name. `running` has the sessions of this pool, `busy` the names at work.

    Unknown demand keeps the running instances, within the bounds, except those that were already asked to leave as
    surplus: a controller that does not know the demand yet goes on with the drains of the one before it. Busy
    instances are always kept; the others are kept up to the wanted size, those not draining first, then the most
    recently active. New ones take the lowest free names.
    """
    names = instance_names(pool, bounds.most)
    living = [name for name in running if running[name].alive and (name in names or name in busy)]
    asked = len([name for name in living if not _is_leaving(running[name])]) if demand is None else demand
    size = max(bounds.least, min(asked, bounds.most))
    working = [name for name in living if name in busy]
    resting = sorted((name for name in living if name not in busy), key=lambda name: _rank(name, running[name]))
    kept = working + resting[: max(size - len(working), 0)]
    fresh = [name for name in names if name not in living]
    return tuple(sorted(kept + fresh[: max(size - len(kept), 0)], key=lambda name: (len(name), name)))


def _is_leaving(seen: Seen) -> bool:
    marks = draining(seen)
    return marks is not None and marks.reason is DrainReason.SURPLUS


def _rank(name: str, seen: Seen) -> tuple[bool, float, int, str]:
    """Sort key: the instance to keep first sorts first."""
    active = seen.last_activity or seen.started_at
    return (draining(seen) is not None, -active.timestamp() if active else 0.0, len(name), name)
