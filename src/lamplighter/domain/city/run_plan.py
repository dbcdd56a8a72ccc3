"""Plans an agent run: its directory, program, model, mode and environment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.city.model import City, Configuration, Provider
from lamplighter.domain.city.providers import known_providers
from lamplighter.domain.city.session_env import passed_on
from lamplighter.domain.sessions.presets.catalogue import PRESETS, Declared, PromptMode, declared, detect
from lamplighter.domain.sessions.presets.model import Mode, Preset
from lamplighter.kit.errors import LampError
from lamplighter.kit.nearest import did_you_mean

SHELL = "shell"


class CannotRun(LampError):
    """The run cannot be started as declared; `reason` becomes the reason of its failure."""

    def __init__(self, reason: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@dataclass(frozen=True)
class RunPlan:
    """`instructions` is the automation's own prompt; the full prompt is built from it once the run's files exist."""

    directory: Path
    preset: Preset
    instructions: str
    rig: str | None = None
    model: str = ""
    mode: Mode = Mode.FULL_ACCESS
    env: Mapping[str, str] = field(default_factory=dict)
    isolation: str = "worktree"


def run_plan(
    city: City, automation: Automation, configuration: Configuration | None, installed: Callable[[str], bool]
) -> RunPlan:
    """Values of the automation win over its configuration, and those over the city. Raises CannotRun.

    Exceptions: the configuration's rig wins over the automation's, and so does its mode over `full_access`, the
    default.
    """
    action = automation.action
    if not isinstance(action, AgentAction):
        raise CannotRun("no_prompt", f"{automation.scoped_name} has no agent action.")
    chosen = configuration or Configuration(name="-")
    return RunPlan(
        directory=_directory(city, automation, action, chosen),
        preset=_preset(city, action.preset or chosen.preset or city.workspace.provider, installed),
        instructions=action.prompt,
        rig=chosen.rig or automation.rig or None,
        model=action.model or chosen.model,
        mode=Mode(chosen.mode) if chosen.mode and action.mode.value == Mode.FULL_ACCESS else Mode(action.mode.value),
        env=dict(chosen.env),
        isolation=city.runs.isolation,
    )


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


def _preset(city: City, name: str, installed: Callable[[str], bool]) -> Preset:
    if not name:
        own = next((key for key, one in city.providers.items() if installed(one.command)), "")
        found = detect(installed)
        name = own or ("" if found is None else found.name)
    if not name:
        raise CannotRun(
            "program_missing", "No agent program is named, and none is on the path.",
            hint="Set `preset`, or `[workspace] provider`.",
        )  # fmt: skip
    preset = declared(_declared(name, city.providers[name])) if name in city.providers else PRESETS.get(name)
    if preset is None:
        near = did_you_mean(name, known_providers(city))
        raise CannotRun("preset_unknown", f"There is no preset `{name}`{near}.".replace("?.", "?"))
    if preset.headless is None:
        raise CannotRun("not_headless", f"{preset.title} cannot run without a terminal.", hint="Choose another preset.")
    if not installed(preset.program):
        raise CannotRun(
            "program_missing", f"`{preset.program}` is not on the path.", hint="Install it on this machine."
        )
    return preset


def _declared(name: str, provider: Provider) -> Declared:
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
    )
