"""`lamp doctor`: finds what is wrong with a city, and repairs some of it."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, tells_problems
from lamplighter.cli.operations import carries_out, do
from lamplighter.kit.shapes import to_json

MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red"), "mended": ("✚", "cyan")}


@click.command("doctor", cls=LampCommand, context_settings=CONTEXT)
@click.option("--fix", is_flag=True, help="Mend what can be mended without asking.")
@carries_out("city.doctor")
def doctor(fix: bool) -> None:  # noqa: FBT001  click passes flags by name
    """Look the city over: files, configuration, database, controller, formulas, rigs, programs, disk.

    Exits 1 when a problem is left.
    """
    from lamplighter.services.doctor import EXAMINE, Examine

    tells_problems()
    found = do(EXAMINE, Examine(fix))
    if output.wants_json():
        output.table(to_json(found), {}, empty="")
    else:
        for entry in found:
            mark, colour = MARKS[entry.level.value]
            advice = f"  → {entry.advice}" if entry.advice else ""
            output.marked(f"{click.style(mark, fg=colour)} {entry.check:<11}", f"{entry.detail}{advice}")
    if any(entry.level.value == "problem" for entry in found):
        click.get_current_context().exit(1)


def command_for(_name: str) -> click.Command:
    return doctor
