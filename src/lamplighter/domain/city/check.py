"""Checks between values: unique names, references that resolve, bounds that fit each other."""

import posixpath
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from ipaddress import ip_address
from urllib.parse import urlsplit

from lamplighter.domain.city.destination_kinds import DESTINATION_KINDS
from lamplighter.domain.city.limits import slack_user
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.names import find_agent, instance_names
from lamplighter.domain.city.paths import remote
from lamplighter.domain.city.presets import builtin_providers
from lamplighter.domain.city.sections import slack_destination
from lamplighter.domain.city.tree import Findings, Place, Table
from lamplighter.domain.city.variables import command_variables, dir_variables, provider_variables, session_name
from lamplighter.domain.sessions.model import SESSION_NAMES, names_a_session
from lamplighter.domain.sessions.presets.catalogue import MCP_FILE, PRESETS
from lamplighter.domain.sessions.presets.model import Mode
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.text import TemplateError, expand


def check_changes(merged: Table, found: Findings) -> None:
    """Check that each patch and each override names what it changes: one that names nothing would have no effect."""
    patches = merged.get("patches")
    named = [(row, "name") for key in ("agents", "rigs", "providers") for row in _rows(patches, key)]
    named += [(row, "agent") for rig in merged.tables("rigs") for row in rig.tables("overrides")]
    automations = merged.get("automations")
    named += [(row, "name") for row in _rows(automations, "overrides")]
    for row, key in named:
        if key not in row.leaves and not found.about(row.place / key):
            found.wrong(row.place / key, "is missing; it must name what is changed")


def _rows(table: Table | None, key: str) -> list[Table]:
    return [] if table is None else table.tables(key)


def check_tables(expanded: Table, found: Findings) -> None:
    """Check the tables themselves; they know where each value was set."""
    for key, identity in (("agents", _agent_identity), ("rigs", _name), ("configurations", _name)):
        _unique(expanded.tables(key), key.removesuffix("s"), identity, found)
    for agent in expanded.tables("agents"):
        _check_pool(agent, found)
    _check_circles(expanded.tables("agents"), found)
    for rig in expanded.tables("rigs"):
        if rig.get("topology") and rig.get("topology") in rig.get("topologies", ()):
            found.note(rig.at("topology"), "is named in `topologies` too; it counts once")


def check_city(city: City, expanded: Table, found: Findings) -> None:
    """Check the references between parts of the city."""
    providers = [*city.providers, *builtin_providers]
    rigs = [rig.name for rig in city.rigs]
    _check_prefixes(city, expanded, found)
    _check_rig_paths(city, expanded, found)
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
    for rig in expanded.tables("rigs"):
        _check_workspace(rig.get("workspace"), found)
    _check_limits(expanded.get("limits"), {"rigs": rigs, "presets": providers}, found)
    _check_notifications(expanded.get("notifications"), found)
    _check_oidc(expanded.get("oidc"), found)
    _check_instances(city.agents, expanded.tables("agents"), found)
    _check_dependencies(city.agents, expanded.tables("agents"), found)


def _check_workspace(table: Table | None, found: Findings) -> None:
    """What is copied and what is shared must not lie within each other."""
    for copied in () if table is None else table.get("copy", ()):
        assert table is not None  # noqa: S101  as above
        for shared in table.get("cache", ()):
            if _within(copied, shared) or _within(shared, copied):
                found.wrong(table.at("cache"), f"`{shared}` and `{copied}` of `copy` are in each other's way")


def _within(path: str, other: str) -> bool:
    return f"{posixpath.normpath(path)}/".startswith(f"{posixpath.normpath(other)}/")


def _check_limits(table: Table | None, known: Mapping[str, list[str]], found: Findings) -> None:
    nouns = {"rigs": "a rig", "presets": "a provider"}
    for key, names in known.items() if table is not None else ():
        assert table is not None  # noqa: S101  as above
        for name in table.get(key) or {}:
            if name not in names:
                found.wrong(table.at(key) / name, f"`{name}` is not {nouns[key]}{did_you_mean(name, names)}")


def _check_notifications(table: Table | None, found: Findings) -> None:
    if table is None:
        return
    destinations = table.tables("destinations")
    _unique(destinations, "destination", _name, found)
    for row in destinations:
        _check_destination(row, found)
    known = [*(_name(row) for row in destinations), "inbox", "none"]
    for name in table.get("to", ()):
        if name not in known and slack_destination(name) is None:
            found.wrong(table.at("to"), f"`{name}` is not a destination{did_you_mean(name, known)}")


def _check_oidc(table: Table | None, found: Findings) -> None:
    if table is None:
        return
    for key in ("issuer", "client_id"):
        if not table.get(key):
            found.wrong(table.place, f"people cannot sign in without `{key}`")


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _check_destination(row: Table, found: Findings) -> None:
    kind: str = row.get("kind", "")
    known = DESTINATION_KINDS.get(kind)
    if known is None:
        return
    for key in known.needs:
        if not row.get(key):
            found.wrong(row.place, f"{known.noun} needs `{key}`")
    if kind == "webhook" and not row.get("signing") and not row.get("signing_env"):
        found.wrong(
            row.place,
            "a webhook signs what it sends, and the secret for that is missing: keep it with `lamp secret set NAME` "
            'and write `signing = ["secret:NAME"]`, or name in `signing_env` the variable of the environment with it',
        )
    owners = {key: other.noun for other in reversed(list(DESTINATION_KINDS.values())) for key in other.keys}
    for key, owner in owners.items():
        if row.get(key) and key not in known.keys:
            found.wrong(row.at(key), f"is of {owner}; `{row.get('name', '')}` is {known.noun}")
    if kind == "email":
        _check_mail(row, found)
    if kind == "slack_dm_user" and (told := slack_user(row.get("user", ""))) is not None:
        found.wrong(row.at("user"), told)
    if kind == "webhook" and not row.get("allow_private") and _is_private(row.get("url", "")):
        found.remark(row.at("url"), "leads to this machine or a private network; that needs `allow_private = true`")


