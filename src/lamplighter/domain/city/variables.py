"""Variables and functions for agents' templates: commands, prompts, directories and session names."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from lamplighter.domain.city.model import Agent, City, Rig
from lamplighter.domain.city.names import split_qualified
from lamplighter.kit.records import record
from lamplighter.kit.text import expand

_FIELD = re.compile(r"\{\{\s*\.(\w+)\s*\}\}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


@record
class Branches:
    """The git branches of a working directory; empty if there is no repository."""

    current: str = ""
    default: str = ""


NO_REPOSITORY = Branches()


def rig_of(city: City, agent: Agent) -> Rig | None:
    """The rig an agent belongs to, found by name, never by comparing directories."""
    return city.rig(agent.dir) if agent.dir else None


def work_dir(city: City, agent: Agent) -> Path:
    """Where an agent works: its rig's path, else its own directory under the city."""
    rig = rig_of(city, agent)
    if rig is not None:
        return city.rig_path(rig)
    return city.root / expand(agent.dir, dir_variables(city, agent), file="dir")


def dir_variables(city: City, agent: Agent) -> dict[str, object]:
    return {"Agent": agent.name, "Rig": agent.dir, "CityRoot": str(city.root), "CityName": city.name}


def session_variables(city: City, instance: str) -> dict[str, object]:
    directory, name = split_qualified(instance)
    return {"City": city.name, "Agent": instance.replace("/", "--"), "Dir": directory, "Name": name}


def session_name(city: City, instance: str) -> str:
    """The session name of one instance, valid for every session provider. Raises TemplateError for a bad template."""
    given = expand(city.workspace.session_template, session_variables(city, instance), file="session_template")
    return _UNFIT.sub("-", given)


def provider_variables(city: City) -> dict[str, object]:
    """Variables for the arguments of `[providers]`, in agents and in runs."""
    return {"CityRoot": str(city.root), "CityName": city.name}


def pool_check(city: City, agent: Agent) -> str:
    """The command of a pool's check with the variables of commands filled in.

    All else in double braces is left as it is: such commands often contain templates of other programs.
    """
    command = agent.pool.check if agent.pool is not None else ""
    if "{{" not in command:
        return command
    variables = command_variables(city, agent, agent.qualified_name)
    return _FIELD.sub(lambda found: str(variables.get(found[1], found[0])), command)


def command_variables(city: City, agent: Agent, instance: str) -> dict[str, object]:
    """Variables for `pre_start`, `session_setup`, `start_command` and an agent's `args`."""
    rig = rig_of(city, agent)
    return {
        "Session": session_name(city, instance),
        "Agent": instance,
        "Rig": rig.name if rig is not None else "",
        "CityRoot": str(city.root),
        "CityName": city.name,
        "WorkDir": str(work_dir(city, agent)),
        "ConfigDir": str(agent.config_dir if agent.config_dir != Path() else city.root),
    }


def prompt_variables(
    city: City, agent: Agent, instance: str, *, env: Mapping[str, str], branches: Branches = NO_REPOSITORY
) -> dict[str, object]:
    """Variables for prompts: those of `env`, overridden by the names that are always defined."""
    rig = rig_of(city, agent)
    return {
        **env,
        "CityRoot": str(city.root),
        "AgentName": instance,
        "TemplateName": agent.qualified_name,
        "RigName": rig.name if rig is not None else "",
        "WorkDir": str(work_dir(city, agent)),
        "IssuePrefix": rig.prefix if rig is not None else city.prefix,
        "Branch": branches.current,
        "DefaultBranch": branches.default,
        "WorkQuery": work_query(agent),
        "SlingQuery": sling_query(agent),
    }


def prompt_functions(city: City) -> dict[str, Callable[..., object]]:
    return {
        "cmd": lambda: "lamp",
        "session": lambda agent: session_name(city, agent),
        "basename": lambda qualified: split_qualified(qualified)[1],
    }


def work_query(agent: Agent) -> str:
    """The command that finds an agent's work."""
    if agent.work_query:
        return agent.work_query
    if agent.pool is None:
        return f"lamp bead ready --assignee={shlex.quote(agent.qualified_name)}"
    return f"lamp bead ready --label={shlex.quote(f'pool:{agent.qualified_name}')} --limit=1"


def sling_query(agent: Agent) -> str:
    """The command that gives an agent work; `{}` stands for the bead."""
    if agent.sling_query:
        return agent.sling_query
    if agent.pool is None:
        return f"lamp bead update {{}} --assignee={shlex.quote(agent.qualified_name)}"
    return f"lamp bead label {{}} --add={shlex.quote(f'pool:{agent.qualified_name}')}"
