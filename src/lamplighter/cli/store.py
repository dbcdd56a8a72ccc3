"""`lamp store`: the database."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group

store = group("The city's database.")


@store.command("migrate")
def migrate() -> None:
    """Bring the database to this program's schema. The controller does it at its start as well."""
    from lamplighter.store.url import migrate as migrate_place

    place = city().place
    applied = [f"{entry.version:04} {entry.name}" for entry in migrate_place(place, make=False)]
    text = f"Applied {', '.join(applied)} to {place}." if applied else f"{place} is up to date."
    output.record({"store": str(place), "applied": applied}, text)


def command_for(_name: str) -> click.Command:
    return store
