"""Expands merged files into one flat city: topologies, patches, overrides, formula layers, in that order."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lamplighter.domain.city.decode import city_of
from lamplighter.domain.city.model import City, FormulaLayers
from lamplighter.domain.city.names import derived_prefix
from lamplighter.domain.city.patch import override_agents, patch_agents, patch_providers, patch_rigs
from lamplighter.domain.city.paths import from_city
from lamplighter.domain.city.topologies import Topology, agents_of, providers_of, references, walk
from lamplighter.domain.city.tree import Findings, Leaf, Origin, Place, Table
from lamplighter.kit.records import record

SYSTEM_FORMULAS = ".gc/system-formulas"


@record
class Ground:
    """The city's directory, and the loaded topologies by the reference that names them."""

    root: Path
    topologies: Mapping[str, Topology]

    def of(self, scope: Table) -> list[Topology]:
        return [self.topologies[name] for name in references(scope) if name in self.topologies]

    def judging(self, scope: Table, found: Findings) -> Findings:
        """Where to report unknown names: `found`, or, if a topology of this scope is missing, a discarded collection.

        A missing topology is a problem already, and unknown names would only follow from it.
        """
        return found if all(name in self.topologies for name in references(scope)) else Findings()


def expand(merged: Table, ground: Ground, found: Findings) -> Table:
    """One table without references to other files; every value keeps the place where it was set."""
    workspace: Table = merged.get("workspace") or Table(object, merged.place / "workspace")
    patches: Table = merged.get("patches") or Table(object, merged.place / "patches")
    rigs = patch_rigs(merged.tables("rigs"), patches.tables("rigs"), found)
    city_topologies = ground.of(workspace)
    agents = [*agents_of(city_topologies, ground.root, rig=None, found=found), *merged.tables("agents")]
    judging = ground.judging(workspace, found)
    agents = patch_agents(agents, patches.tables("agents"), (rig.get("name", "") for rig in rigs), judging)
    agents = _with_rigs(agents, rigs, ground, found)
    every = [*city_topologies, *(topology for rig in rigs for topology in ground.of(rig))]
    own = {**providers_of(every), **merged.named("providers")}
    providers = patch_providers(own, patches.tables("providers"), judging)
    return merged.without("patches", "include").having(
        {
            "agents": Leaf(agents, merged.at("agents")),
            "rigs": Leaf([rig.without("overrides") for rig in rigs], merged.at("rigs")),
            "providers": Leaf(providers, merged.at("providers")),
        }
    )


def settle(expanded: Table, ground: Ground, found: Findings) -> City | None:
    """The city that an expanded table declares, with names, prefixes, directories and layers filled in."""
    city = city_of(expanded, found)
    if city is None or any(len(getattr(city, key)) != len(expanded.tables(key)) for key in ("agents", "rigs")):
        return None
    name = city.workspace.name or ground.root.name
    agents = tuple(
        replace(agent, config_dir=table.place.origin.directory)
        for agent, table in zip(city.agents, expanded.tables("agents"), strict=True)
    )
    return replace(
        city,
        workspace=replace(city.workspace, name=name),
        rigs=tuple(replace(rig, prefix=rig.prefix or derived_prefix(rig.name)) for rig in city.rigs),
        agents=agents,
        root=ground.root,
        prefix=derived_prefix(name),
        layers=_layers(city, expanded, ground),
    )


def with_whole_rows(expanded: Table) -> Table:
    """The table as far as it can be checked further: only agents and rigs that have a name, each rig with a path."""
    rigs = [
        rig if "path" in rig.leaves else rig.having({"path": Leaf(".", rig.place)}) for rig in expanded.tables("rigs")
    ]
    return expanded.having(
        {
            "agents": Leaf([one for one in expanded.tables("agents") if one.get("name")], expanded.at("agents")),
            "rigs": Leaf([one for one in rigs if one.get("name")], expanded.at("rigs")),
        }
    )


def _with_rigs(agents: list[Table], rigs: list[Table], ground: Ground, found: Findings) -> list[Table]:
    """All agents, those of rig topologies last, with each rig's overrides applied to the agents of that rig."""
    names = {rig.get("name") for rig in rigs if rig.tables("overrides")}
    inline: dict[str, list[int]] = {}
    for index, agent in enumerate(agents):
        if agent.get("dir", "") in names:
            inline.setdefault(agent.get("dir"), []).append(index)
    out = list(agents)
    for rig in rigs:
        leaf = rig.leaves.get("name")
        if leaf is None:
            continue
        own = agents_of(ground.of(rig), ground.root, rig=leaf, found=found)
        places = inline.get(leaf.value, [])
        changed = override_agents([*(out[index] for index in places), *own], rig, ground.judging(rig, found))
        for index, agent in zip(places, changed, strict=False):
            out[index] = agent
        out.extend(changed[len(places) :])
    return out


def _layers(city: City, expanded: Table, ground: Ground) -> FormulaLayers:
    """City layers: system, the city's topologies, the city's own. For each rig: its topologies, then its own."""
    workspace: Table = expanded.get("workspace") or Table(object, Place(Origin("", "")))
    shared = [topology.formulas for topology in walk(ground.of(workspace))]
    own = ground.root / from_city(city.formulas.dir)
    below = [ground.root / SYSTEM_FORMULAS, *shared]
    lower = _once([*below, own])
    rigs = {}
    for rig, table in zip(city.rigs, expanded.tables("rigs"), strict=True):
        layers = [topology.formulas for topology in walk(ground.of(table))]
        if rig.formulas_dir:
            layers.append(ground.root / from_city(rig.formulas_dir))
        rigs[rig.name] = tuple(layer for layer in _once(layers) if layer not in lower)
    return FormulaLayers(lower, rigs, automations=_once([*below, ground.root, own]))


def _once(paths: list[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths))
