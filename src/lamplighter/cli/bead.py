"""`lamp bead`: units of work."""

from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Whole
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.domain.beads.model import BeadStatus
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.beads.views import BeadView

bead = Subject("bead", "Units of work with status, labels, parent and needs.")

COLUMNS = {
    "ID": Col("id", "word"), "STATUS": Col("status", "state"), "TYPE": Col("type", spare=1), "ASSIGNEE": "assignee",
    "LABELS": Col("labels", spare=2), "TITLE": "title",
}  # fmt: skip
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
@carries_out("bead.create")
def create(bead_type: str, meta: tuple[str, ...], **rest: Any) -> None:
    """Create a bead."""
    from lamplighter.services.beads.operations import CREATE, CreateBead

    _made(do(CREATE, CreateBead(type=bead_type, metadata=pairs(meta, "--meta"), **rest)), "Created")


@bead.command("list")
@click.option("--label", help="With this label.")
@click.option("--status", type=STATUSES, help="In this status.")
@click.option("--type", "bead_type", help="Of this type.")
@click.option("--assignee", help="Of this assignee.")
@click.option("--parent", help="Children of this bead.", shell_complete=names("bead"))
@click.option("--limit", default=100, show_default=True, type=Whole(1, 100_000), help="At most so many.")
@carries_out("bead.list")
def list_beads(bead_type: str | None, status: str | None, **wanted: Any) -> None:
    """Beads, newest first."""
    from lamplighter.services.beads.queries import LIST, ListBeads

    _table(do(LIST, ListBeads(type=bead_type, status=_status(status), **wanted)), "No beads.")


@bead.command("ready")
@click.option("--label", help="With this label.")
@click.option("--assignee", help="Of this assignee.")
@click.option("--limit", default=100, show_default=True, type=Whole(1, 100_000), help="At most so many.")
@carries_out("bead.ready")
def ready(label: str | None, assignee: str | None, limit: int) -> None:
    """Work that can be taken now: open, with every need closed; oldest first."""
    from lamplighter.services.beads.queries import READY, ReadyBeads

    _table(do(READY, ReadyBeads(label, assignee, limit)), "Nothing is ready.")


@bead.command("show")
@click.argument("bead_id", metavar="ID", shell_complete=names("bead"))
@carries_out("bead.show")
def show(bead_id: str) -> None:
    """One bead in full."""
    from lamplighter.services.beads.queries import SHOW, ShowBead

    found = do(SHOW, ShowBead(bead_id))
    value = {key: entry for key, entry in to_json(found).items() if key != "children"}
    shown = {
        name.removesuffix("_at").capitalize(): entry for name, entry in value.items() if name not in {"id", "status"}
    }
    output.fields(value, {"Bead": value["id"], "Status": output.state(found.status)} | shown)
    if found.children and not output.wants_json():
        click.echo()
        output.table([to_json(child) for child in found.children], COLUMNS | {"NEEDS": "needs"}, empty="")


@bead.command("claim")
@click.argument("bead_id", metavar="ID", shell_complete=names("bead"))
@click.option("--assignee", help="Who takes it; LAMP_AGENT, else `human`, when left out.")
@carries_out("bead.claim")
def claim(bead_id: str, assignee: str | None) -> None:
    """Take a bead: of many who try, one gets it."""
    from lamplighter.services.beads.operations import CLAIM, ClaimBead

    _made(do(CLAIM, ClaimBead(bead_id, assignee)), "Claimed")


@bead.command("update")
@click.argument("bead_id", metavar="ID", shell_complete=names("bead"))
@click.option("--title", help="Another title.")
@click.option("--description", help="Another text.")
@click.option("--assignee", help="Another assignee; empty for none.")
@click.option("--parent", help="Another parent; empty for none.")
@click.option("--type", "type_", help="Another type.")
@click.option("--status", type=click.Choice(["open", "in_progress"]), help="Another status; `close` closes.")
@click.option("--needs", "add_needs", multiple=True, metavar="ID", help="A further need.")
@click.option("--drop-needs", "remove_needs", multiple=True, metavar="ID", help="A need it has no longer.")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata to set; an empty value removes.")
@carries_out("bead.update")
def update(bead_id: str, type_: str | None, status: str | None, meta: tuple[str, ...], **rest: Any) -> None:
    """Change a bead."""
    from lamplighter.services.beads.operations import UPDATE, UpdateBead

    metadata = {key: value or None for key, value in pairs(meta, "--meta").items()}
    ask = UpdateBead(bead_id, type=type_, status=_status(status), metadata=metadata, **rest)
    _made(do(UPDATE, ask), "Updated")


@bead.command("close")
@click.argument("bead_ids", metavar="ID…", nargs=-1, required=True, shell_complete=names("bead"))
@carries_out("bead.close")
def close(bead_ids: tuple[str, ...]) -> None:
    """Close beads, and what ends with them: a molecule with its last step, a convoy with its last child."""
    from lamplighter.services.beads.operations import CLOSE, CloseBead

    closed = [do(CLOSE, CloseBead(bead_id)) for bead_id in bead_ids]
    if len(closed) == 1:
        _made(closed[0], "Closed")
    else:
        _table(closed, "")


@bead.command("label")
@click.argument("bead_id", metavar="ID", shell_complete=names("bead"))
@click.argument("labels", metavar="[LABEL…]", nargs=-1)
@click.option("--add", multiple=True, metavar="LABEL", help="The same as naming it; several times.")
@click.option("--remove", multiple=True, metavar="LABEL", help="A label to take away; several times.")
@carries_out("bead.update")
def label(bead_id: str, labels: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Add labels to a bead, or take some away."""
    from lamplighter.services.beads.operations import UPDATE, UpdateBead

    if not labels and not add and not remove:
        raise UsageError("Name a label.", hint="Such as `lamp bead label ID urgent --remove stale`.")
    _made(do(UPDATE, UpdateBead(bead_id, add_labels=(*labels, *add), remove_labels=remove)), "Labelled")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises UsageError for one without `=`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"`{option} {text}` is not KEY=VALUE.", hint=f"Such as {option} branch=main.")
        found[key] = value
    return found


def _status(text: str | None) -> BeadStatus | None:
    return None if text is None else BeadStatus(text)


def _made(value: "BeadView", verb: str) -> None:
    output.record(to_json(value), f"{verb} {value.id}: {value.title} ({words.state(value.status)})")


def _table(values: "list[BeadView]", empty: str) -> None:
    output.table([to_json(value) for value in values], COLUMNS, empty=empty)


def command_for(_name: str) -> click.Command:
    return bead
