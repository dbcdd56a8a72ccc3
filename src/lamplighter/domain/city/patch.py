"""Applies patches and rig overrides to what other files declare; a target that does not exist is a problem."""

from collections.abc import Iterable, Mapping

from lamplighter.domain.city.keys import keys_of
from lamplighter.domain.city.merge import AGENT_PATHS
from lamplighter.domain.city.model import Pool, Provider
from lamplighter.domain.city.paths import from_city
from lamplighter.domain.city.presets import builtin_providers
from lamplighter.domain.city.tree import Findings, Leaf, Origin, Place, Table
from lamplighter.kit.nearest import did_you_mean

_BUILT_IN = Place(Origin("preset", "built-in provider"))


def changed(table: Table, change: Table, *, target: Iterable[str]) -> Table:
    """`table` with the values that `change` sets; unset keys and empty lists change nothing."""
    leaves = dict(table.leaves)
    for name, leaf in change.leaves.items():
        if name in target or name in {"env_remove", "_replace"} or leaf.value == ():
            continue
        leaves[name] = _changed_leaf(name, leaves.get(name), leaf)
    if gone := change.get("env_remove", ()):
        env = {name: value for name, value in table.get("env", {}).items() if name not in gone}
        leaves["env"] = Leaf({**env, **change.get("env", {})}, change.at("env_remove"))
    return Table(table.section, table.place, leaves)


def _changed_leaf(name: str, old: Leaf | None, new: Leaf) -> Leaf:
    if name == "env":
        return Leaf({**(old.value if old else {}), **new.value}, new.place)
    if name == "pool":
        before = old.value if old else Table(Pool, new.place)
        return Leaf(before.having(new.value.leaves), old.place if old else new.place)
    if name in AGENT_PATHS:
        return Leaf(from_city(new.value), new.place)
    return new


def patch_agents(agents: list[Table], patches: Iterable[Table], rigs: Iterable[str], found: Findings) -> list[Table]:
    """Agents with their patches applied; patches cannot target agents of rig topologies, and the problem says so."""
    at = {(agent.get("dir", ""), agent.get("name", "")): index for index, agent in enumerate(agents)}
    out = list(agents)
    known_rigs = set(rigs)
    for patch in patches:
        if "name" not in patch.leaves:
            continue  # reported when the patch was read
        identity = (patch.get("dir", ""), patch.get("name"))
        index = at.get(identity)
        if index is None:
            found.wrong(patch.at("name"), _no_agent(identity, at, known_rigs))
        else:
            out[index] = changed(out[index], patch, target=("dir", "name"))
    return out


def override_agents(agents: list[Table], rig: Table, found: Findings) -> list[Table]:
    """The agents of one rig with the rig's overrides applied."""
    at = {agent.get("name", ""): index for index, agent in enumerate(agents)}
    out = list(agents)
    for override in rig.tables("overrides"):
        name = override.get("agent")
        if name is None:
            continue
        index = at.get(name)
        if index is None:
            message = f"`{name}` is not an agent of rig `{rig.get('name', '')}`{did_you_mean(name, at)}"
            found.wrong(override.at("agent"), message)
        else:
            out[index] = changed(out[index], override, target=("agent",))
    return out


def patch_rigs(rigs: list[Table], patches: Iterable[Table], found: Findings) -> list[Table]:
    at = {rig.get("name", ""): index for index, rig in enumerate(rigs)}
    out = list(rigs)
    for patch in patches:
        name = patch.get("name")
        if name is None:
            continue
        if name not in at:
            found.wrong(patch.at("name"), f"`{name}` is not a rig{did_you_mean(name, at)}")
        else:
            out[at[name]] = changed(out[at[name]], patch, target=("name",))
    return out


def patch_providers(providers: Mapping[str, Table], patches: Iterable[Table], found: Findings) -> dict[str, Table]:
    """Providers with their patches applied; a patched built-in provider is added to the city's own providers."""
    out = dict(providers)
    for patch in patches:
        name = patch.get("name")
        if name is None:
            continue
        base = out.get(name) or (_table_of(builtin_providers[name]) if name in builtin_providers else None)
        if base is None:
            known = [*out, *builtin_providers]
            found.wrong(patch.at("name"), f"`{name}` is not a provider{did_you_mean(name, known)}")
        else:
            start = Table(Provider, patch.place) if patch.get("_replace") else base
            out[name] = changed(start, patch, target=("name",))
    return out


def _table_of(provider: Provider) -> Table:
    """A built-in provider as if a file had declared it."""
    given = {name: getattr(provider, name) for name in keys_of(Provider)}
    defaults = {name: key.default for name, key in keys_of(Provider).items()}
    leaves = {name: Leaf(value, _BUILT_IN / name) for name, value in given.items() if value != defaults[name]}
    return Table(Provider, _BUILT_IN, leaves)


def _no_agent(identity: tuple[str, str], at: Mapping[tuple[str, str], int], rigs: set[str]) -> str:
    spelled = "/".join(filter(None, identity))
    near = did_you_mean(spelled, ["/".join(filter(None, known)) for known in at])
    if identity[0] in rigs and not near:
        return f"`{spelled}` is not an agent that patches reach; for one of a rig's topology use `[[rigs.overrides]]`"
    return f"`{spelled}` is not an agent{near}"
