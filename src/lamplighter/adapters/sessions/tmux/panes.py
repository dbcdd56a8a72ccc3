"""Parses `list-panes` of all sessions, and writes the script a pane runs."""

import re
import shlex
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lamplighter.domain.sessions.model import SessionName, SessionSpec

LAUNCH = "launch"
_FIELDS = (
    "pane_id", "@lamp_pane", "@lamp_name", "@lamp_id", "@lamp_city", "pane_pid", "pane_dead", "pane_dead_status",
    "pane_dead_signal", "session_activity", "window_activity", "session_created", "session_attached",
    "pane_current_command",
)  # fmt: skip
FORMAT = "\t".join(f"#{{{field}}}" for field in _FIELDS)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Pane:
    """The pane a session was started with; other panes that a person opened in it are not the agent."""

    id: str
    name: SessionName
    session_id: str
    city: str
    pid: int | None
    dead: bool
    exit_status: int | None
    activity: datetime
    created: datetime
    attached: bool
    command: str


def parse_panes(text: str, city: str) -> Iterator[Pane]:
    """The panes of this city's sessions; other lines are ignored."""
    for line in text.splitlines():
        values = dict(zip(_FIELDS, line.split("\t"), strict=False))
        ours = values.get("@lamp_city") == city and values.get("pane_id") == values.get("@lamp_pane")
        if len(values) == len(_FIELDS) and ours:
            yield _pane(values)


def _pane(values: Mapping[str, str]) -> Pane:
    activity = max(_number(values["session_activity"]), _number(values["window_activity"]))
    return Pane(
        id=values["pane_id"],
        name=SessionName(values["@lamp_name"]),
        session_id=values["@lamp_id"],
        city=values["@lamp_city"],
        pid=_number(values["pane_pid"]) or None,
        dead=values["pane_dead"] == "1",
        # tmux may report it before it calls the pane dead, which waits until the last output was read.
        exit_status=_status(values["pane_dead_status"], values["pane_dead_signal"]),
        activity=datetime.fromtimestamp(activity, UTC),
        created=datetime.fromtimestamp(_number(values["session_created"]), UTC),
        attached=_number(values["session_attached"]) > 0,
        command=values["pane_current_command"],
    )


def _status(status: str, number: str) -> int | None:
    if status.isdigit():
        return int(status)
    if number.isdigit():
        return 128 + int(number)
    by_name = getattr(signal, f"SIG{number.upper()}", None)
    return None if by_name is None else 128 + int(by_name)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def write_launch(home: Path, spec: SessionSpec, env: Mapping[str, str], inherited: Mapping[str, str]) -> None:
    """Write the script a pane runs: a long prompt exceeds a tmux message, and a command line must not hold secrets."""
    strange = [key for key in inherited if key not in env and key not in ("TERM", "TMUX", "TMUX_PANE")]
    lines = ["#!/bin/sh", f"cd -- {shlex.quote(spec.work_dir)} || exit 125"]
    lines += [f"unset {key}" for key in strange if _IDENTIFIER.fullmatch(key)]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in env.items() if _IDENTIFIER.fullmatch(key)]
    lines.append(f"exec {shlex.join(spec.command)}" + ("" if spec.takes_input else " </dev/null"))
    path = home / LAUNCH
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
