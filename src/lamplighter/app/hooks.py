"""What an agent asks for from inside its session and only its files and its own work query can tell."""

import os
from datetime import timedelta

from lamplighter.adapters.files.workshop import branches_of, with_own
from lamplighter.adapters.processes.child import Call, NotStarted, TookTooLong, TooMuchOutput, run_child_here
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import work_dir, work_query
from lamplighter.kit.errors import LampError

QUERY_LIMIT = timedelta(seconds=30)


class QueryFailed(LampError):
    """An agent's own work query failed or took too long."""


def prompt_of(city: OpenCity, agent: Agent, name: str) -> str:
    """The agent's prompt, rendered; empty if it has none."""
    branches = branches_of(work_dir(city.config.city, agent))
    return city.config.prompt(agent, name, env=agent.env, branches=branches)


def queried(city: OpenCity, agent: Agent, name: str) -> str:
    """What the agent's own work query prints; blocks up to QUERY_LIMIT. Raises QueryFailed."""
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
