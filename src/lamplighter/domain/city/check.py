"""Checks between values: unique names, references that resolve, bounds that fit each other."""

from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.names import find_agent, instance_names
from lamplighter.domain.city.paths import remote
from lamplighter.domain.city.presets import builtin_providers
from lamplighter.domain.city.tree import Findings, Place, Table
from lamplighter.domain.city.variables import command_variables, dir_variables, session_name
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.text import TemplateError, expand


def check_tables(expanded: Table, found: Findings) -> None:
    """Check the tables themselves; they know where each value was set."""
    for key, identity in (("agents", _agent_identity), ("rigs", _name), ("configurations", _name)):
        _unique(expanded.tables(key), key.removesuffix("s"), identity, found)
    for agent in expanded.tables("agents"):
        _check_pool(agent, found)
    for rig in expanded.tables("rigs"):
        if rig.get("topology") and rig.get("topology") in rig.get("topologies", ()):
            found.note(rig.at("topology"), "is named in `topologies` too; it counts once")


def check_city(city: City, expanded: Table, found: Findings) -> None:
    """Check the references between parts of the city."""
    providers = [*city.providers, *builtin_providers]
    rigs = [rig.name for rig in city.rigs]
    _check_prefixes(city, expanded, found)
    workspace = expanded.get("workspace")
    if workspace is not None:
        _known(workspace, "provider", providers, "a provider", found)
    for agent in expanded.tables("agents"):
        _known(agent, "provider", providers, "a provider", found)
    for row in expanded.tables("configurations"):
        check_configuration(row, city, found)
    automations = expanded.get("automations")
    for override in automations.tables("overrides") if automations is not None else []:
        _known(override, "rig", rigs, "a rig", found)
    _check_instances(city.agents, expanded.tables("agents"), found)
    _check_dependencies(city.agents, expanded.tables("agents"), found)


def _name(table: Table) -> str:
    name: str = table.get("name", "")
    return name


def _agent_identity(table: Table) -> str:
    return "/".join(filter(None, (table.get("dir", ""), table.get("name", ""))))


def _unique(tables: Iterable[Table], noun: str, identity: Callable[[Table], str], found: Findings) -> None:
    seen: dict[str, Table] = {}
    for table in tables:
        name = identity(table)
        first = seen.setdefault(name, table)
        if first is not table and name:
            found.wrong(table.at("name"), f"{noun} `{name}` is defined twice, first in {_where(first.at('name'))}")


def _where(place: Place) -> str:
    return f"{place.origin.file}, line {place.line}" if place.line else place.origin.file


def _check_pool(agent: Table, found: Findings) -> None:
    pool: Table | None = agent.get("pool")
    if pool is None:
        return
    least, most = pool.get("min", 0), pool.get("max", 0)
    if least > most:
        found.wrong(pool.at("min"), f"is {least}, more than `max`, which is {most}")
    both = [bool(agent.get(key)) for key in ("work_query", "sling_query")]
    if any(both) and not all(both):
        there, missing = ("work_query", "sling_query") if both[0] else ("sling_query", "work_query")
        found.wrong(agent.at(there), f"a pool sets both or neither; `{missing}` is missing")


def _check_instances(agents: Iterable[Agent], tables: list[Table], found: Findings) -> None:
    """An agent must not have the name of a pool's instance."""
    pools = {agent.qualified_name: agent for agent in agents if agent.pool is not None}
    for agent, table in zip(agents, tables, strict=True):
        pool = pools.get(agent.qualified_name.rpartition("-")[0])
        if pool is not None and find_agent([pool], agent.qualified_name) is not None:
            message = f"`{agent.qualified_name}` is also an instance of the pool `{pool.qualified_name}`"
            found.wrong(table.at("name"), message)


