"""Whether the agent program of an automation can complete a run in its mode, and make a plan that a person approves."""

from collections.abc import Iterator, Mapping

from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.city.names import find_agent
from lamplighter.domain.city.run_plan import mode_of, named_preset
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Mode
from lamplighter.kit.nearest import did_you_mean


def cannot_plan(city: City, action: AgentAction, configurations: Mapping[str, Configuration]) -> str:
    """Why a plan cannot be made, or not be carried out; empty if both can be, or if the program is not known yet."""
    if action.session is not None:  # the program is that of its conversation
        return ""
    for one in _chosen(action, configurations):
        if mode_of(action, one) is Mode.PLAN:
            return f"the configuration `{one.name}` has the mode `plan`, in which no plan would be carried out"
        for preset in _presets(city, action, one):
            if why := _refused(city, preset):
                return why
    return ""


def mode_refused(city: City, action: AgentAction, configurations: Mapping[str, Configuration]) -> str:
    """Why a program cannot complete a run in the mode it would get; empty if it can, or is not known yet."""
    if action.session is not None or action.agent is not None:
        return ""
    for one in _chosen(action, configurations):
        mode = mode_of(action, one)
        for name in _presets(city, action, one):
            preset = named_preset(city, name)
            if preset is not None and mode in preset.refuses:
                offered = " or ".join(f"`{other}`" for other in Mode if other not in preset.refuses)
                why = f"{preset.title} cannot complete a run in mode `{mode}`: {preset.refuses[mode]}"
                return f"{why}; set it to {offered}, or choose another preset"
    return ""


def not_spoken_to(city: City, name: str, rig: str | None) -> str:
    """Why a run cannot be told to the agent of that name, as a rig sees it; empty if it can."""
    found = find_agent(city.agents, name, rig=rig or "")
    if found is None:
        known = [one.qualified_name for one in city.agents]
        return f"there is no agent `{name}` in city.toml{did_you_mean(name, known)}"
    agent, full = found
    if agent.pool is not None and agent.pool.max != 1 and full == agent.qualified_name:
        return f"`{full}` is a pool; name one of its instances, such as `{full}-1`, or give it work by `formula`"
    return ""


def _chosen(action: AgentAction, configurations: Mapping[str, Configuration]) -> list[Configuration]:
    named = [one for one in (action.configuration, action.fallback, *action.configurations) if one is not None]
    return [configurations[one] for one in named if one in configurations] or [Configuration(name="-")]


def _presets(city: City, action: AgentAction, chosen: Configuration) -> Iterator[str]:
    for one in (
        action.preset or chosen.preset or city.workspace.provider,
        action.fallback_preset or chosen.fallback_preset,
    ):
        if one:
            yield one


def _refused(city: City, name: str) -> str:
    if name in city.providers:
        return f"how {name} is told to plan only is not known"
    preset = PRESETS.get(name)
    if preset is None:
        return ""  # told as a name that is not there
    if preset.no_runs or preset.headless is None:
        return preset.no_runs or f"{preset.title} cannot run without a terminal"
    if Mode.PLAN in preset.refuses:
        return f"{preset.title} cannot plan without a person beside it: {preset.refuses[Mode.PLAN]}"
    return ""
