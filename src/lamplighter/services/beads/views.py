"""Beads as every surface shows them, and as `bead.*` events carry them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from lamplighter.domain.beads.model import Bead, BeadStatus
from lamplighter.kit.shapes import given


@dataclass(frozen=True)
class BeadView:
    id: str
    title: str
    type: str
    status: BeadStatus
    labels: Sequence[str]
    assignee: str | None
    sender: str | None = given("Who made it.", key="from")
    parent: str | None = given("The bead it belongs to.")
    needs: Sequence[str] = given("Beads that must be closed first.")
    ref: str | None = given("The formula's step that it was made from.")
    description: str = given("All that is known.")
    metadata: Mapping[str, str] = given("Further texts by name.")
    run: str | None = given("The run that made it.")
    created_at: datetime = given("When it was made.")
    updated_at: datetime = given("When it last changed.")
    closed_at: datetime | None = given("When it was closed.")


@dataclass(frozen=True)
class BeadDetail(BeadView):
    children: Sequence[BeadView] = given("The beads that belong to it.")


def view(bead: Bead) -> BeadView:
    return BeadView(**_parts(bead))


def views(beads: Sequence[Bead]) -> list[BeadView]:
    return [view(bead) for bead in beads]


def detail(bead: Bead, children: Sequence[Bead]) -> BeadDetail:
    return BeadDetail(**_parts(bead), children=views(children))


def _parts(bead: Bead) -> dict[str, Any]:
    return {name: getattr(bead, name) for name in _NAMES}


_NAMES = tuple(one.name for one in fields(BeadView))
