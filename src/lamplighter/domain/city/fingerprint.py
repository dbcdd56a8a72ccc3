"""Fingerprints of an agent's declared behaviour, which show whether it changed and in which field.

Only declarations and the files they name count: no times, no instance names, nothing detected on the machine.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field

from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.providers import Program, declared_program
from lamplighter.domain.city.variables import work_dir
from lamplighter.kit.records import record


@record
class Fingerprint:
    """`fields` has a digest for each field, so that drift can be explained without storing the values."""

    hash: str
    fields: Mapping[str, str] = field(default_factory=dict)


def fingerprint(city: City, agent: Agent, contents: Mapping[str, str]) -> Fingerprint:
    """Covers what a session is started with. `contents` has a digest for each file the agent names.

    Left out is what takes effect without a restart: pool bounds, idle limit, suspension, dependencies, queries, and
    how readiness is detected.
    """
    fields = {name: _digest(value) for name, value in _behaviour(city, agent, contents).items()}
    return Fingerprint(_digest(fields), fields)


def _behaviour(city: City, agent: Agent, contents: Mapping[str, str]) -> dict[str, object]:
    """Only the fields that are set, so that a field added by a later version does not change existing fingerprints."""
    program = declared_program(city, agent) or Program()
    values: dict[str, object] = {
        "provider": program.provider,
        "command": program.shell or program.command,
        "args": program.args,
        "prompt_mode": program.prompt_mode,
        "prompt_flag": program.prompt_flag,
        "process_names": program.process_names,
        "prompt": contents.get(agent.prompt_template, "") if agent.prompt_template else "",
        "nudge": agent.nudge,
        "work_dir": str(work_dir(city, agent)),
        "pre_start": agent.pre_start,
        "session_setup": agent.session_setup,
        "session_setup_script": agent.session_setup_script,
        "session_setup_script.content": contents.get(agent.session_setup_script, ""),
        "overlay_dir": agent.overlay_dir,
        "hooks": city.workspace.install_agent_hooks if agent.install_agent_hooks is None else agent.install_agent_hooks,
        "hooks_installed": agent.hooks_installed,
        **{f"env.{name}": value for name, value in program.env.items()},
    }
    return {name: value for name, value in values.items() if value not in ("", (), None)}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()