def _check_prefixes(city: City, expanded: Table, found: Findings) -> None:
    taken = {city.prefix: f"the city itself, `{city.name}`"}
    for rig, table in zip(city.rigs, expanded.tables("rigs"), strict=True):
        prefix = rig.prefix.lower()
        if prefix in taken:
            how = "" if table.get("prefix") else f" (derived from `{rig.name}`)"
            found.wrong(table.at("prefix"), f"prefix `{prefix}`{how} belongs to {taken[prefix]}; set another `prefix`")
        taken.setdefault(prefix, f"rig `{rig.name}`")


def _known(table: Table, key: str, names: Iterable[str], noun: str, found: Findings) -> None:
    value = table.get(key)
    if not value:
        return
    known = names if isinstance(names, set | list) else list(names)
    if value not in known:
        found.wrong(table.at(key), f"`{value}` is not {noun}{did_you_mean(value, known)}")


def check_configuration(row: Table, city: City, found: Findings) -> None:
    """Check one configuration, from a file or about to be stored."""
    _known(row, "rig", [rig.name for rig in city.rigs], "a rig", found)
    _known(row, "preset", [*city.providers, *builtin_providers], "a provider", found)
    path: str = row.get("path", "")
    if remote(path) is not None:
        found.wrong(row.at("path"), f"`{path}` is remote; a run works in a directory of this machine")
    elif "\0" in path:
        found.wrong(row.at("path"), "holds a NUL, which no path can")
    if row.get("rig") and row.get("path"):
        found.wrong(row.at("path"), "a run works in a rig or in a path, not in both; leave one out")


def _check_dependencies(agents: Iterable[Agent], tables: list[Table], found: Findings) -> None:
    known = {agent.qualified_name: agent for agent in agents}
    edges: dict[str, list[str]] = {}
    for agent, table in zip(known.values(), tables, strict=False):
        for given in agent.depends_on:
            target = next((name for name in (given, f"{agent.dir}/{given}") if name in known), None)
            if target is None:
                found.wrong(table.at("depends_on"), f"`{given}` is not an agent{did_you_mean(given, known)}")
            else:
                edges.setdefault(agent.qualified_name, []).append(target)
    loop = _cycle(edges)
    if loop:
        first = next(table for table in tables if _agent_identity(table) == loop[0])
        found.wrong(first.at("depends_on"), f"goes round in a circle: {' → '.join(loop)}")


def _cycle(edges: Mapping[str, list[str]]) -> list[str]:
    """The names of one cycle, the first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]
    return []


def check_templates(city: City, expanded: Table, found: Findings) -> None:
    """Check that every template renders with the variables it may use, and that session names are unique."""
    workspace = expanded.get("workspace")
    place = workspace.at("session_template") if workspace is not None else expanded.place
    try:
        _check_sessions(city, place, found)
    except TemplateError as error:
        found.wrong(place, error.reason)
        return
    for agent, table in zip(city.agents, expanded.tables("agents"), strict=True):
        _check_commands(city, agent, table, found)


def _check_sessions(city: City, place: Place, found: Findings) -> None:
    taken: dict[str, str] = {}
    for agent in city.agents:
        names = instance_names(agent)
        for instance in {*names[:1], *names[-1:]}:
            name = session_name(city, instance)
            other = taken.setdefault(name, instance)
            if other != instance:
                found.wrong(place, f"gives `{other}` and `{instance}` the same session, `{name}`")
                return


def _check_commands(city: City, agent: Agent, table: Table, found: Findings) -> None:
    if not _renders(agent.dir, dir_variables(city, agent), table.at("dir"), found):
        return  # the commands need the directory
    texts = {
        "start_command": (agent.start_command,),
        "pre_start": agent.pre_start,
        "session_setup": agent.session_setup,
    }
    templates = [(key, text) for key, values in texts.items() for text in values if "{{" in text]
    if not templates:
        return
    variables = command_variables(city, agent, agent.qualified_name)
    for key, text in templates:
        _renders(text, variables, table.at(key), found)


def _renders(text: str, variables: Mapping[str, object], place: Place, found: Findings) -> bool:
    try:
        expand(text, variables)
    except TemplateError as error:
        found.wrong(place, error.reason)
        return False
    return True
