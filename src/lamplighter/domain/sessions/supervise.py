"""Supervision across sessions: the order of starts, and whom a death takes along."""

from collections.abc import Mapping
from enum import StrEnum

Needs = Mapping[str, tuple[str, ...]]


class Strategy(StrEnum):
    """What the death of an agent does to those tied to it by `depends_on`, directly or through others."""

    ONE_FOR_ONE = "one_for_one"  # it alone is started again
    REST_FOR_ONE = "rest_for_one"  # and those that depend on it
    ONE_FOR_ALL = "one_for_all"  # and all that are tied together with it


def without_rings(needs: Needs) -> dict[str, tuple[str, ...]]:
    """The same needs less those that would close a ring, so that a faulty city still starts."""
    kept: dict[str, tuple[str, ...]] = {}
    for name, wishes in needs.items():
        kept[name] = ()
        for wish in wishes:
            if wish in needs and name not in _reachable(wish, kept):
                kept[name] = (*kept[name], wish)
    return kept


def taken_along(dead: str, needs: Needs, strategy: Strategy) -> frozenset[str]:
    """Whom the death of `dead` stops too, so that they start again after it."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return frozenset()
        case Strategy.REST_FOR_ONE:
            return _reachable(dead, _turned(needs)) - {dead}
        case Strategy.ONE_FOR_ALL:
            both = {name: (*needs.get(name, ()), *_turned(needs).get(name, ())) for name in needs}
            return _reachable(dead, both) - {dead}


def _turned(needs: Needs) -> dict[str, tuple[str, ...]]:
    turned: dict[str, tuple[str, ...]] = dict.fromkeys(needs, ())
    for name, wishes in needs.items():
        for wish in wishes:
            turned[wish] = (*turned.get(wish, ()), name)
    return turned


def _reachable(start: str, edges: Needs) -> frozenset[str]:
    found: set[str] = set()
    queue: list[str] = [start]
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue.extend(edges.get(name, ()))
    return frozenset(found)
