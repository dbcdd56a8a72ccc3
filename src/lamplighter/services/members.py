"""The people of a city's organization: who may do what in each of its cities."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.access import Role, Verb
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.store.members import MemberRow
from lamplighter.store.tx import Tx

LONGEST_NAME = 80
OWNER = "owner"
"""The name under which the city's own token acts."""


class MemberUnknown(NotFound):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"There is no member `{name}`{full_stop(name, known)}", hint="`lamp member list` shows those there are."
        )


class MemberTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is already a member `{name}`.", hint="Choose another name, or change the role: `lamp member role`."
        )


class PersonRole(StrEnum):
    """The roles that people can have."""

    OWNER = Role.OWNER.value
    ADMIN = Role.ADMIN.value
    MEMBER = Role.MEMBER.value


@dataclass(frozen=True)
class MemberView:
    name: str
    role: Role
    added_at: datetime
    added_by: str


@dataclass(frozen=True)
class MemberRemoved:
    name: str
    removed: bool = True


@dataclass(frozen=True)
class ListMembers:
    """The members and their roles, which hold in each city of the organization."""


@dataclass(frozen=True)
class AddMember:
    """Make somebody a member, in each city of the organization."""

    name: str = given("Their name, which is on record for all they do.", positional=True)
    role: PersonRole = given("What they may do.", default=PersonRole.MEMBER)


@dataclass(frozen=True)
class SetRole:
    """Change what a member may do."""

    name: str = given("Their name.", positional=True)
    role: PersonRole = given("What they may do.", positional=True)


@dataclass(frozen=True)
class RemoveMember:
    """Remove a member; their tokens are void at once."""

    name: str = given("Their name.", positional=True)


def list_members(tx: Tx, _ask: ListMembers, _ctx: Context) -> list[MemberView]:
    return [view(row) for row in tx.members.all()]


def add_member(tx: Tx, ask: AddMember, ctx: Context) -> MemberView:
    """Raises MemberTaken, UsageError."""
    name = ask.name.strip()
    if not name or len(name) > LONGEST_NAME or ":" in name or not name.isprintable() or name == OWNER:
        raise UsageError(
            f"{name[:LONGEST_NAME]!r} cannot be a member's name.",
            hint=f"Use 1 to {LONGEST_NAME} printable characters without a colon, and not `{OWNER}`.",
        )
    row = MemberRow(name, Role(ask.role.value), ctx.now, ctx.actor.name)
    if not tx.members.add(row):
        raise MemberTaken(name)
    tx.events.append(ctx.event("city.member_added", subject=name, payload={"role": row.role.value}))
    return view(row)


def set_role(tx: Tx, ask: SetRole, ctx: Context) -> MemberView:
    """Raises MemberUnknown."""
    row = locked(tx, ask.name)
    tx.members.set_role(row.name, Role(ask.role.value))
    tx.events.append(ctx.event("city.member_changed", subject=row.name, payload={"role": ask.role.value}))
    return MemberView(row.name, Role(ask.role.value), row.added_at, row.added_by)


def remove_member(tx: Tx, ask: RemoveMember, ctx: Context) -> MemberRemoved:
    """Raises MemberUnknown."""
    row = locked(tx, ask.name)
    tx.members.remove(row.name)
    tx.events.append(ctx.event("city.member_removed", subject=row.name))
    return MemberRemoved(row.name)


def locked(tx: Tx, name: str) -> MemberRow:
    """Raises MemberUnknown."""
    row = tx.members.lock(name)
    if row is None:
        raise MemberUnknown(name, [one.name for one in tx.members.all()])
    return row


def view(row: MemberRow) -> MemberView:
    return MemberView(row.name, row.role, row.added_at, row.added_by)


LIST = read("member.list", Verb.READ, ListMembers, list[MemberView], list_members, http=Http("GET", "/members"))
ADD = transaction("member.add", Verb.WRITE_MEMBERS, AddMember, MemberView, add_member,
                  http=Http("POST", "/members", status=201))  # fmt: skip
ROLE = transaction("member.role", Verb.WRITE_MEMBERS, SetRole, MemberView, set_role,
                   http=Http("PUT", "/members/{name}/role"))  # fmt: skip
REMOVE = transaction("member.remove", Verb.WRITE_MEMBERS, RemoveMember, MemberRemoved, remove_member,
                     http=Http("DELETE", "/members/{name}", status=204))  # fmt: skip
