"""`lamp event`: what happened in the city."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group, patient_city
from lamplighter.domain.events import EventFilter
from lamplighter.kit import json_text
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import UsageError

event = group("Facts on the city's bus, each with a sequence number.")


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--type", "event_type", metavar="TYPE", help="Exact, or all below a prefix: `bead.*`."),
        click.option("--actor", help="Who did it."),
        click.option("--subject", help="What it is about."),
        click.option("--since", metavar="WHEN", help="A duration ago (`2h`) or a time (2026-11-15T08:00Z)."),
        click.option(
            "--after", type=click.IntRange(0, 2**63 - 1), metavar="SEQ", help="Only events above this number."
        ),
    ):
        command = option(command)
    return command


@event.command("list")
@_filters
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="At most so many.")
def list_events(limit: int, **wanted: Any) -> None:
    """The newest events, oldest of them first."""
    opened = city()
    chosen = _filter(wanted, opened.clock.now())
    if chosen.after:
        found = opened.store.read(lambda tx: tx.events.next_matching(chosen, limit=limit))
    else:
        found = opened.store.read(lambda tx: tx.events.latest(chosen, limit=limit))
    rows = [entry.as_json() for entry in found]
    shown = [row | {"time": output.local(row["at"])} for row in rows] if not output.wants_json() else rows
    columns = {
        "SEQ": "seq",
        "TIME": "time",
        "TYPE": "type",
        "ACTOR": "actor",
        "SUBJECT": "subject",
        "MESSAGE": "message",
    }
    output.table(shown, columns, empty="No events.")


@event.command("tail")
@_filters
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many.")
def tail(count: int | None, **wanted: Any) -> None:
    """Follow events as they come; from now on, or from --after SEQ. Ctrl-C ends it."""
    from lamplighter.app.follow import follow_events

    opened = city()

    def show(entry: Any) -> None:
        row = entry.as_json()
        text = (
            f"{row['seq']:>7}  {output.local(row['at'])}  {row['type']:<22}  {row['actor']:<12}  {row['subject'] or ''}"
        )
        click.echo(json.dumps(row) if output.wants_json() else output.plain(f"{text}  {row['message'] or ''}").rstrip())

    follow_events(opened, _filter(wanted, opened.clock.now()), show, count=count, from_now=wanted["after"] is None)


@event.command("emit")
@click.argument("event_type", metavar="TYPE")
@click.option("--subject", help="What it is about.")
@click.option("--message", help="A sentence for people.")
@click.option("--actor", help="Who did it; LAMP_AGENT, else `human`, when left out.")
@click.option("--payload", metavar="JSON", help="Data for programs.")
def emit(event_type: str, subject: str | None, message: str | None, actor: str | None, payload: str | None) -> None:
    """Append an event of TYPE, such as `deploy.finished`. The families that Lamplighter itself emits are refused."""
    from lamplighter.domain.access import owner
    from lamplighter.services import events

    opened = patient_city()
    value = _payload(payload)
    fact = opened.act(actor).event(event_type, subject=subject, message=message, payload=value)
    caller = owner(fact.actor, fact.run)
    opened.store.transact(events.emit, fact, caller=caller, payload_size=len((payload or "").encode()))
    output.record({"type": event_type, "subject": subject, "emitted": True}, f"Emitted {event_type}.")


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json_text.parse(text)
    except ValueError as error:
        raise UsageError(
            f"The payload is not JSON that can be used: {error}.",
            hint="Quote it for the shell, such as --payload '{\"ok\": true}'.",
        ) from error


def _filter(wanted: dict[str, Any], now: datetime) -> EventFilter:
    return EventFilter(
        type=wanted["event_type"],
        actor=wanted["actor"],
        subject=wanted["subject"],
        since=_since(wanted["since"], now),
        after=wanted["after"] or 0,
    )


def _since(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        return now - parse_duration(text)
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"`{text}` is neither a duration nor a time.", hint="Such as `2h` or `2026-11-15T08:00`."
        ) from None


def command_for(_name: str) -> click.Command:
    return event
