"""Which agent a request means: by its name, as instance of a pool, within a rig, or by its session."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.names import find_agent
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.errors import NotFound
from lamplighter.kit.nearest import full_stop
from lamplighter.services.agents.seen import agents_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class Named:
    """The agent that a request names: its declaration, if it has one, its full name and its session."""

    agent: Agent | None
    name: str
    session: SessionName


async def named(host: "Host", name: str, rig: str | None, now: datetime) -> Named:
    """`rig` is where the name is looked for too. Raises NotFound."""
    roster = host.roster
    found = find_agent(roster.city.agents, name, rig=rig or "")
    if found is not None:
        agent, full = found
        return Named(agent, full, roster.sessions.get(full, SessionName("")))
    for one in await agents_of(host, now):
        if name in {one.name, one.session} and one.session:
            return Named(None, one.name, SessionName(one.session))
    raise NotFound(
        f"There is no agent `{name}`{full_stop(name, list(roster.declared))}",
        hint="`lamp agent list` shows those there are.",
    )


async def own(host: "Host", name: str | None, session: str | None, rig: str | None, now: datetime) -> Named:
    """An agent that speaks of itself; `session` is the name of the session from which it does. Raises NotFound."""
    if not name:
        raise NotFound("No agent is named, and this is not an agent's session.", hint="Name one.")
    found = await named(host, name, rig, now)
    return Named(found.agent, found.name, SessionName(session)) if session else found
