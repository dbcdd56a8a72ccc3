"""`lamp formula`: templates of work."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.bead import pairs
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.formulas import FormulaListed, FormulaView, ShowFormula

COLUMNS = {"NAME": "name", "STEPS": Col("step_count", "number"), "DESCRIPTION": "description", "PROBLEM": "problem"}


def _list(found: "list[FormulaListed]", _ask: Any) -> None:
    output.table(to_json(found), COLUMNS, empty="No formulas.")


def _show(found: "FormulaView", ask: "ShowFormula") -> None:
    variables = [f"{var.name}{'' if var.required else ' (optional)'}" for var in found.variables]
    shown = {"Formula": ask.name, "Description": found.description, "Variables": variables, "Source": found.source}
    output.fields({}, shown)
    click.echo()
    output.table(to_json(found.steps), {"STEP": "id", "NEEDS": "needs", "TITLE": "title"}, empty="")


formula = Subject("formula", "Templates of steps, cooked into beads.", {"list": _list, "show": _show})


@formula.command("cook")
@click.argument("name")
@click.option("--title", help="The title of the root bead; the formula's name when left out.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable; several times.")
@click.option("--on", "parent", metavar="ID", help="Make the root a child of this bead.")
@click.option("--label", "labels", multiple=True, help="Labels of the root, such as `pool:coder`.")
@click.option("--rig", help="The rig it is cooked for.")
@carries_out("formula.cook")
def cook(name: str, variables: tuple[str, ...], **rest: Any) -> None:
    """Cook a formula: all its beads at once, or none."""
    from lamplighter.services.formulas import COOK, CookFormula

    root = do(COOK, CookFormula(name, variables=pairs(variables, "--var"), **rest))
    output.record(to_json(root), f"Cooked {name} into {root.id}. `lamp bead show {root.id}` lists its steps.")


def command_for(_name: str) -> click.Command:
    return formula
