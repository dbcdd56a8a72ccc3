"""Plans an agent run: its directory, program, model, mode and environment."""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.automations.policies import Budget
from lamplighter.domain.city.model import Agent, City, Configuration, Provider
from lamplighter.domain.city.names import find_agent, instance_names
from lamplighter.domain.city.providers import known_providers
from lamplighter.domain.city.run_sections import RigWorkspace
from lamplighter.domain.city.session_env import passed_on
from lamplighter.domain.city.variables import provider_variables, session_name, work_dir
from lamplighter.domain.sessions.presets.catalogue import PRESETS, Declared, PromptMode, declared, detect
from lamplighter.domain.sessions.presets.model import Counts, Effort, Mode, Preset
from lamplighter.domain.sessions.presets.spoken import SPOKEN
from lamplighter.kit.errors import LampError
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record

SHELL = "shell"
_OTHER = "Choose another preset."


class CannotRun(LampError):
    """The run cannot be started as declared; `reason` becomes the reason of its failure."""

    def __init__(self, reason: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@record
class RunPlan:
    """`instructions` is the automation's own prompt; the full prompt is built from it once the run's files exist.

    `prompt_files` follow it; a relative one is below one of `prompt_folders`, and all of them are below one of these.
    `fallback` says that another preset or model is named for a limit of the provider.
    """

    directory: Path
    preset: Preset
    instructions: str
    rig: str | None = None
    model: str = ""
    mode: Mode = Mode.FULL_ACCESS
    env: Mapping[str, str] = field(default_factory=dict)
    isolation: str = "worktree"
    effort: Effort | None = None
    prompt_files: tuple[str, ...] = ()
    prompt_folders: tuple[Path, ...] = ()
    home: Path | None = None
    fallback: bool = False
    workspace: RigWorkspace | None = None
    plans: bool = False
    """It only plans, whatever mode is named for what comes after."""
    speaks_to: str = ""
    """The session of the agent that is told the run; empty for a run with a program of its own."""


def run_plan(
    city: City,
    automation: Automation,
    configuration: Configuration | None,
    installed: Callable[[str], bool],
    *,
    instead: bool = False,
    plans: bool = False,
) -> RunPlan:
    """Values of the automation win over its configuration, and those over the city. Raises CannotRun.

    Exceptions: the configuration's rig wins over the automation's, and so does its mode over `full_access`, the
    default. `instead` asks for the fallback that is named for a limit of the provider, `plans` for a run that makes a
    plan to be approved.
    """
    action = automation.action
    if not isinstance(action, AgentAction):
        raise CannotRun("no_prompt", f"{automation.scoped_name} has no agent action.")
    if action.agent is not None:
        return _spoken(city, automation, action, action.agent)
    chosen = configuration or Configuration(name="-")
    first = action.preset or chosen.preset
    other = action.fallback_preset or chosen.fallback_preset
    preset = chosen_preset(city, (other or first) if instead else first, installed)
    mode = mode_of(action, chosen)
    effort = Effort(action.effort or chosen.effort) if action.effort or chosen.effort else None
    counted = _counted(automation.policies.budget, city)
    _must_fit(preset, mode, counted)
    if plans:
        _must_fit(preset, Mode.PLAN, counted)
    if effort is not None and not (instead and other):
        _must_take(preset, effort)
    home = city.root / chosen.home if chosen.home else None
    model = action.fallback_model or chosen.fallback_model if instead else action.model or chosen.model
    return RunPlan(
        directory=_directory(city, automation, action, chosen),
        preset=preset,
        instructions=action.prompt,
        rig=chosen.rig or automation.rig or None,
        model=model,
        mode=Mode.PLAN if plans else mode,
        plans=plans,
        env={**chosen.env, **automation.policies.env, **({} if home is None else {_home_variable(preset): str(home)})},
        isolation=city.runs.isolation,
        effort=effort if effort in preset.efforts else None,
        prompt_files=(*((action.prompt_file,) if action.prompt_file else ()), *action.includes),
        prompt_folders=_prompt_folders(city, automation),
        home=home,
        fallback=bool(other or action.fallback_model or chosen.fallback_model),
        workspace=_workspace(city, chosen.rig or automation.rig),
    )


def _spoken(city: City, automation: Automation, action: AgentAction, name: str) -> RunPlan:
    found = spoken_to(city, name, automation.rig)
    if found is None:
        raise CannotRun(
            "agent_missing",
            f"There is no agent `{name}` in city.toml.",
            hint="`lamp agent list` shows those there are.",
        )
    agent, session = found
    return RunPlan(
        directory=work_dir(city, agent),
        preset=SPOKEN,
        instructions=action.prompt,
        rig=automation.rig,
        isolation="none",
        prompt_files=(*((action.prompt_file,) if action.prompt_file else ()), *action.includes),
        prompt_folders=_prompt_folders(city, automation),
        speaks_to=session,
    )


def spoken_to(city: City, name: str, rig: str | None) -> tuple[Agent, str] | None:
    """The agent of that name and its session; None if there is none, or if it is a pool of several."""
    found = find_agent(city.agents, name, rig=rig or "")
    if found is None or found[1] not in instance_names(found[0]):
        return None
    return found[0], session_name(city, found[1])


def mode_of(action: AgentAction, chosen: Configuration) -> Mode:
    if chosen.mode and (action.mode is None or action.mode.value == Mode.FULL_ACCESS):
        return Mode(chosen.mode)
    return Mode.FULL_ACCESS if action.mode is None else Mode(action.mode.value)


def _home_variable(preset: Preset) -> str:
    return "HOME" if preset.login is None else preset.login.variable


def _prompt_folders(city: City, automation: Automation) -> tuple[Path, ...]:
    """Where files of prompts are looked for: beside the automation's own file, in its rig, and in the city."""
    own = (Path(automation.path).parent,) if automation.path else ()
    rig = city.rig(automation.rig) if automation.rig else None
    return (*own, *(() if rig is None else (city.rig_path(rig),)), city.root)


def _must_take(preset: Preset, effort: Effort) -> None:
    if effort not in preset.efforts:
        takes = ", ".join(f"`{one}`" for one in preset.efforts)
        raise CannotRun(
            "effort_not_offered",
            f"{preset.title} cannot be told to think with effort `{effort}`.",
            hint=f"Set `effort` to {takes}." if takes else "Leave `effort` out, or choose another preset.",
        )


def _workspace(city: City, rig: str | None) -> RigWorkspace | None:
    found = city.rig(rig) if rig else None
    return None if found is None else found.workspace


def _counted(budget: Budget, city: City) -> dict[str, tuple[object, object]]:
    """The limits on cost and on tokens, by the key that sets them."""
    return {
        "budget": (budget.cost, budget.tokens),
        "budget.day": (budget.day_cost, budget.day_tokens),
        "city.toml: budget.day": (city.budget.day_cost, city.budget.day_tokens),
    }


def _must_fit(preset: Preset, mode: Mode, limits: Mapping[str, tuple[object, object]]) -> None:
    """Raises CannotRun for a mode in which the program can never complete, and for a budget that cannot be kept."""
    if mode in preset.refuses:
        offered = ", ".join(f"`{one}`" for one in Mode if one not in preset.refuses)
        raise CannotRun(
            "mode_not_offered", f"{preset.title} cannot complete a run in mode `{mode}`: {preset.refuses[mode]}.",
            hint=f"Set `mode` to {offered}, or choose another preset.",
        )  # fmt: skip
    for key, (cost, tokens) in limits.items():
        limited = _not_counted(preset, cost, tokens)
        if limited:
            joint = "_" if key.endswith("day") else "."
            raise CannotRun(
                "budget_not_counted",
                f"{preset.title} does not tell what it used, so `{key}{joint}{limited}` could not be kept.",
                hint=f"Set `{key}{joint}time` instead, or choose another preset.",
            )


def _not_counted(preset: Preset, cost: object, tokens: object) -> str:
    """The limit that the program's output says nothing about, if any."""
    if cost is not None and preset.counts is not Counts.COST:
        return "cost"
    return "tokens" if tokens is not None and preset.counts is Counts.NOTHING else ""


def run_environment(city: City, plan: RunPlan, *, parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Later wins: variables passed on from the parent, the program's keys, the configuration's `env`, city, directory
    and rig, then `own`, the run's identity.
    """
    keys = {name: parent[name] for name in plan.preset.keys if parent.get(name)}
    place = {"CITY": str(city.root), "DIR": str(plan.directory)} | ({"RIG": plan.rig} if plan.rig else {})
    both = {f"{family}_{name}": value for family in ("GC", "LAMP") for name, value in place.items()}
    return {**passed_on(parent), **keys, **plan.env, **both, **own}


def _directory(city: City, automation: Automation, action: AgentAction, chosen: Configuration) -> Path:
    rig = chosen.rig or automation.rig
    found = city.rig(rig) if rig else None
    if rig and found is None:
        raise CannotRun("rig_unknown", f"There is no rig `{rig}`.", hint="`lamp rig list` shows those there are.")
    base = city.root if found is None else city.rig_path(found)
    path = action.path or chosen.path
    return base / path if path else base


def chosen_preset(city: City, named: str, installed: Callable[[str], bool]) -> Preset:
    """The preset of that name, else the workspace's, else the first one that is installed. Raises CannotRun."""
    name = named or city.workspace.provider
    if not name:
        own = next((key for key, one in city.providers.items() if installed(one.command)), "")
        found = detect(installed)
        name = own or ("" if found is None else found.name)
    if not name:
        raise CannotRun(
            "program_missing", "No agent program is named, and none is on the path.",
            hint="Set `preset`, or `[workspace] provider`.",
        )  # fmt: skip
    preset = named_preset(city, name)
    if preset is None:
        near = did_you_mean(name, known_providers(city))
        raise CannotRun("preset_unknown", f"There is no preset `{name}`{near}.".replace("?.", "?"))
    if preset.no_runs:
        raise CannotRun("cannot_complete", f"{preset.no_runs[0].upper()}{preset.no_runs[1:]}.", hint=_OTHER)
    if preset.headless is None:
        raise CannotRun("not_headless", f"{preset.title} cannot run without a terminal.", hint=_OTHER)
    if not installed(preset.program):
        raise CannotRun(
            "program_missing", f"`{preset.program}` is not on the path.",
            hint="Install it; if your shell finds it, `lamp daemon restart` lets the daemon find it too.",
        )  # fmt: skip
    return preset


def named_preset(city: City, name: str) -> Preset | None:
    """The city's own program of that name, else the preset; None if there is neither."""
    return declared(_declared(name, city.providers[name], city)) if name in city.providers else PRESETS.get(name)


def _declared(name: str, provider: Provider, city: City) -> Declared:
    return Declared(
        name=name,
        command=provider.command,
        title=provider.display_name,
        args=provider.args,
        prompt_mode=PromptMode(provider.prompt_mode),
        prompt_flag=provider.prompt_flag,
        ready_delay=timedelta(0),
        process_names=provider.process_names,
        env=provider.env,
        variables=provider_variables(city),
    )
