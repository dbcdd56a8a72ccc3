"""What a city's automations are made of: the definitions on disk, the rules, and what runs their commands."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.files.automations import LayerDirectory, scan
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.app.host_zone import host_zone
from lamplighter.domain.automations.layers import Definitions, Override
from lamplighter.domain.city.model import City
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.rules import Rules

COMMANDS = "commands"
_PLACE = ("name", "rig")


def rules_of(city: City, env: Mapping[str, str]) -> Rules:
    return Rules.of(city, host_zone(env))


def definitions_of(city: City) -> Definitions:
    """Read every definition on disk, with the city's layers, skips and overrides applied. Blocking disk access."""
    layers = [LayerDirectory(path) for path in city.layers.automations]
    layers += [LayerDirectory(path, rig) for rig, paths in sorted(city.layers.rigs.items()) for path in paths]
    return scan(layers, skip=city.automations.skip, overrides=_overrides(city))


def command_runner(paths: CityPaths, clock: Clock, ids: IdSource) -> ShimCommands:
    return ShimCommands(paths.runtime / COMMANDS, city=paths.city_id(), clock=clock, ids=ids)


def command_parent(env: Mapping[str, str]) -> dict[str, str]:
    """The environment that commands inherit, with the directory of `lamp` appended to `PATH` if it is missing."""
    own = str(Path(sys.executable).parent)
    path = env.get("PATH", os.defpath)
    return dict(env) | {"PATH": path if own in path.split(os.pathsep) else f"{path}{os.pathsep}{own}"}


def _overrides(city: City) -> list[Override]:
    found = []
    for one in city.automations.overrides:
        values = {name: getattr(one, name) for name in one.__dataclass_fields__ if name not in _PLACE}
        found.append(Override(one.name, values, one.rig))
    return found
