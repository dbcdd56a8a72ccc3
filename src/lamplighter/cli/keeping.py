"""`lamp backup`, `lamp restore` and `lamp uninstall`."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city
from lamplighter.cli.operations import carries_out, do
from lamplighter.cli.progress import ProgressLine
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json


@click.command("backup", cls=LampCommand, context_settings=CONTEXT)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--artifacts", is_flag=True, help="Also the artifacts of runs, where they are kept in a directory.")
@carries_out("city.backup")
def backup(file: str | None, *, artifacts: bool) -> None:
    """Save the city in one file, while it may run: its database as it is at one moment, and its files.

    Never in it: the keys and tokens in `.gc`, the directories of rigs and other repositories, what runs and sessions
    left in `.gc`. Only its owner can read the file. Without FILE it is a new one in the working directory.
    """
    from lamplighter.app.operations import DirectOperations
    from lamplighter.services.keeping import BACK_UP, BackUp

    with ProgressLine() as line, closing(replace(city(), progress=line)) as telling:
        done = DirectOperations(telling).do(BACK_UP, BackUp(file, artifacts))
    files = "1 file" if done.files == 1 else f"{done.files} files"
    lines = [f"Saved the database and {files} of the city in {done.file} ({_size(done.size)})."]
    if done.left_out:
        lines.append(f"Not in it, as they are repositories or rigs: {', '.join(done.left_out)}.")
    lines.append(f"`lamp restore {Path(done.file).name} DIR` makes a city from it.")
    output.record(to_json(done), "\n".join(lines))


@click.command("restore", cls=LampCommand, context_settings=CONTEXT)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def restore(file: Path, directory: Path) -> None:
    """Make a city in DIR from a backup, with the id and the history of the one that was saved; it is not started."""
    from lamplighter.app.backup import restore as restore_city
    from lamplighter.app.settings import from_environment

    with ProgressLine() as line:
        done = restore_city(file.resolve(), directory.resolve(), from_environment(), line)
    lines = [f"The city of {output.local(done.made_at)} is in {done.root}.", *done.notes]
    output.record(
        {"root": str(done.root), "made_at": done.made_at, "notes": list(done.notes)},
        "\n".join([*lines, f"Next: `lamp status` in {done.root}"]),
    )


@click.command("uninstall", cls=LampCommand, context_settings=CONTEXT)
@click.option("--purge", is_flag=True, help="Also delete `.gc` with the database in it; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@carries_out("city.uninstall")
def uninstall(*, purge: bool, yes: bool) -> None:
    """Stop the city, its agents and its service, and say what is left of it on this machine."""
    from lamplighter.services.keeping import UNINSTALL, Uninstall

    opened = city()
    if purge and not yes:
        if output.wants_json():
            raise UsageError("--purge with --json does not ask.", hint="Add --yes.")
        trees = opened.paths.runtime / "worktrees"
        count = sum(1 for _ in trees.iterdir()) if trees.is_dir() else 0
        trees_held = "the worktree of a run" if count == 1 else f"{count} worktrees of runs"
        held = f", with {trees_held} and what is not committed there" if count else ""
        click.confirm(f"Delete {opened.paths.runtime} and all that is in it{held}? It cannot be undone", abort=True)
    done = do(UNINSTALL, Uninstall(purge))
    lines = ["The city was not running." if done.stopped is None else f"Stopped the city (process {done.stopped})."]
    lines += [f"Removed {one}." for one in done.removed]
    lines += ["Now run by hand:", *(f"  {one}" for one in done.by_hand)] if done.by_hand else []
    lines += ["Still there:", *(f"  {one}" for one in done.left)]
    click.echo(json.dumps(to_json(done)) if output.wants_json() else "\n".join(lines))


def _size(count: int) -> str:
    """Such as `18 kB`, `3.1 MB`."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(round(count / 1e3), 1)} kB"


def command_for(name: str) -> click.Command:
    return {"backup": backup, "restore": restore, "uninstall": uninstall}[name]
