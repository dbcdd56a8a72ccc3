"""What an agent asks for from inside its session: its instructions and the work on its hook."""

import os
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.adapters.files.workshop import branches_of, with_own
from lamplighter.adapters.processes.child import Call, NotStarted, TookTooLong, TooMuchOutput, run_child_here
from lamplighter.app.agents import Agents, Named
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.beads.model import POOL_LABEL, Bead, BeadFilter, BeadStatus
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import work_dir, work_query
from lamplighter.kit.errors import LampError, NotFound

QUERY_LIMIT = timedelta(seconds=30)
MOST = 20

GENERIC = """\
# You are an agent of the city `{city}`

- `lamp hook` shows the work on your hook. If there is some, do it now, without asking.
- `lamp bead show ID` tells all about a piece of work; `lamp bead claim ID` takes it; `lamp bead close ID` ends it.
- `lamp mail inbox` shows your mail; `lamp mail send NAME TEXT` writes to another agent, or to `human`.
- `lamp agent drain-check` succeeds when you are asked to finish: end what you do, then `lamp agent drain-ack`.
- `lamp agent request-restart` gives you a fresh session when your context runs out; your work stays on your hook.
"""


@dataclass(frozen=True)
class Hook:
    """The work on an agent's hook: the output of its work query, or beads."""

    text: str
    beads: tuple[Bead, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip())


NOTHING = Hook("")


def on_hook(city: OpenCity, given: str | None) -> Hook:
    """The work of the agent; nothing for one that is suspended or not declared.

    Raises NotFound, and QueryFailed if the agent's own work query fails.
    """
    agents = Agents(city)
    who = agents.named(given)
    if who.agent is None or agents.is_suspended(who.agent):
        return NOTHING
    if who.agent.work_query:
        return Hook(_queried(city, who.agent, who.name))
    found = _beads(city, who, who.agent)
    return Hook("\n".join(f"{bead.id}  {bead.status.value:<11}  {bead.title}" for bead in found), found)


def prompt_of(city: OpenCity, given: str | None) -> str:
    """The agent's rendered prompt, empty if it is suspended; the generic one if it has none or no agent is named."""
    agents = Agents(city)
    try:
        who = agents.named(given)
    except NotFound:
        if given:
            raise
        return GENERIC.format(city=city.config.city.name)
    if who.agent is None:
        return GENERIC.format(city=city.config.city.name)
    if agents.is_suspended(who.agent):
        return ""
    branches = branches_of(work_dir(city.config.city, who.agent))
    text = city.config.prompt(who.agent, who.name, env=who.agent.env, branches=branches)
    return text if text.strip() else GENERIC.format(city=city.config.city.name)


class QueryFailed(LampError):
    """An agent's own work query failed or took too long."""


def _beads(city: OpenCity, who: Named, agent: Agent) -> tuple[Bead, ...]:
    """Beads in progress come first, so that a fresh session continues where the last one ended; then ready ones.

    A member of a pool that has neither gets one unassigned bead of its pool.
    """
    held = city.beads.matching(BeadFilter(status=BeadStatus.IN_PROGRESS, assignee=who.name), limit=MOST)
    given = city.beads.ready(assignee=who.name, limit=MOST)
    pool: tuple[Bead, ...] = ()
    if agent.pool is not None and not held and not given:
        label = f"{POOL_LABEL}{agent.qualified_name}"
        pool = tuple(bead for bead in city.beads.ready(label=label, limit=MOST) if not bead.assignee)[:1]
    found = {bead.id: bead for bead in (*reversed(held), *given, *pool)}
    return tuple(found.values())


def _queried(city: OpenCity, agent: Agent, name: str) -> str:
    place = work_dir(city.config.city, agent)
    parent = {**city.settings.env, "PATH": with_own(city.settings.env.get("PATH", os.defpath))}
    env = session_environment(city.config.city, agent, name, parent=parent, preset={}, work_dir=place)
    where = place if place.is_dir() else city.paths.root
    query = work_query(agent)
    try:
        ended = run_child_here(Call(("/bin/sh", "-c", query), where, env, QUERY_LIMIT))
    except TookTooLong as error:
        raise QueryFailed(f"The work query of `{name}` took longer than {error.seconds:g} s.", hint=query) from None
    except (NotStarted, TooMuchOutput) as error:
        raise QueryFailed(f"The work query of `{name}` failed: {error.message}", hint=query) from error
    out, err = (text.decode(errors="replace") for text in (ended.output, ended.complaint))
    if ended.exit_code and not out.strip():
        if err.strip():
            raise QueryFailed(
                f"The work query of `{name}` ended with status {ended.exit_code}: {err.strip()[-500:]}", hint=query
            )
        return ""
    return out