def _is_private(url: str) -> bool:
    """Whether the url names such an address itself; what other names lead to is known when something is sent."""
    host = urlsplit(url).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host in _LOOPBACK or host.endswith(".localhost")


def _check_mail(row: Table, found: Findings) -> None:
    if bool(row.get("user")) is not bool(row.get("password")):
        missing = "password" if row.get("user") else "user"
        found.wrong(row.at("kind"), f"`user` and `password` go together; `{missing}` is missing")
    if row.get("security") == "none" and row.get("host", "") not in _LOOPBACK:
        found.wrong(row.at("security"), "is `none`; only a server on this machine may be spoken to in the clear")


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


def _check_rig_paths(city: City, expanded: Table, found: Findings) -> None:
    taken: dict[str, str] = {}
    for rig, table in zip(city.rigs, expanded.tables("rigs"), strict=True):
        path = posixpath.normpath(city.rig_path(rig).as_posix())
        other = taken.setdefault(path, rig.name)
        if other != rig.name:
            found.note(table.at("path"), f"is the directory of rig `{other}` too; both work on the same files")


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
    _known(row, "fallback_preset", [*city.providers, *builtin_providers], "a provider", found)
    path: str = row.get("path", "")
    if remote(path) is not None:
        found.wrong(row.at("path"), f"`{path}` is remote; a run works in a directory of this machine")
    elif "\0" in path:
        found.wrong(row.at("path"), "holds a NUL, which no path can")
    if row.get("rig") and row.get("path"):
        found.wrong(row.at("path"), "a run works in a rig or in a path, not in both; leave one out")
    _check_preset(row, city, found)


def _check_preset(row: Table, city: City, found: Findings) -> None:
    """Tell what no run with this configuration can do; the run itself is refused for it before it starts."""
    name: str = row.get("preset", "")
    preset = None if name in city.providers else PRESETS.get(name)
    mode: str = row.get("mode", "")
    if preset is not None and preset.no_runs:
        found.note(row.at("preset"), f"no run can use it: {preset.no_runs}")
    elif preset is not None and mode in preset.refuses:
        found.note(row.at("mode"), f"no run can complete in mode `{mode}`: {preset.refuses[Mode(mode)]}")
    effort: str = row.get("effort", "")
    if preset is not None and effort and effort not in preset.efforts:
        found.note(row.at("effort"), f"no run can use it: {preset.title} cannot be told how hard to think")


def _check_dependencies(agents: Iterable[Agent], tables: list[Table], found: Findings) -> None:
    known = {agent.qualified_name: agent for agent in agents}
    for agent, table in zip(known.values(), tables, strict=False):
        for given in agent.depends_on:
            if not any(name in known for name in (given, f"{agent.dir}/{given}")):
                found.wrong(table.at("depends_on"), f"`{given}` is not an agent{did_you_mean(given, known)}")


def _check_circles(tables: list[Table], found: Findings) -> None:
    """Of the tables alone: a circle is told also where other keys of these agents are wrong."""
    known = {_agent_identity(table): table for table in tables if table.get("name")}
    edges: dict[str, list[str]] = {}
    for name, table in known.items():
        for given in table.get("depends_on", ()):
            edges[name] = edges.get(name, [])
            edges[name] += [one for one in (given, f"{table.get('dir', '')}/{given}") if one in known][:1]
    loop = _cycle(edges)
    if loop:
        found.wrong(known[loop[0]].at("depends_on"), f"goes round in a circle: {' → '.join(loop)}")


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
        _check_sessions(city, expanded.tables("agents"), place, found)
    except TemplateError as error:
        found.wrong(place, error.reason)
        return
    for agent, table in zip(city.agents, expanded.tables("agents"), strict=True):
        _check_commands(city, agent, table, found)
    for provider in expanded.named("providers").values():
        for argument in provider.get("args", ()):
            _renders(argument, {**provider_variables(city), MCP_FILE: ""}, provider.at("args"), found)


def _check_sessions(city: City, tables: list[Table], place: Place, found: Findings) -> None:
    taken: dict[str, str] = {}
    for agent, table in zip(city.agents, tables, strict=True):
        names = instance_names(agent)
        for instance in {*names[:1], *names[-1:]}:
            name = session_name(city, instance)
            if not names_a_session(name):
                shown = f"{name[:40]}…" if len(name) > 40 else name
                told = f"gives it the session `{shown}`; {SESSION_NAMES}, the city's name and `dir` included"
                found.wrong(table.at("name"), told)
                break
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
        "args": agent.args or (),
    }
    templates = [(key, text) for key, values in texts.items() for text in values if "{{" in text]
    if not templates:
        return
    variables = {**command_variables(city, agent, agent.qualified_name), MCP_FILE: ""}
    for key, text in templates:
        _renders(text, variables, table.at(key), found)


def _renders(text: str, variables: Mapping[str, object], place: Place, found: Findings) -> bool:
    try:
        expand(text, variables)
    except TemplateError as error:
        found.wrong(place, error.reason)
        return False
    return True
