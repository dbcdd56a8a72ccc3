"""`lamp rig`: project directories registered with the city."""

from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group

rig = group("Project directories registered with the city.")


@rig.command("list")
def list_rigs() -> None:
    """The rigs there are."""
    loaded = city().config.city
    rows = [
        {
            "name": entry.name,
            "path": str(loaded.rig_path(entry)),
            "prefix": entry.prefix,
            "suspended": entry.suspended,
            "agents": sum(agent.dir == entry.name for agent in loaded.agents),
            "exists": loaded.rig_path(entry).is_dir(),
        }
        for entry in loaded.rigs
    ]
    columns = {"NAME": "name", "PREFIX": "prefix", "AGENTS": "agents", "SUSPENDED": "suspended", "PATH": "path"}
    output.table(rows, columns, empty="No rigs.")


@rig.command("add")
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--name", help="Its name; the directory's name when left out.")
@click.option("--prefix", help="Prefix of its beads; derived from the name when left out.")
@click.option("--topology", help="A topology whose agents join the rig.")
def add(path: Path, name: str | None, prefix: str | None, topology: str | None) -> None:
    """Register the project directory PATH."""
    from lamplighter.app.edits import add_rig

    added = add_rig(city(tells_problems=True), path.resolve(), name=name, prefix=prefix, topology=topology)
    output.record(
        {"name": added.name, "path": added.path, "prefix": added.prefix}, f"Added rig {added.name} ({added.prefix})."
    )


@rig.command("suspend")
@click.argument("name")
def suspend(name: str) -> None:
    """Start none of its agents and fire none of its automations."""
    _switch(name, suspended=True)


@rig.command("resume")
@click.argument("name")
def resume(name: str) -> None:
    """Lift its suspension."""
    _switch(name, suspended=False)


def _switch(name: str, *, suspended: bool) -> None:
    from lamplighter.app.edits import switch_rig

    changed = switch_rig(city(tells_problems=True), name, suspended=suspended)
    word = "suspended" if suspended else "not suspended"
    text = f"Rig {name} is {word} now." if changed else f"Rig {name} was {word} already."
    output.record({"name": name, "suspended": suspended, "changed": changed}, text)


def command_for(_name: str) -> click.Command:
    return rig
