"""`lamp import`: takes over the jobs of other programs."""

import json
import sys
from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import group, settings
from lamplighter.cli.operations import carries_out, do
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.shapes import to_json

imports = group("Take over the jobs of other programs.")
LONGEST = 1 << 20


@imports.command("cron")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option(
    "--enable", is_flag=True, help="Enable them at once; otherwise `lamp automation enable` does, one by one."
)
@click.option("--system", is_flag=True, help="Each line has a user's name after the times, as in /etc/crontab.")
@carries_out("import.cron")
def cron(file: str | None, *, enable: bool, system: bool) -> None:
    """Take over a crontab, yours when no FILE is named: each line becomes a stored automation, disabled at first.

    What cannot be carried over is named, line by line. The crontab is never changed: take the lines out of it yourself
    when you enable their automations, or both run.
    """
    from lamplighter.services.automations.importing import IMPORT_CRON, ImportCron

    done = do(IMPORT_CRON, ImportCron(_text(file), enable, system))
    if output.wants_json():
        click.echo(json.dumps(to_json(done)))
        return
    for one in done.taken:
        state = "taken over" if one.new else "there already"
        _tell(f"line {one.line}: ", f"{one.schedule} → automation `{one.name}`, {state}")
        for note in one.notes if one.new else []:
            _tell(INDENT, note)
    for left in done.left:
        _tell(f"line {left.line}: ", f"not carried over: {left.text}")
        _tell(INDENT, left.why)
    new = [one.name for one in done.taken if one.new]
    if not new:
        click.echo("Nothing new was taken over.")
    elif enable:
        click.echo("They are enabled: take their lines out of the crontab (`crontab -e`), or both run.")
    else:
        output.text(
            output.commands(
                f"They are disabled. `lamp automation run {new[0]}` tries one, `lamp automation enable {new[0]}` lets "
                "it fire; then take its line out of the crontab (`crontab -e`), or both run."
            )
        )


INDENT = " " * 8


def _tell(head: str, text: str) -> None:
    output.hanging(head, output.plain(text))


def _text(file: str | None) -> str:
    if file is None:
        from lamplighter.app.crontab import user_crontab

        return user_crontab(settings().env)
    try:
        raw = sys.stdin.buffer.read(LONGEST + 1) if file == "-" else Path(file).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.") from None
    if len(raw) > LONGEST:
        raise UsageError("This is longer than any crontab.", hint="Name a crontab.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"The crontab is not UTF-8 text: {error}.") from error


def command_for(_name: str) -> click.Command:
    return imports
