"""Chooses the program an agent runs: its own command, its provider, the workspace's, or the first one installed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lamplighter.domain.city.model import Agent, City, Provider
from lamplighter.domain.city.presets import NOT_DETECTED, builtin_providers
from lamplighter.kit.errors import LampError
from lamplighter.kit.nearest import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Program:
    """How one agent is started: a shell command of its own, or a program with arguments."""

    provider: str = ""
    shell: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    prompt_mode: str = "arg"
    prompt_flag: str = ""
    ready_delay_ms: int | None = None
    ready_prompt_prefix: str = ""
    process_names: tuple[str, ...] = ()
    emits_permission_warning: bool = False
    env: Mapping[str, str] = field(default_factory=dict)


class NoProgram(LampError):
    """An agent cannot be started: no provider is named, or its program is not installed."""


def known_providers(city: City) -> Mapping[str, Provider]:
    """Built-in providers and the city's; one of the city's fully replaces a built-in one of the same name."""
    return {**builtin_providers, **city.providers}


def declared_program(city: City, agent: Agent, detected: str = "") -> Program | None:
    """The program that is declared, or None; `detected` is the provider to use if none is named."""
    if agent.start_command:
        return Program(shell=agent.start_command, prompt_mode=agent.prompt_mode or "arg", prompt_flag=agent.prompt_flag,
                       env=agent.env)  # fmt: skip
    name = agent.provider or city.workspace.provider
    if not name and city.workspace.start_command:
        return Program(shell=city.workspace.start_command, env=agent.env)
    provider = known_providers(city).get(name or detected)
    return None if provider is None else _with_agent(name or detected, provider, agent)


def program(city: City, agent: Agent, installed: Callable[[str], bool]) -> Program:
    """The program of an agent; `installed` says whether a command is on the path. Raises NoProgram."""
    found = declared_program(city, agent)
    if found is None and not (agent.provider or city.workspace.provider):
        found = declared_program(city, agent, _detected(city, installed))  # the only case that searches the whole path
    if found is None:
        name = agent.provider or city.workspace.provider
        said = f"names provider `{name}`, which is not known{did_you_mean(name, known_providers(city))}"
        raise NoProgram(
            f"Agent `{agent.qualified_name}` {said if name else 'names no provider, and none is on the path'}.",
            hint="Set `workspace.provider`, or install one of: " + ", ".join(builtin_providers) + ".",
        )
    if found.command and not installed(found.command):
        raise NoProgram(
            f"Agent `{agent.qualified_name}` needs `{found.command}`, which is not on the path.",
            hint="Install it, or set another `provider` or `start_command`.",
        )
    return found


def _detected(city: City, installed: Callable[[str], bool]) -> str:
    found = (name for name, known in known_providers(city).items() if installed(known.command))
    return next((name for name in found if name not in NOT_DETECTED or name in city.providers), "")


def _with_agent(name: str, provider: Provider, agent: Agent) -> Program:
    return Program(
        provider=name,
        command=provider.command,
        args=provider.args if agent.args is None else agent.args,
        prompt_mode=agent.prompt_mode or provider.prompt_mode,
        prompt_flag=agent.prompt_flag or provider.prompt_flag,
        ready_delay_ms=provider.ready_delay_ms if agent.ready_delay_ms is None else agent.ready_delay_ms,
        ready_prompt_prefix=agent.ready_prompt_prefix or provider.ready_prompt_prefix,
        process_names=provider.process_names if agent.process_names is None else agent.process_names,
        emits_permission_warning=provider.emits_permission_warning
        if agent.emits_permission_warning is None
        else agent.emits_permission_warning,
        env={**provider.env, **agent.env},
    )
