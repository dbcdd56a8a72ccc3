"""`lamp member`, `lamp token` and `lamp audit`: who may do what in a city, and who did."""

import json
from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.auditing import AuditView
    from lamplighter.services.members import MemberRemoved, MemberView
    from lamplighter.services.tokens import TokenMade, TokenRevoked, TokenView

PAGE = 1000


def _members(found: "list[MemberView]", _ask: Any) -> None:
    rows = [to_json(one) | {"since": output.local_time(one.added_at)} for one in found]
    columns = {"NAME": "name", "ROLE": "role", "SINCE": "since", "ADDED BY": "added_by"}
    output.table(rows, columns, empty="No members. The city is its local owner's alone; `lamp member add` adds others.")


def _member(one: "MemberView", _ask: Any) -> None:
    click.echo(f"{one.name} is {'a member' if one.role == 'member' else f'an {one.role}'} of the city.")


def _removed(gone: "MemberRemoved", _ask: Any) -> None:
    click.echo(f"{gone.name} is no member any more, and their tokens are void.")


def _tokens(found: "list[TokenView]", _ask: Any) -> None:
    rows = [
        to_json(one)
        | {
            "state": _state(one),
            "used": output.local_time(one.used_at),
            "shown": f"…{one.ending}",
            "may": ", ".join(one.scopes),
        }
        for one in found
    ]
    columns = {
        "ID": "id", "NAME": "name", "MEMBER": "member", "TOKEN": "shown", "MAY ONLY": "may", "LAST USED": "used",
        "STATE": "state",
    }  # fmt: skip
    output.table(rows, columns, empty="No tokens. `lamp token create` makes one.")


def _state(one: "TokenView") -> str:
    if one.revoked_at is not None:
        return "revoked"
    return "" if one.expires_at is None else f"until {output.local_time(one.expires_at)}"


def _made(one: "TokenMade", _ask: Any) -> None:
    click.echo(one.token)
    until = f"until {output.local_time(one.expires_at)}" if one.expires_at else "until it is revoked"
    known = words.short_id(one.id)
    click.echo(f"It acts as {one.member}, {until}. It is not shown again; its id is {known}.", err=True)


def _revoked(one: "TokenRevoked", _ask: Any) -> None:
    short = words.short_id(one.id)
    click.echo(f"{short} is void." if one.changed else f"{short} was void already.")


def _entries(found: "list[AuditView]", _ask: Any) -> None:
    rows = [to_json(one) | {"when": output.local_time(one.at), "what": one.object} for one in found]
    columns = {
        "WHEN": "when", "WHO": "actor", "BY": "surface", "IN": "asked_in", "OPERATION": "operation", "OF": "what",
        "ID": "id",
    }  # fmt: skip
    output.table(rows, columns, empty="Nothing is on record.")


member = Subject(
    "member",
    "The people of the city and what each may.",
    {"list": _members, "add": _member, "role": _member, "remove": _removed},
)
token = Subject(
    "token", "Tokens, by which programs act in a member's name.", {"list": _tokens, "create": _made, "revoke": _revoked}
)
audit = Subject("audit", "Who changed what.", {"list": _entries})


@audit.command("export")
@click.option("--actor", help="Only what this one did.")
@carries_out("audit.list")
def export(actor: str | None) -> None:
    """Every entry as a line of JSON, newest first."""
    from lamplighter.services.auditing import LIST, ListAudit

    before: str | None = None
    while found := do(LIST, ListAudit(actor, before, PAGE)):
        for one in found:
            click.echo(json.dumps(to_json(one)))
        before = found[-1].id


def command_for(name: str) -> click.Command:
    return {"member": member, "token": token, "audit": audit}[name]
