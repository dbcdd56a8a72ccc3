"""`lamp slack`: apps of one's own in Slack's workspaces."""

import json
import sys
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.slack.installing import (
        InstallationView,
        Manifest,
        SlackAsked,
        SlackLinked,
        SlackRemoved,
        SlackTested,
    )

BOT, SIGNING, APP = "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN"


def _manifest(found: "Manifest", _ask: Any) -> None:
    click.echo(json.dumps(found.manifest, indent=2))


def _installations(found: "list[InstallationView]", _ask: Any) -> None:
    rows = [
        to_json(one)
        | {"lacks": ", ".join(one.lacks or ()), "unstreamed": one.unstreamed or ""}
        | {"ways": ", ".join(one.ways) or "none", "people": len(one.people), "preset": one.preset}
        | {"heard_at": one.heard_at, "installed_at": one.installed_at, "connected": one.connected}
        for one in found
    ]
    columns = {
        "TEAM": Col("team", "word"), "NAME": "name", "REACHED BY": Col("ways", "word"), "CONNECTED": "connected",
        "NOT STREAMED": Col("unstreamed", "word", spare=5), "LACKS": Col("lacks", "word", spare=6),
        "LAST EVENT": Col("heard_at", "when", spare=1), "PRESET": "preset", "PEOPLE": Col("people", spare=2),
        "SINCE": Col("installed_at", "when", spare=3), "BY": Col("installed_by", spare=4),
    }  # fmt: skip
    output.table(rows, columns, empty="Slack is not installed. `lamp slack manifest` is where to begin.")


def _tested(one: "SlackTested", _ask: Any) -> None:
    click.echo(f"Slack knows the app in {one.name} ({one.team}) as {one.bot_user}.")
    if one.lacks:
        click.echo(f"It lacks scopes of `lamp slack manifest`: {', '.join(one.lacks)}.")


def _asked_for(one: "SlackAsked", _ask: Any) -> None:
    called = f"{one.name} ({one.person})" if one.name else one.person
    click.echo(f"It was shown to {called} in {one.workspace or one.team}.")


def _removed(one: "SlackRemoved", _ask: Any) -> None:
    click.echo(f"{one.team} is forgotten, with its tokens.")


def _linked(one: "SlackLinked", _ask: Any) -> None:
    click.echo(f"{one.person} in {one.team} is {one.member}.")


slack = Subject(
    "slack",
    "Apps of your own in Slack's workspaces.",
    {
        "manifest": _manifest,
        "list": _installations,
        "test": _tested,
        "remove": _removed,
        "who": _asked_for,
        "link": _linked,
    },
)


@slack.command("install")
@click.option("--preset", default="", help="The agent program that works in threads; without it nobody can begin one.")
@click.option("--rig", default="", help="Where it works; in the city's directory when left out.")
@click.option("--mode", default="approval", show_default=True, help="What it may do: approval, plan or full_access.")
@click.option(
    "--configuration", "configurations", multiple=True, metavar="NAME",
    help="Where it works, in place of a rig; of several a model chooses, or else whoever began.",
)  # fmt: skip
@carries_out("slack.install")
def install(preset: str, rig: str, mode: str, configurations: tuple[str, ...]) -> None:
    """Keep the tokens of an app in a workspace, encrypted, once Slack has said that they work.

    They are asked for, or read from standard input as lines SLACK_BOT_TOKEN=…, SLACK_SIGNING_SECRET=… and
    SLACK_APP_TOKEN=…; the last two may be left out.
    """
    from lamplighter.services.slack.installing import INSTALL, InstallSlack

    given = _asked() if sys.stdin.isatty() else _read(sys.stdin.read())
    done = do(INSTALL, InstallSlack(given[BOT], given[SIGNING], given[APP], preset, rig, mode, configurations))
    if output.wants_json():
        output.fields(to_json(done), {})
        return
    click.echo(f"The app is installed in {done.name} ({done.team}) as {done.bot_user}.")


def _asked() -> dict[str, str]:
    return {
        BOT: str(click.prompt("Bot token (xoxb-…)", hide_input=True)),
        SIGNING: str(click.prompt("Signing secret (empty for none)", hide_input=True, default="", show_default=False)),
        APP: str(click.prompt("App token, xapp-… (empty for none)", hide_input=True, default="", show_default=False)),
    }


def _read(text: str) -> dict[str, str]:
    """Raises UsageError."""
    found = {BOT: "", SIGNING: "", APP: ""}
    for number, line in enumerate(text.splitlines(), 1):
        name, mark, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not mark or name.strip() not in found:
            raise UsageError(f"Line {number} of the standard input is not one of the app.", hint=f"Write {BOT}=xoxb-….")
        found[name.strip()] = value.strip().strip("\"'")
    return found


def command_for(_name: str) -> click.Command:
    return slack
