"""Recording a session's output as events: limited in number, each part once, with its cost added to the run."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from lamplighter.domain.runs.budget import Spent, total
from lamplighter.domain.sessions.circles import Circle, circle_of
from lamplighter.domain.sessions.transcript import SessionEvent, Text, ToolEnded, ToolStarted, Usage
from lamplighter.services.runs import review
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Tx

MOST_EVENTS = 5000
LONGEST_TEXT = 8000
CUT = "cut"
LONGEST_LINE = 200
"""Of what a tool was given or answered, where people read a line about it."""
_OWN_TOOL = re.compile(r"(?:mcp_{1,2})?automation_{1,2}((?:automation|bead|run|event)_\w+)")
_REPORTS = ("automation_complete", "automation_ask")
"""What a run tells with these is shown as its summary or its question."""


@dataclass(frozen=True)
class Batch:
    """The events read from one session's output between the positions `before` and `after`."""

    run: str
    session: str
    before: int
    after: int
    events: Sequence[SessionEvent] = ()
    program: str | None = None
    day: str = ""
    """The day that what was used counts for, in the city's zone; nothing is counted without one."""


def record(tx: Tx, batch: Batch, now: datetime) -> Spent:
    """Record the batch and return what the run has spent so far; skip a batch that another reader has recorded."""
    row = review.get(tx, batch.run)
    spent = Spent(row.tokens or 0, row.cost)
    if not tx.transcripts.advance(batch.session, before=batch.before, after=batch.after, program=batch.program):
        return spent
    count = tx.transcripts.count(batch.session)
    kept = bounded(batch.events, count)
    if kept:
        tx.transcripts.add(batch.session, count + 1, kept, now)
    used = total(event for event in batch.events if isinstance(event, Usage))
    if batch.events:
        cost = spent.cost if used.cost is None else (spent.cost or 0.0) + used.cost
        spent = Spent(spent.tokens + used.tokens, cost)
        tx.runs.spent(batch.run, tokens=spent.tokens, cost=spent.cost, now=now)
    if batch.day and (used.tokens or used.cost):
        tx.run_days.add(batch.run, row.automation_id, batch.day, tokens=used.tokens, cost=used.cost or 0.0)
    return spent


def bounded(events: Sequence[SessionEvent], count: int) -> list[tuple[str, Mapping[str, Any]]]:
    """The events in stored form. Beyond MOST_EVENTS follow a `cut` mark and only turn ends, errors and usage."""
    kept: list[tuple[str, Mapping[str, Any]]] = []
    for event in events:
        if count + len(kept) == MOST_EVENTS:
            kept.append((CUT, {"kept": MOST_EVENTS}))
        if count + len(kept) > MOST_EVENTS and isinstance(event, Text | ToolStarted | ToolEnded):
            continue
        kept.append((event.kind, {key: _short(value) for key, value in asdict(event).items()}))
    return kept


def told(event: TranscriptEvent) -> str:  # noqa: PLR0911  one answer a kind
    """One event as a line for people; empty for kinds that are not shown."""
    body = event.body
    match event.kind:
        case "message":
            return f"{body.get('by', '')}: {body.get('text', '')}"
        case "text":
            return str(body.get("text", ""))
        case "tool_started":
            name = _tool(str(body.get("name", "")))
            return _line(f"> {name} {'' if name in _REPORTS else body.get('detail', '')}")
        case "tool_ended":
            return _line(f"< {'ok' if body.get('ok') else 'failed'} {body.get('detail', '')}")
        case "error":
            return f"! {body.get('message', '')}"
        case "cut":
            return "… it said more than is kept"
        case _:
            return ""


def _tool(name: str) -> str:
    """A tool of the city's own, which programs list under names of their own, as the city calls it."""
    found = _OWN_TOOL.fullmatch(name)
    return name if found is None else found[1]


def _line(text: str) -> str:
    """What a tool was given or answered, as one line that says what it is; `--json` and the console have all of it."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def of_run(tx: Tx, run: str) -> list[TranscriptEvent]:
    return [event for session in tx.sessions.of_run(run) for event in tx.transcripts.after(session.id)]


@dataclass(frozen=True)
class Reached:
    """How far a session's output has been recorded, and how often its last call was made in a row by then."""

    position: int = 0
    circle: Circle = field(default_factory=Circle)


def reached(tx: Tx, session: str) -> Reached:
    position = tx.transcripts.position(session) or 0
    return Reached(position, circle(tx, session)) if position else Reached()


def circle(tx: Tx, session: str) -> Circle:
    """How often the last call of a tool was made in a row, by what is on record of the session."""
    return circle_of(_calls(tx.transcripts.after(session)))


def _calls(events: Iterable[TranscriptEvent]) -> Iterator[SessionEvent]:
    for event in events:
        if event.kind == ToolStarted.kind:
            yield ToolStarted(**event.body)
        elif event.kind == ToolEnded.kind:
            yield ToolEnded(**event.body)


def _short(value: Any) -> Any:
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
