"""`lamp init`: a city from nothing, or what is missing of one."""

from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand


@click.command("init", cls=LampCommand, context_settings=CONTEXT)
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", help="The city's name; its directory's name when left out.")
@click.option("--demo", is_flag=True, help="With a few automations and agents to look at, which need only a shell.")
@click.option("--new-database", is_flag=True, help="Begin with an empty database where the city's own is lost.")
def init(path: Path | None, name: str | None, *, demo: bool, new_database: bool) -> None:
    """Make a city in PATH, or here. Never overwrites: what is there stays as it is."""
    from lamplighter.app.create import create_city
    from lamplighter.app.settings import from_environment

    context = click.get_current_context().find_root()
    settings = from_environment(context.meta.get("lamp.city"))
    root = (path or settings.city or settings.cwd).resolve()
    made, city_name = create_city(root, settings, name=name, demo=demo, new_database=new_database)
    shown = [str(entry.relative_to(root)) for entry in made]
    text = f"City `{city_name}` is ready in {root}." if shown else f"{root} is a city already; nothing was changed."
    if shown:
        text += f"\nMade: {', '.join(shown)}\nNext: `lamp up` in {root}"
    output.record({"city": city_name, "root": str(root), "made": shown}, text)


def command_for(_name: str) -> click.Command:
    return init
