"""Nodes, the places where sessions run: how a node gets its name, and which process does work that only one may do."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.cluster.places import same_place, where
from lamplighter.kit.errors import Conflict


class NodeState(StrEnum):
    ALIVE = "alive"
    STOPPED = "stopped"  # its last process shut down properly
    LOST = "lost"  # its last process is known to be dead


@dataclass(frozen=True, slots=True)
class Node:
    """A directory on a machine, with a unique name; `since` is when it entered its state.

    `place` is the directory's id, then a space and its last known location, as host and path may change.
    """

    name: str
    place: str
    rigs: tuple[str, ...]
    state: NodeState
    since: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """A name in use: the place it belongs to, and whether processes or runs still use it."""

    name: str
    place: str
    busy: bool


class NodeTaken(Conflict):
    def __init__(self, name: str, place: str) -> None:
        super().__init__(
            f"The name `{name}` belongs to another node of this city: {place}.",
            hint="Choose another with --name, or leave it out. A lost node's name is free once its runs have ended.",
        )


class PlaceNamed(Conflict):
    def __init__(self, name: str, wanted: str) -> None:
        super().__init__(
            f"This directory is node `{name}` already, and processes or runs go by that name; it cannot be `{wanted}`.",
            hint=f"Leave --name out, or say `--name {name}`.",
        )


class RigElsewhere(Conflict):
    def __init__(self, rig: str, path: str, node: str) -> None:
        super().__init__(
            f"Another process of node `{node}` has rig `{rig}` at {path}.",
            hint="Processes of one node take over from each other: give them the same paths.",
        )


def choose_name(wanted: str | None, default: str, place: str, known: Sequence[Known]) -> str:
    """The wanted name; else the known name of this place; else the default, with a number if it is taken.

    Raises NodeTaken, PlaceNamed: sessions are found by their node's name, so a name in use must stay with its place.
    """
    here = next((one for one in known if same_place(one.place, place)), None)
    if wanted is None:
        return here.name if here is not None else _free(default, {one.name for one in known if one.busy})
    named = next((one for one in known if one.name == wanted), None)
    if named is not None and not same_place(named.place, place) and named.busy:
        raise NodeTaken(wanted, where(named.place))
    if here is not None and here.name != wanted and here.busy:
        raise PlaceNamed(here.name, wanted)
    return wanted


def first_among(owners: Iterable[tuple[str, str]]) -> str | None:
    """The process, given as (id, kind), that does what only one should do: the controller, else the oldest.

    Commands are never chosen; None if there is no other process.
    """
    ranked = sorted((kind != "controller", owner) for owner, kind in owners if kind != "command")
    return ranked[0][1] if ranked else None


def successor(me: str, others: Iterable[str]) -> str | None:
    """The process that this one watches: the next id in a ring, so that each is watched by exactly one other."""
    ranked = sorted(others)
    return next((other for other in ranked if other > me), ranked[0] if ranked else None)


def _free(default: str, taken: set[str]) -> str:
    numbered = (f"{default}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([default], numbered) if name not in taken)
