"""`lamp connection` and `lamp delivery`: where deliveries come in, and what became of each."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.cli.secret import given_value
from lamplighter.domain.delivery_fields import Provider
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.connections import (
        ConnectionDeleted,
        ConnectionDetail,
        ConnectionMade,
        ConnectionTested,
        ConnectionView,
    )
    from lamplighter.services.deliveries.operations import DeliveriesReplayed
    from lamplighter.services.deliveries.views import DeliveryDetail, DeliveryView


def _connections(found: "list[ConnectionView]", _ask: Any) -> None:
    columns = {
        "NAME": "name",
        "PROVIDER": "provider",
        "PATH": "path",
        "POLLS": "polls",
        "LAST": Col("last_at", "when"),
        "BY": "created_by",
    }
    empty = "No connections. `lamp connection create NAME --provider github` makes one."
    rows = [to_json(one) | ({} if output.wants_json() else {"polls": _polls(one)}) for one in found]
    output.table(rows, columns, empty=empty)


def _polls(one: "ConnectionView") -> str:
    if one.poll is None:
        return ""
    return f"{one.poll.repo} ({one.poll.problem})" if one.poll.problem else one.poll.repo


def _connection(one: "ConnectionDetail", _ask: Any) -> None:
    shown = {
        "Connection": one.name,
        "Provider": one.provider,
        "Path": one.path,
        "Title": one.title,
        "Authors": ", ".join(one.authors),
        "Own names": ", ".join(one.own),
        "Found by": ", ".join(f"payload.{name}" for name in one.fields),
        "Made": one.created_at,
        "New secret": one.rotated_at,
        "Old secret until": one.previous_until,
        **_asked(one),
        "Used by": ", ".join(one.used_by) or "no automation",
    }
    output.fields({}, shown)
    if one.deliveries:
        click.echo()
        _deliveries(list(one.deliveries), None)


def _asked(one: "ConnectionDetail") -> dict[str, Any]:
    if one.poll is None:
        return {}
    return {
        "Polls": f"{one.poll.repo} at {one.poll.api_url}",
        "Token": f"the secret {one.poll.token_secret}" if one.poll.token_secret else "that of gh",
        "Last answered": one.poll.polled_at,
        "Asks again": one.poll.next_at,
        "Problem": one.poll.problem,
    }


def _tested(one: "ConnectionTested", _ask: Any) -> None:
    click.echo(f"The city answered {one.status}: {'accepted' if one.accepted else one.answer}")
    if not one.accepted:
        raise click.exceptions.Exit(1)


def _deleted(one: "ConnectionDeleted", _ask: Any) -> None:
    click.echo(f"Connection {one.name} is gone.")


def _deliveries(found: "list[DeliveryView]", _ask: Any) -> None:
    rows = [
        {
            "id": one.id, "connection": one.connection, "at": one.received_at, "title": one.title,
            "type": one.event_type, "verdicts": one.problem or _verdicts(one) or one.state,
        }
        for one in found
    ]  # fmt: skip
    columns = {
        "ID": "id", "CONNECTION": "connection", "CAME": Col("at", "when"), "TYPE": Col("type", spare=1),
        "TITLE": "title", "BECAME": "verdicts",
    }  # fmt: skip
    output.table(rows, columns, empty="Nothing came in.")


def _verdicts(one: "DeliveryView") -> str:
    told = [each for each in one.verdicts if each.verdict != "filtered"] or one.verdicts
    return ", ".join(f"{each.verdict}: {each.automation}" for each in told)


def _delivery(one: "DeliveryDetail", _ask: Any) -> None:
    shown = {
        "Delivery": one.id,
        "Connection": one.connection,
        "Came": one.received_at,
        "Source": one.source,
        "State": one.state,
        "Type": one.event_type,
        "Title": one.title,
        "Author": one.author,
        "Known by": one.external_id,
        "Sent again": one.repeats or None,
        "Fired nothing": one.problem,
    }
    output.fields({}, shown)
    if one.verdicts:
        click.echo()
        columns = {
            "AUTOMATION": "automation",
            "TRIGGER": "trigger",
            "VERDICT": "verdict",
            "RUN": "run",
            "WHY": "reason",
        }
        output.table([to_json(each) for each in one.verdicts], columns, empty="")


def _replayed(done: "DeliveriesReplayed", _ask: Any) -> None:
    count = done.replayed
    click.echo(f"{count} deliver{'y is' if count == 1 else 'ies are'} judged again.")


connection = Subject(
    "connection",
    "Where deliveries come in.",
    {"list": _connections, "show": _connection, "test": _tested, "delete": _deleted},
)
delivery = Subject(
    "delivery",
    "What came in, and what became of it.",
    {"list": _deliveries, "show": _delivery, "replay": _replayed},
)
_STDIN = click.option(
    "--secret-stdin", "from_stdin", is_flag=True, help="Take the secret that the sender gave you from standard input."
)


@connection.command("create")
@click.argument("name")
@click.option("--provider", type=click.Choice([one.value for one in Provider]), default="standard", show_default=True,
              help="Who sends them.")  # fmt: skip
@click.option("--title", default="", help="The title of a delivery, such as '{data.repo}: {data.title}'.")
@click.option("--author", "authors", multiple=True, help="An author whose deliveries may fire; all when left out.")
@click.option("--own", multiple=True, metavar="NAME", help="A name under which runs of this city act.")
@click.option("--field", "fields", multiple=True, metavar="PATH",
              help="A field, or a path in the payload, by which runs can be found.")  # fmt: skip
@click.option("--poll", is_flag=True, help="Ask GitHub what happened, for a city that it cannot reach.")
@click.option("--repo", default="", metavar="OWNER/NAME", help="The repository to ask about.")
@click.option("--token-secret", default="", metavar="NAME",
              help="The secret of the city that holds the token; that of `gh` when left out.")  # fmt: skip
@click.option(
    "--api-url", default="", metavar="URL", help="The address of the API, where it is not that of github.com."
)
@_STDIN
@carries_out("connection.create")
def create(name: str, provider: str, from_stdin: bool, **given: Any) -> None:  # noqa: FBT001  an option
    """Let deliveries come in at /hooks/NAME. Its secret is shown once."""
    from lamplighter.services.connections import CREATE, CreateConnection

    secret = given_value(f"Secret of {name}") if from_stdin else None
    _made(do(CREATE, CreateConnection(name, Provider(provider), secret, **given)), told=secret is None)


@connection.command("rotate")
@click.argument("name")
@click.option("--overlap", default="24h", show_default=True, metavar="DURATION",
              help="How long the secret before still holds.")  # fmt: skip
@_STDIN
@carries_out("connection.rotate")
def rotate(name: str, overlap: str, from_stdin: bool) -> None:  # noqa: FBT001  an option
    """Give it a new secret; the one before holds for a while, so that its sender can change over."""
    from lamplighter.services.connections import ROTATE, RotateConnection

    secret = given_value(f"New secret of {name}") if from_stdin else None
    _made(do(ROTATE, RotateConnection(name, secret, overlap)), told=secret is None)


def _made(one: "ConnectionMade", *, told: bool) -> None:
    if output.wants_json():
        output.fields(to_json(one), {})
        return
    if told:
        click.echo(one.secret)
    what = "The secret is not shown again. " if told else ""
    click.echo(f"{what}Deliveries come in at {one.path} of the city's address.", err=True)


def command_for(name: str) -> click.Command:
    return {"connection": connection, "delivery": delivery}[name]
