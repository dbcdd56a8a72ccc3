"""The page of `lamp status`: health in one line, then what needs a person, agents, runs, what comes next.

It imports little, because the command is used often.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import click

from lamplighter.cli import output, words
from lamplighter.cli import table as tables
from lamplighter.cli.agent_table import COLUMNS as AGENTS
from lamplighter.cli.agent_table import shown
from lamplighter.cli.output import Col

RUNS = {
    "ID": Col("id", "word"), "AUTOMATION": "automation", "STATE": Col("state", "state"), "SINCE": Col("at", "when"),
    "WAITS FOR": "waits_for",
}  # fmt: skip
FAILURES = {
    "ID": Col("id", "word"), "AUTOMATION": "automation", "STATE": Col("state", "state"), "WHEN": Col("at", "when"),
    "REASON": "reason",
}  # fmt: skip
NODES = {
    "NODE": "name", "STATE": Col("state", "state"), "SINCE": Col("since", "when"), "PROCESSES": "processes",
    "RIGS": "rigs",
}  # fmt: skip
UP = ("running", "draining")


class Line(NamedTuple):
    """A line of the page; `shows` are the words of the command that tells more about it."""

    text: str
    shows: tuple[str, ...] = ()


def page(value: Mapping[str, Any], now: datetime, width: int | None) -> list[Line]:
    """The page from the JSON of `lamp status`."""
    lines = [Line(_head(value, now, width))]
    lines += [Line(one) for one in _facts(value, now, width)]
    for title, rows in _sections(value, now, width):
        lines += [Line(""), Line(click.style(_cut(title, width), bold=True)), *rows]
    return lines


def _head(value: Mapping[str, Any], now: datetime, width: int | None) -> str:
    """Such as `demo runs: all is well (process 4711, 3 h)`."""
    name = words.plain(value["city"])
    controller = value["controller"]
    if not controller["running"]:
        left = [one["name"] for one in value["agents"] if one["state"] in UP]
        died = words.moment(controller.get("died_at"))
        word, hue = ("is stopped", "yellow" if left else None) if died is None else ("is down: its daemon died", "red")
        more = "; `lamp up` starts it" if died is None else ""
    else:
        found = _trouble(value)
        word = "runs: " + (words.listed(found) if found else "all is well")
        hue = "yellow" if found else "green"
        since = words.moment(controller["since"])
        more = f" (process {controller['pid']}" + (f", for {words.span(now - since)})" if since else ")")
    text = _cut(f"{name} {word}{output.commands(more)}", width)
    head = len(name) + 1
    end = head + len(word)
    return f"{click.style(text[:head], bold=True)}{click.style(text[head:end], fg=hue)}{text[end:]}"


def _trouble(value: Mapping[str, Any]) -> list[str]:
    controller = value["controller"]
    problems = len(controller["problems"]) + bool(controller["config_error"])
    bad = [one for one in value["agents"] if one["state"] in {"crashed", "quarantined"}]
    needed = value["attention"]
    return [
        *([words.counted(problems, "problem")] if problems else []),
        *([f"{words.counted(len(bad), 'agent')} down"] if bad else []),
        *([f"{words.counted(needed, 'thing')} need{'s' if needed == 1 else ''} you"] if needed else []),
        *(["paused"] if value["paused"] else []),
        *(["suspended"] if value["suspended"] else []),
    ]


def _facts(value: Mapping[str, Any], now: datetime, width: int | None) -> list[str]:
    controller = value["controller"]
    left = [one["name"] for one in value["agents"] if one["state"] in UP] if not controller["running"] else []
    told: dict[str, Any] = {
        "Place": value["root"],
        "Died": _died(controller, now),
        "Store": value["store"],
        "API": controller.get("api"),
        "Problem": controller["config_error"],
        **{f"Problem in {name}": text for name, text in controller["problems"].items()},
        "Paused": "nothing fires until `lamp resume`" if value["paused"] else None,
        "Suspended": "nothing starts until `lamp resume`" if value["suspended"] else None,
        "Still at work": f"{words.listed(left)}; `lamp stop` ends {'it' if len(left) == 1 else 'them'}"
        if left
        else None,
        "Needs you": _needs_you(value),
        "Logins": _logins(value),
        "Runs": _counts(value["runs"]),
        "Beads": _counts({state: count for state, count in value["beads"].items() if state != "closed"}),
        "Next": _next(value, now),
    }
    return [line for name, text in told.items() if text for line in _fact(name, str(text), told, width)]


def _died(controller: Mapping[str, Any], now: datetime) -> str | None:
    """Such as `after its last sign of life, 3 min ago (…), and not stopped by anybody`, and what to do."""
    died = words.moment(controller.get("died_at"))
    if died is None:
        return None
    seen = f"after its last sign of life, {words.ago(died, now)} ({words.exact(died)}), and not stopped by anybody"
    return f"{seen}; `lamp daemon start` starts it again, `lamp daemon logs` shows its last words"


def _fact(name: str, text: str, told: Mapping[str, Any], width: int | None) -> list[str]:
    size = max(len(one) for one, text in told.items() if text)
    yellow = name in {"Needs you", "Logins", "Still at work"}
    mark = "yellow" if yellow else "red" if name.startswith(("Problem", "Died")) else None
    body = tables.paragraphs(words.plain(output.commands(text)), width, indent=size + 2)
    return f"{click.style(name.ljust(size), bold=True, fg=mark)}  {body}".split("\n")


def _needs_you(value: Mapping[str, Any]) -> str | None:
    """How many things wait for a person, and the command that lists them."""
    count = value["attention"]
    if not count:
        return None
    return f"{words.counted(count, 'thing')}; `lamp inbox` lists {'it' if count == 1 else 'them'}"


def _logins(value: Mapping[str, Any]) -> str | None:
    """What keeps runs waiting, each with what to do."""
    if not value.get("logins"):
        return None
    from lamplighter.services.logins import sign_in

    told = []
    for one in value["logins"]:
        where, until = f"{one['preset']} ({one['home']})", words.moment(one["until"])
        if until is not None:
            told.append(f"{where} reached its provider's limit; its runs wait until {words.exact(until)}")
        else:
            told.append(f"{where} is not signed in; its runs wait. {sign_in(one['preset'])}")
    return "\n".join(told)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {words.state(state)}" for state, count in counts.items() if count)


def _next(value: Mapping[str, Any], now: datetime) -> str | None:
    if not value["controller"]["running"] or value["paused"] or value["suspended"]:
        return None  # nothing fires then, whatever was planned
    return output.soon(value["next"], now) or None


def _sections(value: Mapping[str, Any], now: datetime, width: int | None) -> Iterable[tuple[str, list[Line]]]:
    agents, runs, failures = value["agents"], value["under_way"], value["failures"]
    if agents:
        up = sum(one["state"] in UP for one in agents)
        rows = _rows(shown(agents), AGENTS, now, width)
        yield f"Agents: {up} of {len(agents)} at work", _items(rows, agents, lambda one: ("agent", "show", one["name"]))
    if runs:
        total = sum(value["runs"].get(state, 0) for state in ("queued", "enriching", "ready", "running"))
        more = f", the newest {len(runs)} of {total}" if total > len(runs) else ""
        rows = _rows(runs, RUNS, now, width)
        yield f"Runs under way{more}", _items(rows, runs, lambda one: ("run", "show", one["id"]))
    if failures:
        told = [one | {"reason": words.reason(one["reason"], one["state"])} for one in failures]
        rows = _rows(told, FAILURES, now, width)
        yield "What failed last", _items(rows, failures, lambda one: ("run", "show", one["id"]))
    if sum(max(len(node["processes"]), 1) for node in value["nodes"]) > 1:
        yield "Nodes", [Line(row) for row in _rows([_node(one) for one in value["nodes"]], NODES, now, width)]


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    return {**node, "processes": ", ".join(f"{one['kind']} {one['pid']}" for one in node["processes"])}


def _rows(
    values: Sequence[Mapping[str, Any]], columns: Mapping[str, object], now: datetime, width: int | None
) -> list[str]:
    return [f"  {row}" for row in output.rendered(values, columns, now=now, width=width and width - 2)]


def _items(rows: list[str], values: Sequence[Mapping[str, Any]], shows: Any) -> list[Line]:
    """The heading, and each row with the command that tells more about it."""
    return [Line(rows[0]), *(Line(row, shows(one)) for row, one in zip(rows[1:], values, strict=True))]


def _cut(text: str, width: int | None) -> str:
    return text if width is None else tables.cut(text, width)
