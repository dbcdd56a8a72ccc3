"""Supervision across sessions: dependencies for the order of starts, and which agents stop when another dies."""

from collections.abc import Mapping
from enum import StrEnum

Needs = Mapping[str, tuple[str, ...]]


class Strategy(StrEnum):
    """What the death of an agent does to agents connected to it by `depends_on`, directly or indirectly."""

    ONE_FOR_ONE = "one_for_one"  # only it is restarted
    REST_FOR_ONE = "rest_for_one"  # it and all agents that depend on it
    ONE_FOR_ALL = "one_for_all"  # it and all agents connected to it in either direction


def without_rings(needs: Needs) -> dict[str, tuple[str, ...]]:
    """`needs` without unknown names and without those that would close a cycle, so that a faulty city still starts."""
    kept: dict[str, tuple[str, ...]] = {}
    for name, wishes in needs.items():
        kept[name] = ()
        for wish in wishes:
            if wish in needs and name not in _reachable(wish, kept):
                kept[name] = (*kept[name], wish)
    return kept


def taken_along(dead: str, needs: Needs, strategy: Strategy) -> frozenset[str]:
    """The agents that are also stopped when `dead` dies, so that they start again after it."""
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
