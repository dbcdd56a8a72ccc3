"""Builds a city's automations: the definitions on disk, the rules, and the loops that fire and run them."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from lamplighter.adapters.files.automations import LayerDirectory, scan
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.formulas import read_formula
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.app.agent_runs import agents_of
from lamplighter.app.host_zone import host_zone
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.automation_loops import AutomationLoops, Outside
from lamplighter.domain.automations.layers import Definitions, Override
from lamplighter.domain.beads.formulas import Formula
from lamplighter.domain.city.model import City
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.store.tx import Store

COMMANDS = "commands"
_PLACE = ("name", "rig")


def _nowhere() -> None:
    return None


def rules_of(city: City, env: Mapping[str, str]) -> Rules:
    return Rules.of(city, host_zone(env))


def definitions_of(city: City) -> Definitions:
    """Read every definition on disk, with the city's layers, skips and overrides applied. Blocking disk access."""
    layers = [LayerDirectory(path) for path in city.layers.city]
    layers += [LayerDirectory(path, rig) for rig, paths in sorted(city.layers.rigs.items()) for path in paths]
    return scan(layers, skip=city.automations.skip, overrides=_overrides(city))


def command_runner(paths: CityPaths, clock: Clock, ids: IdSource) -> ShimCommands:
    return ShimCommands(paths.runtime / COMMANDS, city=paths.city_id(), clock=clock, ids=ids)


def loops_of(
    opened: OpenCity,
    city: City,
    *,
    store: Store,
    me: review.Worker,
    only: str | None = None,
    api_url: Callable[[], str | None] = _nowhere,
) -> AutomationLoops:
    """The loops of one process of the city; `me` owns its leases, `api_url` gives the address that serves its tools."""
    outside = Outside(
        runner=command_runner(opened.paths, opened.clock, opened.ids),
        formula=lambda name, rig: _formula(loops.active.city, name, rig),
        beads=lambda: opened.beads,
        env=command_parent(opened.settings.env),
        agents=agents_of(opened, city, api_url),
    )
    loops = AutomationLoops.build(
        city, rules_of(city, opened.settings.env), outside,
        store=store, clock=opened.clock, ids=opened.ids, me=me, only=only,
    )  # fmt: skip
    return loops


def command_parent(env: Mapping[str, str]) -> dict[str, str]:
    """The environment that commands inherit, with the directory of `lamp` appended to `PATH` if it is missing."""
    own = str(Path(sys.executable).parent)
    path = env.get("PATH", os.defpath)
    return dict(env) | {"PATH": path if own in path.split(os.pathsep) else f"{path}{os.pathsep}{own}"}


def _formula(city: City, name: str, rig: str | None) -> Formula:
    return read_formula(name, city.layers.of(rig) if rig else city.layers.city)


def _overrides(city: City) -> list[Override]:
    found = []
    for one in city.automations.overrides:
        values = {name: getattr(one, name) for name in one.__dataclass_fields__ if name not in _PLACE}
        found.append(Override(one.name, values, one.rig))
    return found
