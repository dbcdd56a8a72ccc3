"""Names derived from other names: bead prefixes, qualified names, pool instances."""

import re
from collections.abc import Iterable

from lamplighter.kit.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.city.model import Agent, City  # commands use these names without a configuration

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def derived_prefix(name: str) -> str:
    """`gas-town` gives `gt`, `storefront` gives `st`, `api` stays: initials of the parts, else the first letters."""
    stem = re.sub(r"-(?:py|go)\Z", "", name)
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", stem) if part]
    if len(parts) == 1:
        parts = _CAMEL.findall(parts[0])
    if len(parts) >= 2:
        return "".join(part[0] for part in parts).lower()
    word = "".join(parts).lower() or "hq"
    return word if len(word) <= 3 else word[:2]


def bead_prefix(city: "City", rig: str | None) -> str:
    """The prefix of bead ids in the rig, or in the city for None. Raises NotFound for an unknown rig."""
    if not rig:
        return city.prefix
    found = city.rig(rig)
    if found is None:
        raise NotFound(f"There is no rig `{rig}`.", hint="`lamp rig list` shows those there are.")
    return found.prefix


def split_qualified(qualified: str) -> tuple[str, str]:
    """Split into `dir` and `name` at the last slash."""
    directory, _, name = qualified.rpartition("/")
    return directory, name


def instance_names(agent: "Agent") -> tuple[str, ...]:
    """Qualified names of every instance an agent may have: itself, or `name-1` to `name-N` for a larger pool."""
    if agent.pool is None or agent.pool.max == 1:
        return (agent.qualified_name,)
    if agent.pool.max < 1:
        return ()
    return tuple(f"{agent.qualified_name}-{number}" for number in range(1, agent.pool.max + 1))


def find_agent(agents: "Iterable[Agent]", given: str, *, rig: str = "") -> "tuple[Agent, str] | None":
    """The agent meant by `given`, and the qualified name of the instance; None if there is none.

    Tried in this order: the exact name, an instance of a pool, then both again within `rig`.
    """
    known = list(agents)
    for name in filter(None, (given, f"{rig}/{given}" if rig else "")):
        for agent in known:
            if agent.qualified_name == name:
                return agent, name
        for agent in known:
            if agent.pool is not None and agent.pool.max > 1 and _is_instance(name, agent):
                return agent, name
    return None


def _is_instance(name: str, agent: "Agent") -> bool:
    stem, _, number = name.rpartition("-")
    if stem != agent.qualified_name or not number.isascii() or not number.isdigit() or number.startswith("0"):
        return False
    return len(number) < 10 and agent.pool is not None and 1 <= int(number) <= agent.pool.max
