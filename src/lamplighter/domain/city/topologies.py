"""How topologies join the city: which scope takes which agents, which providers win, and where the formulas are."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lamplighter.domain.city.merge import with_own_paths
from lamplighter.domain.city.tree import Findings, Leaf, Table
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record


@record
class Topology:
    """A topology file with the topologies it includes; cycles have been refused before."""

    directory: Path
    table: Table
    includes: tuple["Topology", ...] = ()

    @property
    def formulas(self) -> Path:
        formulas = self.table.get("formulas")
        return self.directory / (formulas.get("dir", "formulas") if formulas else "formulas")

    @property
    def city_agents(self) -> frozenset[str]:
        meta = self.table.get("topology")
        return frozenset(meta.get("city_agents", ()) if meta else ())


def references(scope: Table) -> list[str]:
    """The topologies a workspace or a rig names: `topology` first, then `topologies`."""
    single = scope.get("topology", "")
    return [*([single] if single else []), *scope.get("topologies", ())]


def walk(topologies: Iterable[Topology]) -> Iterator[Topology]:
    """Every topology once, included ones before those that include them."""
    seen: set[Path] = set()

    def visit(topology: Topology) -> Iterator[Topology]:
        if topology.directory in seen:
            return
        seen.add(topology.directory)
        for included in topology.includes:
            yield from visit(included)
        yield topology

    for topology in topologies:
        yield from visit(topology)


def agents_of(topologies: Iterable[Topology], root: Path, *, rig: Leaf | None, found: Findings) -> list[Table]:
    """The agents that a scope takes from its topologies; `rig` is the rig's name and its place, None for the city."""
    taken: dict[tuple[str, str], Table] = {}
    for topology in topologies:
        parts = list(walk([topology]))
        split = frozenset[str]().union(*(part.city_agents for part in parts))
        for part in parts:
            for agent in with_own_paths(part.table, root).tables("agents"):
                if split and (agent.get("name") in split) is not (rig is None):
                    continue
                _take(agent if rig is None or agent.get("dir") else agent.having({"dir": rig}), taken, found)
    return list(taken.values())


def _take(agent: Table, taken: dict[tuple[str, str], Table], found: Findings) -> None:
    identity = (agent.get("dir", ""), agent.get("name", ""))
    first = taken.setdefault(identity, agent)
    if first.place != agent.place:
        found.wrong(
            agent.at("name"),
            f"agent `{identity[1]}` is also defined in {first.place.origin.file}; a scope takes it from one",
        )


def providers_of(topologies: Iterable[Topology]) -> Mapping[str, Table]:
    """Providers of topologies: a topology wins over those it includes; otherwise the first named wins."""
    rows: dict[str, Table] = {}
    for topology in topologies:
        for part in reversed(list(walk([topology]))):
            for name, row in part.table.named("providers").items():
                rows.setdefault(name, row)
    return rows


def check_topology(topology: Topology, found: Findings) -> None:
    """Check a topology's `[topology]` table: a known schema, and only existing agents in `city_agents`."""
    meta = topology.table.get("topology")
    if meta is None:
        return
    schema = meta.get("schema")
    if schema is not None and schema != 1:
        found.wrong(meta.at("schema"), f"is {schema}; this program reads schema 1")
    names = {agent.get("name", "") for part in walk([topology]) for agent in part.table.tables("agents")}
    for name in meta.get("city_agents", ()):
        if name not in names:
            found.wrong(meta.at("city_agents"), f"`{name}` is not an agent of this topology{did_you_mean(name, names)}")
