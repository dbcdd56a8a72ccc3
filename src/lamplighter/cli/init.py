"""`lamp init`: creates a city, or what is missing of one."""

from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.settings import Settings


@click.command("init", cls=LampCommand, context_settings=CONTEXT)
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", help="The city's name; its directory's name when left out.")
@click.option("--demo", is_flag=True, help="With a few automations and agents to look at, which need only a shell.")
@click.option("--new-id", is_flag=True, help="Make a copied city a city of its own; what was under way in it ends.")
@click.option("--new-database", is_flag=True, help="Begin with an empty database where the city's own is lost.")
def init(path: Path | None, name: str | None, *, demo: bool, new_id: bool, new_database: bool) -> None:
    """Make a city in PATH, or here. Never overwrites: what is there stays as it is."""
    from lamplighter.app.create import create_city
    from lamplighter.app.settings import from_environment

    context = click.get_current_context().find_root()
    settings = from_environment(context.meta.get("lamp.city"))
    root = (path or settings.city or settings.cwd).resolve()
    if new_id:
        _give_new_id(root, settings)
        return
    made, city_name = create_city(root, settings, name=name, demo=demo, new_database=new_database)
    shown = [str(entry.relative_to(root) if entry.is_relative_to(root) else entry) for entry in made]
    text = f"City `{city_name}` is ready in {root}." if shown else f"{root} is a city already; nothing was changed."
    if shown:
        text += f"\nMade: {', '.join(shown)}\nNext: `lamp up` in {root}"
    output.record({"city": city_name, "root": str(root), "made": shown}, text)


def _give_new_id(root: Path, settings: "Settings") -> None:
    from lamplighter.app.new_id import give_new_id

    done = give_new_id(root, settings)
    lines = [
        f"{root} is a city of its own now: {done.id} (before: {done.before}).",
        f"Ended as interrupted: {done.runs_ended} runs. Records of the original's sessions are in {done.aside}.",
    ]
    if not done.rows_kept:
        lines.append(
            "Its rows are in a database that the original uses, and stay the original's: it begins without any."
        )
    told = {"id": done.id, "before": done.before, "runs_ended": done.runs_ended, "aside": str(done.aside)}
    output.record(told | {"rows_kept": done.rows_kept}, "\n".join(lines))


def command_for(_name: str) -> click.Command:
    return init
