"""Builds the session to start from a declared agent: command, prompt, environment, directory, readiness, metadata."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

from lamplighter.domain.city.hooks import CLAUDE_SETTINGS, are_installed
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.providers import Program, program
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import (
    NO_REPOSITORY,
    Branches,
    command_variables,
    session_name,
    work_dir,
)
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.drift import marks
from lamplighter.domain.sessions.model import NOTHING, Dialog, Readiness, SessionSpec, Setup
from lamplighter.domain.sessions.model import session_name as checked_name
from lamplighter.domain.sessions.presets.catalogue import FIRST_QUESTIONS, PRESETS, Declared, PromptMode, declared
from lamplighter.domain.sessions.presets.model import Invocation, Preset, Request, SeedFile
from lamplighter.domain.sessions.resuming import Conversed
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record
from lamplighter.kit.text import expand

_STARTED_AGAIN = "Your program was started again; this is the conversation you had. Go on where you were."


class CannotBuild(LampError):
    """The agent cannot be started as declared."""


@record
class Surroundings:
    """What the machine adds to a declaration. `parent` is the environment of the process that starts the session."""

    parent: Mapping[str, str]
    installed: Callable[[str], bool]
    files_dir: str
    now: datetime
    branches: Branches = NO_REPOSITORY
    in_repository: bool = False
    before: Callable[[Preset, Mapping[str, str]], str] = lambda _preset, _env: ""
    """The program's name for the conversation that this start goes on with; empty to begin a new one."""
    as_root: bool = False
    setup_env: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # for `session_setup` alone


@record
class Built:
    """`files` must be written before the start; `provider` names the agent program, empty for a custom command."""

    spec: SessionSpec
    provider: str
    files: tuple[SeedFile, ...] = ()
    begun: Conversed | None = None  # the conversation that this start begins
    goes_on: bool = False


def built(loaded: LoadedCity, agent: Agent, instance: str, around: Surroundings) -> Built:
    """Build the session of one instance. Raises NoProgram, TemplateError, or ValueError for a bad session name."""
    city, place = loaded.city, work_dir(loaded.city, agent)
    chosen = program(city, agent, around.installed)
    words = command_variables(city, agent, instance)
    preset = _preset(loaded, agent, chosen, words)
    own = {**_keys(chosen, around.parent), **chosen.env}
    env = session_environment(city, agent, instance, parent=around.parent, preset=own, work_dir=place)
    resume = around.before(preset, env) if preset is not None and _resumes(agent, preset) else ""
    prompt = _prompt(loaded, agent, instance, chosen, around, resumed=bool(resume))
    if preset is None:
        called = _by_shell(chosen, prompt, words)
    else:
        request = Request(
            work_dir=str(place), files_dir=around.files_dir, prompt=prompt, session=session_name(city, instance),
            args=_further_args(loaded, chosen), as_root=around.as_root, env=env,
            in_repository=around.in_repository, resume=resume,
            conversation=_new_name(instance, around) if _resumes(agent, preset) else "",
        )  # fmt: skip
        called = preset.interactive(request)
    spec = SessionSpec(
        name=checked_name(session_name(city, instance)),
        command=called.argv,
        work_dir=str(place),
        env={**called.env, **env, **called.fixed, meta.ENV_SESSION: session_name(city, instance)},
        meta=_marks(loaded, agent, instance),
        takes_input=called.takes_input,
        readiness=_readiness(agent, chosen, preset, called),
        dialogs=_dialogs(agent, preset),
        process_names=_process_names(agent, chosen, preset),
        nudge="\n\n".join(filter(None, (called.nudge, agent.nudge))),
        prompt="" if called.nudge or preset is None else prompt,
        setup=_setup(loaded, agent, words, around.setup_env),
    )
    begun = None
    if preset is not None and _resumes(agent, preset) and not resume:
        begun = Conversed(preset.name, _new_name(instance, around), rfc3339(around.now), str(place))
    return Built(spec, chosen.provider, called.files, begun, goes_on=bool(resume))


def _resumes(agent: Agent, preset: Preset) -> bool:
    """An instance of a pool is started for new work, so that it begins anew unless the agent says otherwise."""
    wanted = agent.resume == "always" or (not agent.resume and agent.pool is None)
    return wanted and preset.conversations is not None


def _new_name(instance: str, around: Surroundings) -> str:
    return str(uuid5(NAMESPACE_URL, f"{around.files_dir} {instance} {rfc3339(around.now)}"))


