"""The form of an automation: its fields, what they say as keys of an automation.toml, and a stored one as fields."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lamplighter.domain.automations.model import Effort, Mode, Strategy
from lamplighter.domain.automations.policies import CatchUpMode, Overlap
from lamplighter.kit import toml_text
from lamplighter.kit.toml_writing import dumped
from lamplighter.services.automations.views import AutomationView
from lamplighter.web.console.numbers import LONGEST, whole
from lamplighter.web.console.visit import Given

MOST_TRIGGERS = 20
NONE = "none"
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CADENCES = frozenset({"hourly", "daily", "weekly", "once"})


@dataclass(frozen=True)
class Field:
    """A control of the form. `key` is its key in the file, by which problems name it."""

    key: str
    label: str
    kind: str = "text"
    """text, long, number, choice, list or table."""
    hint: str = ""
    choices: Sequence[str] = ()
    at: str = ""
    """Where it stands in the form; its key where nothing else is said."""

    @property
    def name(self) -> str:
        return self.at or self.key

    @property
    def id(self) -> str:
        return self.name.replace(".", "-")


_DURATION = "such as 90s, 15m or 2h"
GENERAL = (
    Field("name", "Name"),
    Field("description", "What it is for"),
    Field("owner", "Who answers for it", hint="a name, a team or an address; shown in the list"),
    Field("tags", "Tags", "list", "separated by commas, such as nightly, billing"),
    Field("rig", "Rig", hint="none: it belongs to the city"),
    Field("timezone", "Time zone", hint="such as Europe/Berlin; the city's when left empty"),
)
ACTIONS: Mapping[str, tuple[str, Sequence[Field]]] = {
    "exec": ("Run a command", (Field("exec", "Command", "long", "a shell command; exit code 0 is success"),)),
    "agent": (
        "Give an agent a task",
        (
            Field("agent.prompt", "Prompt", "long", "what the agent is told"),
            Field("agent.agent", "Agent of the city", hint="who is told the prompt; a new program if empty"),
            Field("agent.session", "Conversation", hint="the id of a session or a run that the prompt goes on with"),
            Field("agent.mode", "What it may do without asking", "choice", choices=tuple(Mode)),
            Field("agent.path", "Directory", hint="the rig's or the city's when left empty"),
            Field("agent.preset", "Agent program", hint="the city's when left empty"),
            Field("agent.model", "Model"),
            Field("agent.effort", "Effort", "choice", choices=tuple(Effort)),
            Field("agent.configuration", "Configuration"),
            Field("agent.strategy", "Who chooses the configuration", "choice", choices=tuple(Strategy)),
            Field("agent.configurations", "It may choose from", "list", "for agent_decide; separated by commas"),
            Field("agent.fallback", "Configuration if it finds none", hint="for agent_decide"),
            Field("agent.prompt_file", "File of the prompt", hint="in the city or the rig; follows the prompt"),
            Field("agent.includes", "Further files", "list", "separated by commas"),
            Field("agent.fallback_preset", "Program while a limit is reached"),
            Field("agent.fallback_model", "Model while a limit is reached"),
        ),
    ),
    "formula": (
        "Cook a formula",
        (
            Field("formula", "Formula"),
            Field("pool", "Pool that works on it"),
            Field("vars", "Variables", "table", 'a line each, such as branch = "main"'),
        ),
    ),
}
TRIGGERS: Mapping[str, tuple[str, Sequence[Field]]] = {
    NONE: ("nothing", ()),
    "manual": ("by hand only", ()),
    "hourly": ("every hour", (Field("minute", "Minute", "number", "0 to 59"),)),
    "daily": ("every day", (Field("time", "Time of day", hint="such as 09:30"),)),
    "weekly": (
        "every week",
        (Field("weekday", "Day", "choice", choices=DAYS), Field("time", "Time of day", hint="such as 09:30")),
    ),
    "once": ("once", (Field("at", "At", hint="such as 2026-12-01T09:00:00+01:00"),)),
    "cron": ("by a cron line", (Field("schedule", "Cron line", hint="such as 0 9 * * mon-fri"),)),
    "cooldown": ("when some time has passed", (Field("interval", "Time", hint=_DURATION),)),
    "condition": (
        "when a command says so",
        (
            Field("check", "Command", hint="fires when it exits with 0"),
            Field("interval", "At most every", hint=_DURATION),
            Field("check_timeout", "Time limit of the command", hint=_DURATION),
        ),
    ),
    "event": (
        "on events",
        (
            Field("on", "Type", hint="such as bead.closed or bead.*"),
            Field(
                "match", "Only if the payload has", "table", 'a line each, such as repo = "acme/web" or data.size = 3'
            ),
            Field("batch", "At most so many at once", "number"),
        ),
    ),
    "webhook": (
        "on deliveries",
        (
            Field("connection", "Connection"),
            Field("events", "Events", "list", "separated by commas; any when left empty"),
            Field(
                "match", "Only if the payload has", "table", 'a line each, such as action = "opened" or data.size = 3'
            ),
        ),
    ),
}
POLICIES: Sequence[tuple[str, Sequence[Field]]] = (
    (
        "Limits",
        (
            Field("timeout", "Time limit of the action", hint=_DURATION),
            Field("deadline", "Deadline of the whole run", hint=_DURATION),
            Field("idle_timeout", "An agent may be silent for", hint=_DURATION),
            Field("budget.cost", "Cost in dollars", "number", "of an agent's run"),
            Field("budget.tokens", "Tokens", "number", "of an agent's run"),
            Field("budget.time", "Time of an agent", hint=_DURATION),
        ),
    ),
    (
        "Overlap and times that were missed",
        (
            Field("overlap", "While a run is under way", "choice", choices=tuple(Overlap)),
            Field("precheck", "First ask a command", hint="it runs only if this exits with 0"),
            Field("jitter", "Spread over", hint=_DURATION),
            Field("catch_up.mode", "Times that passed unseen", "choice", choices=tuple(CatchUpMode)),
            Field("catch_up.within", "Caught up within", hint=_DURATION),
            Field("catch_up.limit", "At most so many", "number"),
        ),
    ),
    (
        "If it fails",
        (
            Field("retry.count", "Try again so often", "number"),
            Field("retry.backoff", "After", hint=_DURATION),
            Field("retry.most", "At most after", hint=_DURATION),
            Field("auto_disable_after", "Disable after so many failures", "number", "0 for never"),
            Field("quiet_after", "Tell if it has not succeeded for", hint=_DURATION),
        ),
    ),
    (
        "What its programs are given",
        (
            Field(
                "connections", "Tokens of connections", "names", "beside those of its triggers; none: of no connection"
            ),
        ),
    ),
    (
        "Is it really done",
        (
            Field("verify", "Command that verifies a success", hint="exit code 0 says so"),
            Field("verify_timeout", "Its time limit", hint=_DURATION),
            Field("rounds", "An agent goes on so often", "number", "when its claim was not verified"),
        ),
    ),
    (
        "Who is told",
        (
            Field("notify.to", "Destinations", "list", "separated by commas; the city's when left empty"),
            Field("notify.on", "Of which ends", "list", "such as failed, needs_human"),
            Field("notify.thread", "Its threads in Slack", hint="a channel such as slack:C0123456789; for agents"),
            Field("notify.after", "After so many failures", "number", "0: as the city says"),
        ),
    ),
)


@dataclass(frozen=True)
class Asked:
    """What a form says: the keys of a definition, and for each trigger of it the place and kind in the form."""

    body: Mapping[str, Any]
    places: Sequence[tuple[int, str]]

    def problems(self, found: Iterable[tuple[str, str]]) -> dict[str, str]:
        """What is wrong, by the name of the control; what belongs to none has the empty name."""
        told: dict[str, str] = {}
        for key, message in found:
            name = self._control(key)
            told[name] = f"{told[name]}; {message}" if name in told else message
        return told

    def _control(self, key: str) -> str:
        if key.startswith("triggers["):
            number, _, rest = key.removeprefix("triggers[").partition("].")
            if not number.isdigit() or int(number) >= len(self.places):
                return ""
            (place, kind), key = self.places[int(number)], rest.partition(".")[0]
            timed = kind in {"daily", "weekly"} and key in {"hour", "minute"}
            known = {field.key for field in TRIGGERS[kind][1]}
            inner = "time" if timed else key
            return f"t{place}.{kind}.{inner}" if inner in known else f"t{place}.kind"
        first = key.partition(".")[0]
        return key if key in _NAMES else first if first in _NAMES else ""


_OF_ACTIONS = [one for _, fields in ACTIONS.values() for one in fields]
_OF_POLICIES = [one for _, fields in POLICIES for one in fields]
_NAMES = frozenset(one.name for one in (*GENERAL, *_OF_ACTIONS, *_OF_POLICIES))


def asked_of(form: Given, *, is_new: bool) -> Asked:
    """The keys that the form says; a control that is left empty is said as None, so that a change takes it away."""
    body: dict[str, Any] = {}
    action = form["action"] if form["action"] in ACTIONS else "exec"
    for field in (*GENERAL, *ACTIONS[action][1], *_OF_POLICIES):
        _put(body, field.key, _read(field, form[field.name]))
    if action == "exec":
        body["exec"] = body["exec"] or ""
    triggers, places = [], []
    for place in range(MOST_TRIGGERS):
        kind = form[f"t{place}.kind"]
        if kind in TRIGGERS and kind != NONE:
            triggers.append(_trigger(form, place, kind))
            places.append((place, kind))
    body["triggers"] = triggers
    if is_new:
        body["enabled"] = form["enabled"] == "yes"
    return Asked(body, places)


def _put(body: dict[str, Any], key: str, value: Any) -> None:
    table, dot, inner = key.partition(".")
    if dot:
        body.setdefault(table, {})[inner] = value
    else:
        body[key] = value


def _trigger(form: Given, place: int, kind: str) -> dict[str, Any]:
    said = {field.key: _read(field, form[f"t{place}.{kind}.{field.key}"]) for field in TRIGGERS[kind][1]}
    if kind in _CADENCES:
        said |= {"gate": "schedule", "cadence": kind}
        if "time" in said:
            said |= _clock(said.pop("time"))
    else:
        said["gate"] = kind
    return {"id": form[f"t{place}.id"] or None} | said


def _clock(text: Any) -> dict[str, Any]:
    """A time of day as hour and minute; what is none stays a text, which is refused as what it is."""
    hour, colon, minute = str(text or "").partition(":")
    found = whole(hour), whole(minute)
    if colon and None not in found:
        return {"hour": found[0], "minute": found[1]}
    return {"hour": text or "no time"}


def _read(field: Field, text: str) -> Any:  # noqa: PLR0911  one answer a kind
    """The value that a text says; a text that does not say one is left as it is, and refused with its key."""
    whole = text.replace("\r\n", "\n")
    plain = whole.strip()
    if not plain:
        return None
    match field.kind:
        case "long":
            return whole
        case "number":
            return _number(plain)
        case "names" if plain == NONE:
            return []
        case "list" | "names":
            return [one.strip() for one in plain.split(",") if one.strip()]
        case "table":
            try:
                return _flat(toml_text.parse(plain)) if field.key == "match" else dict(toml_text.parse(plain))
            except ValueError:
                return plain
        case _:
            return plain


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Paths and their values: a path is written with dots, which TOML takes for tables within tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def _number(text: str) -> Any:
    """The number that a text says; the text where it says none, or one that no setting takes."""
    if len(text) > LONGEST:
        return text
    try:
        found = float(text) if "." in text else int(text)
    except ValueError:
        return text
    return found if math.isfinite(found) else text


def values_of(one: AutomationView) -> Given:
    """A stored automation as what the form shows."""
    values = Given(name=one.name, description=one.description, rig=one.rig or "", timezone=one.timezone or "")
    values |= {"owner": one.owner or "", "tags": ", ".join(one.tags)}
    action = one.action or {"kind": "exec", "command": ""}
    values["action"] = str(action["kind"])
    tree: dict[str, Any] = dict(one.policies)
    match action["kind"]:
        case "exec":
            tree["exec"] = action["command"]
        case "agent":
            tree["agent"] = action
        case _:
            tree |= {key: action.get(key) for key in ("formula", "pool", "vars")}
    for field in (*_OF_ACTIONS, *_OF_POLICIES):
        table, dot, inner = field.key.partition(".")
        found = (tree.get(table) or {}).get(inner) if dot else tree.get(table)
        values[field.name] = NONE if field.kind == "names" and found == [] else _written(found)
    for place, trigger in enumerate(one.triggers):
        values |= _trigger_values(place, trigger.id, trigger.kind, trigger.gate)
    return values


def _trigger_values(place: int, name: str, kind: str, gate: Mapping[str, Any]) -> dict[str, str]:
    found = {key: _written(value) for key, value in gate.items()}
    if kind == "schedule":
        kind = str(gate["cadence"])
        if "hour" in gate:
            found["time"] = f"{gate['hour']:02}:{gate['minute']:02}"
        if "weekday" in gate:
            found["weekday"] = DAYS[int(gate["weekday"])]
    return {
        f"t{place}.id": name, f"t{place}.kind": kind,
        **{f"t{place}.{kind}.{key}": value for key, value in found.items()},
    }  # fmt: skip


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return dumped(value).strip()
    return str(value)


def triggers_of(values: Given) -> list[tuple[int, Mapping[str, Sequence[Field]]]]:
    """The places of the form's triggers, and one that is free, with the fields of each kind at that place."""
    used = [place for place in range(MOST_TRIGGERS) if values[f"t{place}.kind"] not in {"", NONE}]
    free = next((place for place in range(MOST_TRIGGERS) if place not in used), None)
    return [(place, _placed(place)) for place in (*used, *(() if free is None else (free,)))]


def _placed(place: int) -> Mapping[str, Sequence[Field]]:
    return {
        kind: [replace(field, at=f"t{place}.{kind}.{field.key}") for field in fields]
        for kind, (_, fields) in TRIGGERS.items()
    }
