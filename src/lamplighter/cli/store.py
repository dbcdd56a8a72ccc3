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


@store.command("copy")
@click.option("--to", "target", metavar="URL", help="The database to copy to; the city's own when left out.")
@click.option("--from", "source", metavar="URL", help="The database to copy from; the city's own when left out.")
@click.option("--replace", is_flag=True, help="First delete what the target holds of this city.")
def copy(target: str | None, source: str | None, *, replace: bool) -> None:
    """Copy all rows of the city to another database; neither changes where the city looks for them.

    URL is `postgresql://user@host/database` or `sqlite:PATH` with a path relative to the city. The city must be
    stopped. What was copied is compared row by row, and all of it is there or nothing: the command may be repeated.
    """
    from lamplighter.app.store_copy import copy_store
    from lamplighter.cli.progress import ProgressLine

    with ProgressLine() as line:
        done = copy_store(
            city(), source=source, target=target, replace=replace,
            tell=lambda at: line(f"copying {at.table}: {at.done} of {at.of} rows"),
        )  # fmt: skip
    copied = done.copied
    told = {"from": done.source, "to": done.target, "rows": copied.rows, "hashes": copied.hashes}
    lines = [
        f"The {copied.count} rows of this city are in {done.target} already, each the same as in {done.source}."
        if copied.already
        else f"Copied {copied.count} rows from {done.source} to {done.target}; each was compared and is the same."
    ]
    if done.in_use:
        lines.append("The city uses it: `lamp up` or `lamp daemon start` goes on there.")
    else:
        lines += [
            "The city still uses the first. To switch, write in city.toml",
            "",
            "    [store]",
            f'    url = "{done.target}"',
            "",
            "or set LAMP_STORE_URL, and start the city. What is written before that is not in the copy.",
        ]
    if "members" not in copied.rows:
        lines.insert(1, "Its organization has other cities there: members and tokens are those that it has there.")
    if output.wants_json():
        output.record(told | {"already": copied.already, "in_use": done.in_use}, "")
    else:
        output.text(output.commands("\n".join(lines)))


@store.command("forget")
def forget() -> None:
    """Warn no more of the database that the city used before; nothing in it is changed."""
    from lamplighter.app.store_copy import forget_earlier

    before = forget_earlier(city())
    text = "There is no earlier database to warn of." if before is None else f"{before} is not spoken of any more."
    output.record({"before": before}, text)


def command_for(_name: str) -> click.Command:
    return store
