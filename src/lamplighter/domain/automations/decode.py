"""Decodes definitions from any source: a file's table or a JSON body gives an Automation, or all its problems."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.decode_policies import read_policies
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS, read_triggers
from lamplighter.domain.automations.model import (
    Action,
    ActionKind,
    AgentAction,
    Automation,
    Effort,
    Exec,
    Formula,
    Mode,
    Strategy,
    Trigger,
)
from lamplighter.domain.automations.policies import Budget, Policies
from lamplighter.domain.automations.reading import Problem, Reader
from lamplighter.domain.automations.shape import flattened, shape_key
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record
from lamplighter.kit.schedule import zone_named

LONGEST_NAME = 200
LONGEST_PROMPT = 100_000
"""Bytes of a prompt in the definition itself, which every run keeps a copy of; files may be longer."""

_REASONS = {
    "name": "is the name of the file's directory; leave it out",
    "trigger": "is how later versions of Gas City write `gate`; write it so",
}
_OF_CONVERSATION = (
    "path", "configuration", "strategy", "configurations", "fallback", "preset", "fallback_preset", "fallback_model",
)  # fmt: skip
_OF_AGENT = (*_OF_CONVERSATION, "model", "mode", "effort")
_BAD_IN_NAME = re.compile(r"[/:\\\x00-\x1f\x7f]")

LONGEST_OWNER = 80
MOST_TAGS = 10
_TAG = re.compile(r"[\w./-]{1,30}")


@record
class Origin:
    """Where a definition comes from; for a file, its directory gives the automation's name, and its layer the rig."""

    source: str = "api"
    name: str | None = None
    rig: str | None = None
    path: str | None = None


@record
class Invalid:
    """A definition that is not valid, with all its problems."""

    name: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"automation `{self.name}`: " + "; ".join(map(str, self.problems))


_FILE_KEYS = {"exec", "formula", "agent", "gate"}


def decode_file(tree: Mapping[str, Any], origin: Origin) -> Automation | Invalid:
    """Decode a file; `tree` is a whole `automation.toml`, with its one `[automation]` table."""
    whole = Reader(tree, "")
    table = whole.part("automation")
    if table is None and not whole.problems:
        others = did_you_mean("automation", map(str, tree))
        if "order" in tree:
            others = "; `[order]` is how later versions of Gas City write it"
        whole.problem("automation", f"the file has no `[automation]` table{others}")
    whole.refuse_unknown()
    if table is None:
        return Invalid(origin.name or "", tuple(whole.problems))
    return _decode(table, origin, now=None)


def decode_json(body: Mapping[str, Any], origin: Origin, *, now: datetime | None = None) -> Automation | Invalid:
    """Decode the keys of a file, or the shape that interfaces show. With `now`, a `once` time must not have passed."""
    decoded = _decode(Reader(flattened(body), ""), origin, now=now)
    if isinstance(decoded, Invalid) and ("action" in body or not _FILE_KEYS & body.keys()):
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


def _owner(table: Reader) -> str:
    found = table.raw("owner")
    if found is None or (isinstance(found, str) and len(found) <= LONGEST_OWNER):
        return found or ""
    table.problem("owner", f"takes a name in quotes, of at most {LONGEST_OWNER} characters")
    return ""


def _tags(table: Reader) -> tuple[str, ...]:
    found = table.raw("tags")
    if found is None:
        return ()
    fits = isinstance(found, list | tuple) and len(found) <= MOST_TAGS
    if not fits or not all(isinstance(one, str) and _TAG.fullmatch(one) for one in found):
        table.problem(
            "tags", f"takes a list of at most {MOST_TAGS} words of letters, digits and `-_./`, such as `nightly`"
        )
        return ()
    return tuple(dict.fromkeys(found))


def _decode(table: Reader, origin: Origin, *, now: datetime | None) -> Automation | Invalid:
    name = _name(table, origin)
    rig = origin.rig or (None if origin.name else table.text("rig"))
    action = _action(table)
    triggers = read_triggers(table, now)
    policies = read_policies(table)
    if policies.idle_timeout is not None and isinstance(action, Exec | Formula):
        table.problem("idle_timeout", f"goes with `agent` only; `{action.kind}` has its `timeout`")
    if isinstance(action, Formula):
        _check_programs(table, policies, "goes with `agent` and `exec`; a formula starts no program")
    if policies.stuck_after is not None and isinstance(action, Exec | Formula):
        table.problem("stuck_after", f"goes with `agent` only; `{action.kind}` calls no tools")
    if isinstance(action, Exec | Formula) and any(one.continue_by for one in triggers):
        table.problem("continue_by", f"goes with `agent` only; `{action.kind}` has no conversation to go on with")
    _check_spoken(table, action, triggers, policies)
    _check_verify(table, action, policies)
    _check_approve(table, action, policies)
    if policies.notify.thread is not None and action is not None and not isinstance(action, AgentAction):
        table.problem("notify", f"`thread` goes with `agent` only; `{action.kind}` says nothing")
    if policies.budget != Budget() and isinstance(action, Exec | Formula) and not table.tolerant:
        table.problem("budget", f"goes with `agent` only; `{action.kind}` has its `timeout`")
    description = table.raw("description")
    if description is not None and not isinstance(description, str):
        table.problem("description", "takes a text in quotes")
    owner = _owner(table)
    tags = _tags(table)
    enabled = table.flag("enabled", default=True)
    timezone = table.text("timezone")
    if timezone is not None:
        table.parsed("timezone", timezone, zone_named)
    table.refuse_unknown(TRIGGER_KEYS, _REASONS)
    if table.problems or action is None:
        return Invalid(name, tuple(table.problems))
    return Automation(
        name,
        action,
        triggers,
        rig,
        description or "",
        enabled,
        timezone,
        policies,
        origin.source,
        origin.path,
        owner,
        tags,
    )


