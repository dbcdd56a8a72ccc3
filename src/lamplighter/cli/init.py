"""`lamp init`: creates a city, or what is missing of one."""

from collections.abc import Sequence
from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand
from lamplighter.cli.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.settings import Settings


MOST_NAMED = 5


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
        text += f"\nMade: {', '.join(_at_the_top(shown))}\nNext: `lamp up` in {root}"
    output.record({"city": city_name, "root": str(root), "made": shown}, text)


def _at_the_top(made: list[str]) -> list[str]:
    """Files as they are, and for what lies deeper only the directory in the city, unless there is little of it."""
    if len(made) <= 2:
        return made
    deep = [one for one in made if "/" in one and not one.startswith("/")]
    folders = {one.partition("/")[0] for one in deep}
    return sorted({one for one in made if one not in deep and one not in folders} | {f"{one}/" for one in folders})


def _give_new_id(root: Path, settings: "Settings") -> None:
    from lamplighter.app.new_id import give_new_id

    done = give_new_id(root, settings)
    ended = counted(done.runs_ended, "run")
    lines = [
        f"{root} is a city of its own now: {done.id} (before: {done.before}).",
        f"Ended as interrupted: {ended}. Records of the original's sessions are in {done.aside}.",
    ]
    if not done.rows_kept:
        lines.append(
            "Its rows are in a database that the original uses, and stay the original's: it begins without any."
        )
    if done.fires:
        lines += _fires_twice(root, done.fires)
    told = {"id": done.id, "before": done.before, "runs_ended": done.runs_ended, "aside": str(done.aside)}
    output.record(told | {"rows_kept": done.rows_kept, "fires": list(done.fires)}, "\n".join(lines))


def _fires_twice(root: Path, names: Sequence[str]) -> list[str]:
    shown, left = ", ".join(names[:MOST_NAMED]), len(names) - MOST_NAMED
    more = f" and {left} more" if left > 0 else ""
    several = "1 automation fires" if len(names) == 1 else f"{len(names)} automations fire"
    at = f"lamp --city {root}"
    return [
        f"Once it is started, {several} here and in the original: {shown}{more}.",
        f"`{at} pause` before its start keeps all from firing; `{at} automation disable NAME` one.",
    ]


def command_for(_name: str) -> click.Command:
    return init
