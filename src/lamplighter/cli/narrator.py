"""What `lamp up` tells on a terminal while the city runs: a line for each thing that happens, and not every detail."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import click

from lamplighter.cli import words
from lamplighter.domain.automations.spoken_reasons import said
from lamplighter.domain.sessions.crashes import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.events import Event

LONG = timedelta(seconds=2)
"""A run that takes longer is told when it begins too."""
_AGENT = {
    "agent.crashed": ("✗", "red", "crashed"),
    "agent.quarantined": ("✗", "red", "crashed too often, and is left alone for a while"),
    "agent.start_failed": ("✗", "red", "could not be started"),
    "agent.stopped": ("○", None, "was stopped"),
    "agent.killed": ("○", None, "was killed"),
    "agent.idle_killed": ("○", "yellow", "was silent for too long, and is stopped"),
    "agent.draining": ("○", "yellow", "is asked to finish"),
    "agent.adopted": ("●", "green", "was running already, and is looked after again"),
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
BODY = 10 + 2 + WHO + 2
"""Where what happened begins, after the time, the mark and the name."""


class _Fired(NamedTuple):
    run: str
    at: datetime


class Line(NamedTuple):
    """`head` may have colours in it. One that is `whole` is broken at words where the terminal ends, others are cut."""

    head: str
    body: str
    whole: bool = False


class Narrator:
    """Turns events into lines; it remembers what it told, so that what repeats itself is told briefly."""

    def __init__(self) -> None:
        self.lamp = "lamp"
        """How this program is called for this city, as the reader would type it."""
        self._fired: dict[str, _Fired] = {}
        self._long: dict[str, bool] = {}
        self._failed: set[str] = set()

    def lines(self, event: "Event") -> list[Line]:
        """The line for an event, and below it the command that answers it; none for one that is not told."""
        found = self._told(event)
        if found is None:
            return []
        mark, hue, what = found
        who = words.plain(event.subject or "").ljust(WHO)
        head = f"{words.clock(event.at)}  {click.style(mark, fg=hue)} {who}  "
        line, todo = words.plain(" ".join(what.split())), self._todo(event)
        if todo is None:
            return [Line(head, line)]
        return [Line(head, line, whole=True), Line(" " * BODY, todo, whole=True)]

    def _todo(self, event: "Event") -> str | None:
        if event.type != "automation.needs_human":
            return None
        reason, run = _of(event, "reason"), words.short_id(str(_of(event, "run")))
        verb = {"question": f"run answer {run} TEXT", "plan": f"run approve {run}"}.get(str(reason), "inbox")
        return f"{self.lamp} {verb}"

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
        return "●", "yellow", f"{'started again' if again else 'started'}{f' (process {pid})' if pid else ''}"

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
        return "→", "cyan", f"fired: {said(event.message)}" if event.message else "fired"

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
            return mark, hue, _asks(event, words.state(state), reason)
        (self._failed.add if event.type == "automation.failed" else self._failed.discard)(name)
        return mark, hue, f"{what}: {reason} (run {words.short_id(run)})" if reason else what


def _asks(event: "Event", what: str, reason: str) -> str:
    """The question with its choices, where there is one."""
    question = _of(event, "question")
    if not isinstance(question, dict) or not question.get("text"):
        return f"{what}{f': {reason}' if reason else ''}"
    choices = [str(one) for one in question.get("choices") or ()]
    text = str(question["text"]) + (f" ({words.listed(choices, last='or')})" if choices else "")
    return f"has a plan that waits for you: {text}" if reason == "plan" else f"asks: {text}"


def _of(event: "Event", key: str) -> Any:
    return event.payload.get(key) if isinstance(event.payload, dict) else None
