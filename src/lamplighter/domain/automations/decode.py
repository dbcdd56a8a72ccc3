"""Decodes definitions from any source: a file's table or a JSON body gives an Automation, or all its problems."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.decode_policies import read_policies
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS, read_triggers
from lamplighter.domain.automations.model import (
    Action,
    ActionKind,
    AgentAction,
    Automation,
    Exec,
    Formula,
    Mode,
    Strategy,
)
from lamplighter.domain.automations.reading import Problem, Reader
from lamplighter.domain.automations.shape import flattened, shape_key
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.schedule import zone_named

LONGEST_NAME = 200
LONGEST_PROMPT = 8000

_BAD_IN_NAME = re.compile(r"[/:\\\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Origin:
    """Where a definition comes from; for a file, its directory gives the automation's name, and its layer the rig."""

    source: str = "api"
    name: str | None = None
    rig: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Invalid:
    """A definition that is not valid, with all its problems."""

    name: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"automation `{self.name}`: " + "; ".join(map(str, self.problems))


def decode_file(tree: Mapping[str, Any], origin: Origin) -> Automation | Invalid:
    """Decode a file; `tree` is a whole `automation.toml`, with its one `[automation]` table."""
    whole = Reader(tree, "")
    table = whole.part("automation")
    if table is None and not whole.problems:
        others = did_you_mean("automation", map(str, tree))
        whole.problem("automation", f"the file has no `[automation]` table{others}")
    whole.refuse_unknown()
    if table is None:
        return Invalid(origin.name or "", tuple(whole.problems))
    return _decode(table, origin, now=None)


def decode_json(body: Mapping[str, Any], origin: Origin, *, now: datetime | None = None) -> Automation | Invalid:
    """Decode the keys of a file, or the shape that interfaces show. With `now`, a `once` time must not have passed."""
    decoded = _decode(Reader(flattened(body), ""), origin, now=now)
    if isinstance(decoded, Invalid) and "action" in body:
        return Invalid(decoded.name, tuple(Problem(shape_key(one.key, body), one.message) for one in decoded.problems))
    return decoded


def decode_snapshot(body: Mapping[str, Any]) -> Automation:
    """The definition that a run stored. Unknown keys, written by a newer version, are ignored.

    Raises ValueError when the rest is not a valid automation.
    """
    origin = Origin(source=str(body.get("source") or "api"), path=body.get("path"))
    decoded = _decode(Reader(flattened(body), "", tolerant=True), origin, now=None)
    if isinstance(decoded, Invalid):
        raise ValueError(str(decoded))  # noqa: TRY004  it is the value that is wrong, not its type
    return decoded


def _decode(table: Reader, origin: Origin, *, now: datetime | None) -> Automation | Invalid:
    name = _name(table, origin)
    rig = origin.rig or (None if origin.name else table.text("rig"))
    action = _action(table)
    triggers = read_triggers(table, now)
    policies = read_policies(table)
    if policies.idle_timeout is not None and isinstance(action, Exec | Formula):
        table.problem("idle_timeout", f"goes with `agent` only; `{action.kind}` has its `timeout`")
    description = table.raw("description")
    if description is not None and not isinstance(description, str):
        table.problem("description", "takes a text in quotes")
    enabled = table.flag("enabled", default=True)
    timezone = table.text("timezone")
    if timezone is not None:
        table.parsed("timezone", timezone, zone_named)
    table.refuse_unknown(TRIGGER_KEYS, {"name": "is the name of the file's directory; leave it out"})
    if table.problems or action is None:
        return Invalid(name, tuple(table.problems))
    return Automation(
        name, action, triggers, rig, description or "", enabled, timezone, policies, origin.source, origin.path
    )


def _name(table: Reader, origin: Origin) -> str:
    if origin.name is not None:
        name: str | None = origin.name
        table = Reader({"name": name}, table.place, table.problems)
        table.text("name", longest=LONGEST_NAME)
    else:
        name = table.text("name", longest=LONGEST_NAME)
        if name is None and not isinstance(table.table.get("name"), int | float | list | dict):
            table.problem("name", "is missing")
    if name is not None and (_BAD_IN_NAME.search(name) or name.startswith(".")):
        table.problem("name", f"`{name}` holds a slash, a colon or a control character, or starts with a dot")
    elif name is not None and name.strip() and name != name.strip():
        table.problem("name", f"`{name}` begins or ends with a space")
    return name or ""


def _action(table: Reader) -> Action | None:
    if table.has("action"):  # usually left by `flattened` for a shape with an unknown kind
        known = [one.value for one in ActionKind]
        told = (
            f"`{table.raw('action')}` is not one of {', '.join(known)}{did_you_mean(str(table.raw('action')), known)}"
        )
        table.problem("action.kind", told)
        return None
    given = [name for name in ("exec", "formula", "agent") if table.has(name)]
    if len(given) != 1:
        told = "none of them is given" if not given else f"{' and '.join(f'`{one}`' for one in given)} are given"
        table.problem("exec", f"an automation has exactly one of `exec`, `formula` and `agent`; {told}")
    if given and "formula" not in given:
        for name in ("pool", "vars"):
            if table.has(name):
                table.problem(name, f"goes with `formula` only; `{given[0]}` runs outside any pool")
    pool, variables = table.text("pool"), _variables(table)
    command, formula, agent = table.text("exec"), table.text("formula"), table.part("agent")
    if agent is not None:
        return _agent(agent)
    if formula is not None:
        return Formula(formula, pool, variables)
    return None if command is None else Exec(command)


def _variables(table: Reader) -> dict[str, str]:
    found = table.mapping("vars")
    for name, value in found.items():
        if not isinstance(value, str | int | float):
            table.problem(f"vars.{name}", "takes a text or a number")
    return {name: str(value) for name, value in found.items()}


def _agent(table: Reader) -> AgentAction:
    prompt = table.text("prompt", longest=LONGEST_PROMPT)
    if prompt is None and not any(one.key == table.key("prompt") for one in table.problems):
        table.problem("prompt", "is missing")
    action = AgentAction(
        prompt=prompt or "",
        path=_path(table),
        configuration=table.text("configuration"),
        strategy=table.choice("strategy", Strategy) or Strategy.FIXED,
        configurations=table.texts("configurations"),
        fallback=table.text("fallback"),
        preset=table.text("preset"),
        model=table.text("model"),
        mode=table.choice("mode", Mode) or Mode.FULL_ACCESS,
    )
    if action.strategy is Strategy.AGENT_DECIDE and not action.configurations:
        table.problem("configurations", "names what `agent_decide` may choose from; it is empty")
    table.refuse_unknown()
    return action


def _path(table: Reader) -> str | None:
    """Whether the directory exists is checked only when it fires: an unmounted disk must not block an edit."""
    path = table.text("path")
    if path is None or not path.strip():
        return None
    if "://" in path:
        table.problem("path", f"`{path}` is remote; a run works in a directory of this machine")
    elif not path.strip().startswith("/"):
        table.problem("path", f"`{path}` is relative; write the whole path, starting with `/`")
    return path.strip()
