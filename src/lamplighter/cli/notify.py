"""`lamp notify`: where people are told what needs them."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.notices import DestinationView, NoticeSent, NoticeView, RulesView

DESTINATIONS = {
    "NAME": "name", "KIND": "kind", "STATE": "state", "LAST SENT": "sent", "TARGET": "target", "ANSWER": "answer",
}  # fmt: skip
NOTICES = {
    "AT": output.Col("at", "when"),
    "TO": "destination",
    "WHAT": "what",
    "STATE": "state",
    "DOUBTS": "doubts",
    "TEXT": output.Col("sentence", wraps=True),
    "ERROR": output.Col("last_error", below=True),
}
RULES = {"OWN RULES OF": "whose", "TO": "to", "ON": "on", "AFTER": "after"}
NONE = "No destinations: what needs a person is in `lamp inbox` only. `[[notifications.destinations]]` declares them."


def _list(found: "list[DestinationView]", _ask: Any) -> None:
    rows = [
        to_json(one) | {"sent": output.local_time(one.last_sent_at), "answer": one.last_error or one.last_answer}
        for one in found
    ]
    output.table(rows, DESTINATIONS, empty=NONE)


def _log(found: "list[NoticeView]", _ask: Any) -> None:
    rows = [to_json(one) | {"at": one.sent_at or one.created_at} for one in found]
    output.table(rows, NOTICES, empty="No notices.")


def _rules(found: "RulesView", _ask: Any) -> None:
    quiet = f"{found.quiet_hours}, {found.zone}{'; now' if found.quiet else ''}" if found.quiet_hours else "none"
    output.fields(
        to_json(found),
        {
            "To": ", ".join(found.to) or "nobody",
            "On": ", ".join(found.on),
            "After": found.after,
            "Recovery": found.recovery,
            "Quiet hours": quiet,
        },
    )
    rows = [{"whose": name, "to": name, "on": "", "after": after} for name, after in found.destinations.items()]
    rows += [
        {"whose": one.automation, "to": ", ".join(one.to), "on": ", ".join(one.on), "after": one.after}
        for one in found.automations
    ]
    if rows and not output.wants_json():
        click.echo()
        output.table(rows, RULES, empty="")


def _tested(sent: "NoticeSent", _ask: Any) -> None:
    click.echo(f"{sent.destination} took the notice.")


notify = Subject(
    "notify", "Where people are told what needs them.", {"list": _list, "log": _log, "rules": _rules, "test": _tested}
)  # fmt: skip


def command_for(_name: str) -> click.Command:
    return notify
