"""What `lamp up` tells on a terminal while the city runs: a line for each thing that happens, and not every detail."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import click

from lamplighter.cli import output, words
from lamplighter.domain.sessions.crashes import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.events import Event

LONG = timedelta(seconds=2)
"""A run that takes longer is told when it begins too."""
_AGENT = {
    "agent.crashed": ("✗", "red", "went out"),
    "agent.quarantined": ("✗", "red", "went out too often and is left alone for a while"),
    "agent.start_failed": ("✗", "red", "could not be started"),
    "agent.stopped": ("○", None, "was put out"),
    "agent.killed": ("○", None, "was killed"),
    "agent.idle_killed": ("○", "yellow", "was silent for too long and is put out"),
    "agent.draining": ("○", "yellow", "is asked to finish"),
    "agent.adopted": ("●", "green", "was burning already and is looked after again"),
    "agent.suspended": ("○", None, "is suspended"),
    "agent.resumed": ("●", "green", "is no longer suspended"),
}
_CITY = {
    "city.paused": ("○", "yellow", "nothing fires until `lamp resume`"),
    "city.suspended": ("○", "yellow", "nothing starts until `lamp resume`"),
    "city.resumed": ("●", "green", "goes on"),
    "config.reloaded": ("●", None, "the changed configuration is in force"),
    "config.rejected": ("✗", "red", "the changed configuration is wrong, and the one before stays in force"),
    "automation.disabled": ("✗", "red", "is switched off"),
    "automation.broken": ("✗", "red", "cannot be read"),
}
_ENDS = {
    "automation.completed": ("✓", "green"),
    "automation.failed": ("✗", "red"),
    "automation.needs_human": ("!", "yellow"),
}
WHO = 14


class _Fired(NamedTuple):
    run: str
    at: datetime


class Narrator:
    """Turns events into lines; it remembers what it told, so that what repeats itself is told briefly."""

    def __init__(self) -> None:
        self._fired: dict[str, _Fired] = {}
        self._long: dict[str, bool] = {}
        self._failed: set[str] = set()

    def line(self, event: "Event") -> str | None:
        """The line for an event; None for one that is not told."""
        found = self._told(event)
        if found is None:
            return None
        mark, hue, what = found
        who = words.plain(event.subject or "").ljust(WHO)
        return f"{words.clock(event.at)}  {click.style(mark, fg=hue)} {who}  {words.plain(' '.join(what.split()))}"

    def _told(self, event: "Event") -> tuple[str, str | None, str] | None:
        if event.type == "agent.started":
            return self._lit(event)
        if event.type == "automation.fired":
            return self._began(event)
        if event.type in _ENDS:
            return self._ended(event)
        if event.type in _AGENT:
            mark, hue, what = _AGENT[event.type]
            return mark, hue, what + self._why(event)
        if event.type in _CITY:
            mark, hue, what = _CITY[event.type]
            return mark, hue, f"{what}: {event.message}" if event.message else what
        return None

    def _lit(self, event: "Event") -> tuple[str, str | None, str]:
        again = event.subject in self._failed or event.message == "crash recovery"
        self._failed.discard(event.subject or "")
        pid = _of(event, "pid")
        return "●", "yellow", f"{'is lit again' if again else 'is lit'}{f' (process {pid})' if pid else ''}"

    def _why(self, event: "Event") -> str:
        if event.type == "agent.crashed":
            self._failed.add(event.subject or "")
            status = _of(event, "exit_status")
            by = signal_name(status)
            return f": {by}" if by is not None else f" (exit status {status})" if status is not None else ""
        return f": {event.message}" if event.message else ""

    def _began(self, event: "Event") -> tuple[str, str | None, str] | None:
        name, known = event.subject or "", (event.subject or "") in self._fired
        self._fired[name] = _Fired(str(_of(event, "run")), event.at)
        if known and not self._long.get(name):
            return None
        return "→", "cyan", f"fired: {event.message}" if event.message else "fired"

    def _ended(self, event: "Event") -> tuple[str, str | None, str]:
        mark, hue = _ENDS[event.type]
        name, run, state = event.subject or "", str(_of(event, "run")), str(_of(event, "state") or "ended")
        fired = self._fired.get(name)
        what = words.state(state)
        if fired is not None and fired.run == run:
            self._long[name] = event.at - fired.at > LONG
            what += f" after {words.span(event.at - fired.at)}"
        elif name in self._failed:
            what += " on another try"
        reason = words.reason(str(_of(event, "reason") or ""), state)
        if event.type == "automation.needs_human":
            self._failed.discard(name)
            return mark, hue, _asks(words.state(state), reason, run)
        (self._failed.add if event.type == "automation.failed" else self._failed.discard)(name)
        return mark, hue, f"{what}: {reason} (run {words.short_id(run)})" if reason else what


def _asks(what: str, reason: str, run: str) -> str:
    """Such as `needs you: question (lamp run answer b7my82)`: short, so that the command is not cut off."""
    todo = f"lamp run answer {words.short_id(run)}" if reason == "question" else "lamp inbox"
    return f"{what}{f': {reason}' if reason else ''} ({output.command(todo)})"


def _of(event: "Event", key: str) -> Any:
    return event.payload.get(key) if isinstance(event.payload, dict) else None
