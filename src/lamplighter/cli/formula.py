"""`lamp formula`: templates of work."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group
from lamplighter.cli.bead import pairs

formula = group("Templates of steps, cooked into beads.")


@formula.command("list")
@click.option("--rig", help="As this rig sees them.")
def list_formulas(rig: str | None) -> None:
    """The formulas there are; a file that is wrong is listed with its problem."""
    from lamplighter.app.formulas import list_formulas as found

    columns = {"NAME": "name", "STEPS": "step_count", "DESCRIPTION": "description", "PROBLEM": "problem"}
    output.table(found(city(), rig), columns, empty="No formulas.")


@formula.command("show")
@click.argument("name")
@click.option("--rig", help="As this rig sees it.")
def show(name: str, rig: str | None) -> None:
    """A formula's variables and steps."""
    value = city().formula(name, rig).as_json()
    variables = [f"{var['name']}{'' if var['required'] else '?'}" for var in value["vars"]]
    output.fields(
        value, {"name": name, "description": value["description"], "vars": variables, "source": value["source"]}
    )
    if not output.wants_json():
        click.echo()
        output.table(value["steps"], {"STEP": "id", "NEEDS": "needs", "TITLE": "title"}, empty="")


@formula.command("cook")
@click.argument("name")
@click.option("--title", help="The title of the root bead; the formula's name when left out.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable; several times.")
@click.option("--on", "parent", metavar="ID", help="Make the root a child of this bead.")
@click.option("--label", "labels", multiple=True, help="Labels of the root, such as `pool:coder`.")
@click.option("--rig", help="The rig it is cooked for.")
def cook(
    name: str,
    title: str | None,
    variables: tuple[str, ...],
    parent: str | None,
    labels: tuple[str, ...],
    rig: str | None,
) -> None:
    """Cook a formula: all its beads at once, or none."""
    from lamplighter.app.formulas import cook as cook_in

    root = cook_in(city(), name, title=title, values=pairs(variables, "--var"), parent=parent, labels=labels, rig=rig)
    output.record(root.as_json(), f"Cooked {name} into {root.id}. `lamp bead show {root.id}` lists its steps.")


def command_for(_name: str) -> click.Command:
    return formula