def _check_spoken(table: Reader, action: Action | None, triggers: Sequence[Trigger], policies: Policies) -> None:
    """What a conversation that exists, or an agent that runs, has of its own cannot be chosen once more."""
    if table.tolerant or not isinstance(action, AgentAction) or (action.session is None and action.agent is None):
        return
    key = "agent" if action.session is None else "session"
    if action.session is not None and action.agent is not None:
        table.problem("agent.agent", "`session` and `agent` are both given; a run speaks into one of them")
        return
    if any(one.continue_by for one in triggers):
        table.problem("continue_by", f"goes without `agent.{key}`, which names the conversation for all triggers")
    if action.agent is None:
        return
    if policies.approve is not None:
        table.problem("approve", "goes without `agent.agent`: an agent that runs keeps the mode it was started in")
    _check_programs(table, policies, "goes without `agent.agent`: an agent that runs has its own environment")
    if policies.stuck_after is not None:
        table.problem("stuck_after", "goes without `agent.agent`: the tools that an agent calls are not told")
    for name in ("cost", "tokens", "day_cost", "day_tokens"):
        if getattr(policies.budget, name) is not None:
            table.problem(f"budget.{name}", "goes without `agent.agent`: what an agent uses is not counted by run")


def _check_programs(table: Reader, policies: Policies, told: str) -> None:
    """What is given to programs that a run starts cannot be given where it starts none."""
    for name in ("env", "connections"):
        if getattr(policies, name):
            table.problem(name, told)


def _check_verify(table: Reader, action: Action | None, policies: Policies) -> None:
    if policies.verify is None:
        for name in ("verify_timeout", "rounds"):
            if getattr(policies, name) is not None:
                table.problem(name, "goes with `verify` only, and there is none")
    elif isinstance(action, Formula):
        table.problem("verify", "goes with `agent` and `exec`; a formula's run ends when its wisp is closed")
    elif isinstance(action, Exec) and policies.rounds is not None:
        table.problem("rounds", "goes with `agent` only; a command cannot be told what to mend")


def _check_approve(table: Reader, action: Action | None, policies: Policies) -> None:
    if policies.approve is None or action is None:
        return
    if not isinstance(action, AgentAction):
        table.problem("approve", f"goes with `agent` only; `{action.kind}` makes no plan")
    elif action.mode is Mode.PLAN:
        told = "is what the agent may do once its plan is approved; in `plan` it would only plan again"
        table.problem("agent.mode", told)


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
    prompt_file = table.text("prompt_file")
    if prompt is None and prompt_file is None and not any(one.key == table.key("prompt") for one in table.problems):
        table.problem("prompt", "is missing: write one, or name a file with `prompt_file`")
    action = AgentAction(
        prompt=prompt or "",
        path=_path(table),
        configuration=table.text("configuration"),
        strategy=table.choice("strategy", Strategy) or Strategy.FIXED,
        configurations=table.texts("configurations"),
        fallback=table.text("fallback"),
        preset=table.text("preset"),
        model=table.text("model"),
        mode=table.choice("mode", Mode),
        effort=table.choice("effort", Effort),
        prompt_file=prompt_file,
        includes=table.texts("includes"),
        fallback_preset=table.text("fallback_preset"),
        fallback_model=table.text("fallback_model"),
        session=table.text("session"),
        agent=table.text("agent"),
    )
    for key, taken in (("session", _OF_CONVERSATION), ("agent", _OF_AGENT)):
        if getattr(action, key) is not None and not table.tolerant:
            for name in taken:
                if table.has(name):
                    table.problem(name, f"goes without `{key}`, which says where and with what it works")
    if action.strategy is Strategy.AGENT_DECIDE and not action.configurations:
        table.problem("configurations", "names what `agent_decide` may choose from; it is empty")
    if action.strategy is Strategy.FIXED and not table.tolerant:
        for name in ("configurations", "fallback"):
            if table.has(name):
                table.problem(name, 'goes with `strategy = "agent_decide"` only; `configuration` names the one to use')
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
