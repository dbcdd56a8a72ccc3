"""`lamp event`: what happened in the city."""

from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.domain.automations.spoken_reasons import said
from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.events import Event

COLUMNS = {
    "SEQ": Col("seq", "number"), "WHEN": Col("at", "when"), "TYPE": "type", "ACTOR": Col("actor", spare=1),
    "SUBJECT": "subject", "MESSAGE": "message",
}  # fmt: skip


def _list(found: "list[Event]", _ask: Any) -> None:
    output.table([_row(one) for one in found], COLUMNS, empty="No events.")


def _row(one: "Event") -> dict[str, Any]:
    return {"seq": one.seq, "at": one.at, "type": one.type, "actor": one.actor, "subject": one.subject,
            "message": _message(one)}  # fmt: skip


def _message(one: "Event") -> str | None:
    return said(one.message) if one.message and one.type == "automation.fired" else one.message


def _tail(event: "Event", _ask: Any) -> None:
    actor, subject = words.shortened(event.actor), words.short_id(event.subject)
    head = f"{event.seq:>7}  {words.clock(event.at)}  {event.type:<22}  {actor:<12}"
    output.line(f"{head}  {subject}  {_message(event) or ''}")


event = Subject("event", "Facts on the city's bus, each with a sequence number.", {"list": _list, "tail": _tail})


@event.command("emit")
@click.argument("event_type", metavar="TYPE")
@click.option("--subject", help="What it is about.")
@click.option("--message", help="A sentence for people.")
@click.option("--actor", help="Who did it; LAMP_AGENT, else `human`, when left out.")
@click.option("--payload", metavar="JSON", help="Data for programs.")
@carries_out("event.emit")
def emit(event_type: str, subject: str | None, message: str | None, actor: str | None, payload: str | None) -> None:
    """Append an event of TYPE, such as `deploy.finished`. The families that Lamplighter itself emits are refused."""
    from lamplighter.services.event_operations import EMIT, EmitEvent

    done = do(EMIT, EmitEvent(event_type, subject, message, _payload(payload)), actor=actor)
    output.record(to_json(done), f"Emitted {done.type}.")


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


def command_for(_name: str) -> click.Command:
    return event
