"""`lamp bead`: units of work."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import group
from lamplighter.cli.base import patient_city as city
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, BeadStatus, NewBead
from lamplighter.kit.errors import UsageError

bead = group("Units of work with status, labels, parent and needs.")

COLUMNS = {"ID": "id", "STATUS": "status", "TYPE": "type", "ASSIGNEE": "assignee", "LABELS": "labels", "TITLE": "title"}
STATUSES = click.Choice([status.value for status in BeadStatus])


@bead.command("create")
@click.argument("title")
@click.option("--type", "bead_type", default="task", show_default=True, help="task, bug, epic, convoy, message, …")
@click.option("--label", "labels", multiple=True, help="May be given several times.")
@click.option("--parent", help="The bead it belongs to.")
@click.option("--needs", multiple=True, metavar="ID", help="A bead that must be closed first; several times.")
@click.option("--assignee", help="Whose it is.")
@click.option("--description", default="", help="The whole text of the work.")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata; several times.")
@click.option("--rig", help="The rig whose prefix its id gets.")
def create(title: str, bead_type: str, rig: str | None, **rest: Any) -> None:
    """Create a bead."""
    new = NewBead(
        title=title,
        type=bead_type,
        labels=rest["labels"],
        assignee=rest["assignee"],
        parent=rest["parent"],
        needs=tuple(dict.fromkeys(rest["needs"])),
        description=rest["description"],
        metadata=pairs(rest["meta"], "--meta"),
    )
    _made(city().beads.create(new, rig=rig), "Created")


@bead.command("list")
@click.option("--label", help="With this label.")
@click.option("--status", type=STATUSES, help="In this status.")
@click.option("--type", "bead_type", help="Of this type.")
@click.option("--assignee", help="Of this assignee.")
@click.option("--parent", help="Children of this bead.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="At most so many.")
def list_beads(bead_type: str | None, status: str | None, limit: int, **wanted: Any) -> None:
    """Beads, newest first."""
    chosen = BeadFilter(type=bead_type, status=None if status is None else BeadStatus(status), **wanted)
    _table(list(city().beads.matching(chosen, limit=limit)), "No beads.")


@bead.command("ready")
@click.option("--label", help="With this label.")
@click.option("--assignee", help="Of this assignee.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="At most so many.")
def ready(label: str | None, assignee: str | None, limit: int) -> None:
    """Work that can be taken now: open, with every need closed; oldest first."""
    _table(list(city().beads.ready(label=label, assignee=assignee, limit=limit)), "Nothing is ready.")


@bead.command("show")
@click.argument("bead_id", metavar="ID")
def show(bead_id: str) -> None:
    """One bead in full."""
    opened = city()
    value = opened.beads.get(bead_id).as_json()
    children = [child.as_json() for child in opened.beads.children(bead_id)]
    times = {"created": output.local(value["created_at"]), "closed": output.local(value["closed_at"])}
    shown = {name: entry for name, entry in value.items() if not name.endswith("_at")}
    output.fields(value, shown | times)
    if children and not output.wants_json():
        click.echo()
        output.table(children, COLUMNS | {"NEEDS": "needs"}, empty="")


@bead.command("claim")
@click.argument("bead_id", metavar="ID")
@click.option("--assignee", help="Who takes it; LAMP_AGENT, else `human`, when left out.")
def claim(bead_id: str, assignee: str | None) -> None:
    """Take a bead: of many who try, one gets it."""
    opened = city()
    _made(opened.beads.claim(bead_id, assignee or opened.settings.actor), "Claimed")


@bead.command("update")
@click.argument("bead_id", metavar="ID")
@click.option("--title", help="Another title.")
@click.option("--description", help="Another text.")
@click.option("--assignee", help="Another assignee; empty for none.")
@click.option("--parent", help="Another parent; empty for none.")
@click.option("--type", "type_", help="Another type.")
@click.option("--status", type=click.Choice(["open", "in_progress"]), help="Another status; `close` closes.")
@click.option("--needs", multiple=True, metavar="ID", help="A further need.")
@click.option("--drop-needs", multiple=True, metavar="ID", help="A need it has no longer.")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata to set; an empty value removes.")
def update(bead_id: str, type_: str | None, status: str | None, **rest: Any) -> None:
    """Change a bead."""
    wanted = BeadChange(
        title=rest["title"],
        description=rest["description"],
        assignee=rest["assignee"],
        parent=rest["parent"],
        type=type_,
        status=None if status is None else BeadStatus(status),
        add_needs=rest["needs"],
        remove_needs=rest["drop_needs"],
        metadata={key: value or None for key, value in pairs(rest["meta"], "--meta").items()},
    )
    _made(city().beads.change(bead_id, wanted), "Updated")


@bead.command("close")
@click.argument("bead_ids", metavar="ID…", nargs=-1, required=True)
def close(bead_ids: tuple[str, ...]) -> None:
    """Close beads, and what ends with them: a molecule with its last step, a convoy with its last child."""
    store = city().beads
    closed = [store.close(bead_id) for bead_id in bead_ids]
    if len(closed) == 1:
        _made(closed[0], "Closed")
    else:
        _table(closed, "")


@bead.command("label")
@click.argument("bead_id", metavar="ID")
@click.argument("labels", metavar="[LABEL…]", nargs=-1)
@click.option("--add", multiple=True, metavar="LABEL", help="The same as naming it; several times.")
@click.option("--remove", multiple=True, metavar="LABEL", help="A label to take away; several times.")
def label(bead_id: str, labels: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Add labels to a bead, or take some away."""
    if not labels and not add and not remove:
        raise UsageError("Name a label.", hint="Such as `lamp bead label ID urgent --remove stale`.")
    _made(city().beads.change(bead_id, BeadChange(add_labels=(*labels, *add), remove_labels=remove)), "Labelled")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises UsageError for one without `=`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"`{option} {text}` is not KEY=VALUE.", hint=f"Such as {option} branch=main.")
        found[key] = value
    return found


def _made(value: Bead, verb: str) -> None:
    output.record(value.as_json(), f"{verb} {value.id}: {value.title} ({value.status.value})")


def _table(values: list[Bead], empty: str) -> None:
    output.table([value.as_json() for value in values], COLUMNS, empty=empty)


def command_for(_name: str) -> click.Command:
    return bead
