"""`lamp session`: the runtime containers of agents and runs."""

from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Whole
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.runs.views import RunView
    from lamplighter.services.session_operations import MessageSent, SessionView
    from lamplighter.services.subscriptions import SubscriptionView, Unsubscribed

COLUMNS = {
    "ID": Col("id", "word"), "NAME": "name", "STATE": Col("state", "state"), "STARTED": Col("started_at", "when"),
    "ENDED": Col("ended_at", "when"), "WHY": "end_reason", "RUN": Col("run", "word", spare=1),
    "EXIT": Col("exit_status", "number", spare=2), "PID": Col("pid", "number", spare=3), "AGENT": Col("agent", spare=4),
}  # fmt: skip
SUBSCRIPTIONS = {
    "SESSION": Col("session", "word"), "TO": "destination", "BY": "subscriber", "SINCE": Col("subscribed_at", "when"),
    "TOLD": Col("notified_at", "when"),
}  # fmt: skip


def _show(found: "SessionView", _ask: Any) -> None:
    value = to_json(found)
    last = getattr(found, "output_tail", None)
    shown = {
        key.replace("_", " ").removesuffix(" at").capitalize(): one
        for key, one in value.items()
        if key not in {"meta", "output_tail", "state", "pid"} and one is not False
    }
    output.fields(value, {"State": output.state(found.state), "Process": found.pid} | shown)
    if last:
        click.echo()
        output.text(last.rstrip())


def _sent(sent: "MessageSent", _ask: Any) -> None:
    match sent.how:
        case "queued":
            click.echo(f"It waits for the end of run {words.short_id(sent.run)}, and is what comes next.")
        case "started":
            short = words.short_id(sent.run)
            output.say(f"Run {short} is told it. `lamp run watch {short}` follows it.")
        case _:
            click.echo(f"It was typed into the session of {sent.agent}.")


def _adopted(made: "RunView", _ask: Any) -> None:
    short = words.short_id(made.id)
    output.say(f"Run {short} goes on with it. `lamp run watch {short}` follows it.")


def _subscribed(made: "SubscriptionView", _ask: Any) -> None:
    kind = "the next session of run" if made.session.startswith("run_") else "session"
    click.echo(f"{made.destination} is told when {kind} {words.short_id(made.session)} ends.")


def _unsubscribed(done: "Unsubscribed", _ask: Any) -> None:
    click.echo(f"{done.destination} is {'not told any more' if done.was_subscribed else 'told nothing as it is'}.")


def _subscriptions(found: "list[SubscriptionView]", _ask: Any) -> None:
    output.table([to_json(one) for one in found], SUBSCRIPTIONS, empty="Nobody is to be told when a session ends.")


session = Subject(
    "session",
    "Sessions: what runs for agents and runs, and what ran.",
    {
        "show": _show,
        "send": _sent,
        "adopt": _adopted,
        "subscribe": _subscribed,
        "unsubscribe": _unsubscribed,
        "subscriptions": _subscriptions,
    },
)


@session.command("list")
@click.option("--agent", help="Only those of this agent.", shell_complete=names("agent"))
@click.option("--all", "ended", is_flag=True, help="Ended ones too.")
@click.option("--limit", default=50, show_default=True, type=Whole(1, 10_000), help="At most so many ended.")
@carries_out("session.list")
def list_sessions(agent: str | None, limit: int, *, ended: bool) -> None:
    """What runs now; with --all also what ended, the newest first."""
    from lamplighter.services.session_operations import LIST, ListSessions

    found = do(LIST, ListSessions(agent, ended, limit))
    empty = "No sessions." if ended else "No sessions run now; --all shows those that ended."
    output.table([to_json(one) for one in found], COLUMNS, empty=empty)


@session.command("logs")
@click.argument("name", shell_complete=names("session"))
@click.option("--lines", "-n", default=200, show_default=True, type=Whole(0, 100_000), help="0 for all.")
@carries_out("session.logs")
def logs(name: str, lines: int) -> None:
    """Its output; of an ended one the last of what it said."""
    from lamplighter.services.session_operations import LOGS, SessionLogs

    found = do(LOGS, SessionLogs(name, lines))
    output.record(to_json(found), output.plain(found.output))


def command_for(_name: str) -> click.Command:
    return session