def _preset(loaded: LoadedCity, agent: Agent, chosen: Program, words: Mapping[str, object]) -> Preset | None:
    """The preset that drives the program; None for a custom command.

    A provider that the city declares, an agent with its own `args` and prompt mode `flag` are driven as declared, not
    by the built-in preset.
    """
    if chosen.shell:
        return None
    known = PRESETS.get(chosen.provider)
    own = chosen.provider in loaded.city.providers or agent.args is not None or agent.prompt_mode == PromptMode.FLAG
    if known is not None and not own:
        return known
    return declared(
        Declared(
            name=chosen.provider,
            command=chosen.command,
            args=chosen.args,
            prompt_mode=PromptMode(chosen.prompt_mode),
            prompt_flag=chosen.prompt_flag,
            ready_delay=timedelta(milliseconds=chosen.ready_delay_ms or 0),
            ready_prompt_prefix=chosen.ready_prompt_prefix,
            process_names=chosen.process_names,
            emits_permission_warning=chosen.emits_permission_warning,
            env=chosen.env,
            variables=words,
        )
    )


def _keys(chosen: Program, parent: Mapping[str, str]) -> dict[str, str]:
    """The variables that the program itself reads, taken from `parent` even if the city changes its arguments."""
    known = PRESETS.get(chosen.provider)
    return {} if known is None else {name: parent[name] for name in known.keys if parent.get(name)}


def _further_args(loaded: LoadedCity, chosen: Program) -> tuple[str, ...]:
    return ("--settings", str(loaded.city.root / CLAUDE_SETTINGS)) if chosen.provider == "claude" else ()


def _by_shell(chosen: Program, prompt: str, words: Mapping[str, object]) -> Invocation:
    text = expand(chosen.shell, words, file="start_command")
    if prompt:
        flag = f" {chosen.prompt_flag}" if chosen.prompt_mode == PromptMode.FLAG and chosen.prompt_flag else ""
        text = f"{text}{flag} {shlex.quote(prompt)}"
    return Invocation(("/bin/sh", "-c", text), takes_input=True)


def _prompt(
    loaded: LoadedCity, agent: Agent, instance: str, chosen: Program, around: Surroundings, *, resumed: bool
) -> str:
    """The beacon, then the rendered template; without a template, a hint to run `lamp prime` unless hooks call it.

    With its conversation before it, the program gets a note that it was started again in place of the template. Empty
    in prompt mode `none`, and for a custom command without a template.
    """
    if (agent.prompt_mode or ("arg" if chosen.provider else chosen.prompt_mode)) == PromptMode.NONE:
        return ""
    text = loaded.prompt(agent, instance, env={**chosen.env, **agent.env}, branches=around.branches).strip()
    if not text and not chosen.provider:
        return ""
    if resumed:
        text = _STARTED_AGAIN
    beacon = f"[{loaded.city.name}] {instance} \N{BULLET} {rfc3339(around.now)}"
    hint = "" if are_installed(loaded.city, agent, chosen.provider) else "Run `lamp prime` to read who you are."
    return "\n\n".join(filter(None, (beacon, hint if not text else "", text)))


def _marks(loaded: LoadedCity, agent: Agent, instance: str) -> dict[str, str]:
    pool = {meta.POOL: agent.qualified_name} if agent.pool is not None else {}
    return {meta.AGENT: instance, **pool, **marks(loaded.fingerprint(agent).fields)}


def _readiness(agent: Agent, chosen: Program, preset: Preset | None, called: Invocation) -> Readiness:
    """The agent's own signs of readiness, also for a command of its own, else those of its program."""
    if agent.ready_prompt_prefix or agent.ready_delay_ms is not None:
        prefix = agent.ready_prompt_prefix or chosen.ready_prompt_prefix
        delay = chosen.ready_delay_ms if agent.ready_delay_ms is None else agent.ready_delay_ms
        return Readiness(prompt_prefix=prefix, delay=timedelta(milliseconds=delay or 0))
    return Readiness() if preset is None else called.readiness or preset.readiness


def _dialogs(agent: Agent, preset: Preset | None) -> tuple[Dialog, ...]:
    """An agent that says it asks for permission is answered, also if its program is not known to ask."""
    if agent.emits_permission_warning is False:
        return ()
    own = () if preset is None else preset.dialogs
    return own or (FIRST_QUESTIONS if agent.emits_permission_warning else ())


def _process_names(agent: Agent, chosen: Program, preset: Preset | None) -> tuple[str, ...]:
    if agent.process_names is not None:
        return agent.process_names
    return chosen.process_names if preset is None else preset.process_names


def _setup(loaded: LoadedCity, agent: Agent, words: Mapping[str, object], env: Mapping[str, str]) -> Setup:
    root = loaded.city.root
    exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in env.items())
    after = [expand(command, words, file="session_setup") for command in agent.session_setup]
    if agent.session_setup_script:
        after.append(shlex.quote(str(root / agent.session_setup_script)))
    return Setup(
        overlay_dir=str(root / agent.overlay_dir) if agent.overlay_dir else "",
        before=tuple(expand(command, words, file="pre_start") for command in agent.pre_start),
        after=tuple(exports + command for command in after),
    )
