"""Programs that automations need and that this machine does not have, as far as that can be said beforehand."""

import re
import shutil
from collections.abc import Mapping
from typing import Any

from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.run_plan import CannotRun, chosen_preset

_PLAIN = re.compile(r"\s*([A-Za-z0-9_][A-Za-z0-9_.+-]*)(?=\s|$)")
"""A command line that begins with the name of a program: no path, no assignment, nothing quoted or substituted."""
_OF_THE_SHELL = frozenset({
    ".", ":", "alias", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export", "false",
    "for", "function", "getopts", "hash", "if", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set",
    "shift", "source", "test", "time", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until",
    "wait", "while",
})  # fmt: skip


def missing_program(city: OpenCity, action: Mapping[str, Any] | None) -> str | None:
    """What is missing for an automation's action as every surface shows it; None if nothing is known to be.

    Looked for along the path of this process, which may differ from that of the daemon or of a worker elsewhere.
    """
    if action is None:
        return None
    if action["kind"] == "exec":
        return _of_command(city, str(action.get("command") or action.get("exec") or ""))
    if action["kind"] == "agent":
        return _of_agent(city, action)
    return None


def _of_command(city: OpenCity, line: str) -> str | None:
    found = _PLAIN.match(line)
    if found is None or found[1] in _OF_THE_SHELL or _installed(city, found[1]):
        return None
    return f"`{found[1]}` is not on the path."


def _of_agent(city: OpenCity, action: Mapping[str, Any]) -> str | None:
    if not action.get("preset") and (action.get("configuration") or action.get("configurations")):
        return None  # the configuration names it, and may be changed until a run starts
    try:
        chosen_preset(city.in_force.config.city, action.get("preset") or "", lambda one: _installed(city, one))
    except CannotRun as error:
        return error.message if error.reason == "program_missing" else None
    return None


def _installed(city: OpenCity, program: str) -> bool:
    return shutil.which(program, path=city.settings.env.get("PATH")) is not None
