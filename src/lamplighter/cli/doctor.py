"""`lamp doctor`: finds what is wrong with a city, and repairs some of it."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city

MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red"), "mended": ("✚", "cyan")}


@click.command("doctor", cls=LampCommand, context_settings=CONTEXT)
@click.option("--fix", is_flag=True, help="Mend what can be mended without asking.")
def doctor(fix: bool) -> None:  # noqa: FBT001  click passes flags by name
    """Look the city over: files, configuration, database, controller, formulas, rigs, programs, disk.

    Exits 1 when a problem is left.
    """
    from lamplighter.app.doctor import examine

    found = examine(city(tells_problems=True), fix=fix)
    rows = [
        {"check": entry.check, "level": entry.level.value, "detail": entry.detail, "advice": entry.advice or None}
        for entry in found
    ]
    if output.wants_json():
        output.table(rows, {}, empty="")
    else:
        for entry in found:
            mark, colour = MARKS[entry.level.value]
            advice = f"  → {entry.advice}" if entry.advice else ""
            click.echo(f"{click.style(mark, fg=colour)} {entry.check:<11} {entry.detail}{advice}")
    if any(entry.level.value == "problem" for entry in found):
        click.get_current_context().exit(1)


def command_for(_name: str) -> click.Command:
    return doctor
