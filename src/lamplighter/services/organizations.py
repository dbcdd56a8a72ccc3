"""The organization of a city: who and which cities are in it, and how a city comes to another one."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lamplighter.domain.access import RIGHTS, Role, Verb
from lamplighter.domain.events import TOPIC
from lamplighter.domain.tokens import is_token, token_hash
from lamplighter.kit.errors import Conflict, LampError, NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.members import LONGEST_NAME, OWNER, MemberView, view
from lamplighter.services.operation import Http, read, transaction
from lamplighter.services.resolving import the_one
from lamplighter.services.tokens import CreateToken, creating
from lamplighter.services.versions import version_of
from lamplighter.store.organizations import CityInIt, Invitation, OrganizationRow
from lamplighter.store.slack import Person
from lamplighter.store.tx import Tx

INVITATION = "invitation"
"""The name under which an invitation is among the tokens."""
HOLDS = "1h"


class InvitationVoid(LampError):
    """One error for whatever is wrong with it, so that nobody learns which tokens there are."""

    def __init__(self) -> None:
        super().__init__(
            "This is no invitation that holds: it was used, revoked or is too old, or its maker is no owner any more.",
            hint="Ask an owner of the organization for another one.",
        )


class HomeStays(Conflict):
    def __init__(self, organization: str, others: Sequence[str]) -> None:
        super().__init__(
            f"This city is the home of the organization {organization}, which has other cities: {', '.join(others)}.",
            hint="Let another city be its home before: `lamp org home CITY`.",
        )


class CityNotInIt(NotFound):
    def __init__(self, city: str, known: Sequence[str]) -> None:
        super().__init__(
            f"`{city}` names no other city of the organization{full_stop(city, known)}",
            hint="`lamp org show` lists its cities with their ids.",
        )


@dataclass(frozen=True)
class CityInView:
    id: str
    name: str
    is_home: bool = given("Whether its local owner is an owner of the organization.")
    is_this: bool = given("Whether it is the city that was asked.")


@dataclass(frozen=True)
class OrganizationView:
    id: str
    name: str
    created_at: datetime
    is_home: bool = given("Whether the city that was asked is its home, whose local owner is an owner of it.")
    cities: Sequence[CityInView] = given("Which cities are in it.")
    members: Sequence[MemberView] = given("They may do what their roles allow in each of the cities.")


@dataclass(frozen=True)
class InvitationMade:
    id: str = given("The id by which it can be revoked, like a token.")
    invitation: str = given("The invitation itself, which is not kept and never shown again.")
    organization: str = given("The name of the organization.")
    expires_at: datetime | None = given("When it ends, used or not.")


@dataclass(frozen=True)
class CityMoved:
    """`done` is false where it was only asked what would happen."""

    done: bool
    city: str = given("The name of the city.")
    organization: str = given("The name of the organization in which it is then.")
    organization_id: str | None = given("Its id; null for one that is still to be made.")
    cities: Sequence[str] = given("The names of the other cities there.")
    members: Sequence[MemberView] = given("Who may then come in, with their roles.")
    before: str = given("The name of the organization that it leaves.")
    before_ends: bool = given("Whether that one ends, with its members and tokens, as it has no other city.")
    members_before: int = given("How many members it has, who may not come in any more.")
    tokens_before: int = given("How many tokens of theirs are good now, and will not be here.")
    slack_before: int = given("How many users of Slack are linked to one of them, and must be linked again.")


@dataclass(frozen=True)
class ShowOrganization:
    """The organization of the city: its name, its cities and its members."""


@dataclass(frozen=True)
class RenameOrganization:
    """Give the organization another name."""

    name: str = given("The new name.", positional=True)


@dataclass(frozen=True)
class InviteCity:
    """Make an invitation, by which one other city of the same database can join the organization. It is shown once."""

    expires: str = given("How long it holds, unless it is used before: a duration.", default=HOLDS)


@dataclass(frozen=True)
class JoinOrganization:
    """Move the city to the organization that has invited it.

    Its members may then come in, and who is a member of the organization before may not any more.
    """

    invitation_token: str = given("The invitation.", key="invitation", positional=True, metavar="INVITATION")
    dry_run: bool = given("Only say what would happen.", default=False)


@dataclass(frozen=True)
class LeaveOrganization:
    """Take the city out of its organization, into one of its own without members."""

    name: str | None = given("The name of its own organization; that of the city when left out.", default=None)
    dry_run: bool = given("Only say what would happen.", default=False)


@dataclass(frozen=True)
class RemoveCity:
    """Put another city out of the organization: it gets one of its own, without members."""

    name: str = given("The city's name, its id, or a part of that.", positional=True, metavar="CITY")


@dataclass(frozen=True)
class SetHome:
    """Have the organization looked after from another of its cities, whose local owner is then an owner of it."""

    name: str = given("The city's name, its id, or a part of that.", positional=True, metavar="CITY")


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


def show(tx: Tx, _ask: ShowOrganization, _ctx: Context) -> OrganizationView:
    return _view(tx, _own(tx))


def rename(tx: Tx, ask: RenameOrganization, _ctx: Context) -> OrganizationView:
    """Raises UsageError."""
    tx.organizations.rename(_named(ask.name))
    return _view(tx, _own(tx))


def inviting(chance: Callable[[int], bytes]) -> Callable[[Tx, InviteCity, Context], InvitationMade]:
    """The operation, with the source of the invitation's random part."""
    create = creating(chance)

    def invite(tx: Tx, ask: InviteCity, ctx: Context) -> InvitationMade:
        """Raises UsageError."""
        if ctx.actor.scopes == frozenset({Verb.INVITE_CITY}):
            raise UsageError("An invitation makes no other one.", hint="Ask as an owner of the organization.")
        made = create(tx, CreateToken(INVITATION, None, (Verb.INVITE_CITY.value,), ask.expires), ctx)
        return InvitationMade(made.id, made.token, _own(tx).name, made.expires_at)

    return invite


def join(tx: Tx, ask: JoinOrganization, ctx: Context) -> CityMoved:
    """Raises InvitationVoid, Conflict where it is in that organization already, HomeStays."""
    invitation, own = _invitation(tx, ask.invitation_token.strip(), ctx), _own(tx)
    for organization in sorted({own.id, invitation.organization}):
        tx.organizations.lock(organization)
    to = tx.organizations.lock(invitation.organization)
    if to is None:
        raise InvitationVoid
    if to.id == own.id:
        raise Conflict(f"The city is in the organization {own.name} already.", hint="`lamp org show` tells who else.")
    told = _told(tx, _this(tx), own, to, ctx, done=not ask.dry_run)
    if ask.dry_run:
        return told
    if not tx.organizations.use_up(invitation, ctx.now):
        raise InvitationVoid
    _move(tx, tx.city, own, to, ctx)
    facts = {"organization": to.id, "before": own.name}
    tx.events.append(ctx.event("city.joined", subject=to.name, payload=facts))
    return told


def leave(tx: Tx, ask: LeaveOrganization, ctx: Context) -> CityMoved:
    """Raises Conflict where it is the only city, HomeStays, UsageError."""
    own, this = _own(tx), _this(tx)
    tx.organizations.lock(own.id)
    if [one.id for one in tx.organizations.cities()] == [this.id]:
        raise Conflict(
            f"The city is the only one of its organization {own.name}.",
            hint="`lamp org rename` gives that another name.",
        )
    return _put_out(tx, this, own, ask.name, ctx, done=not ask.dry_run)


def remove(tx: Tx, ask: RemoveCity, ctx: Context) -> CityMoved:
    """Raises CityNotInIt, UsageError for a name that several have, IdAmbiguous, HomeStays."""
    own = _own(tx)
    tx.organizations.lock(own.id)
    others = [one for one in tx.organizations.cities() if one.id != tx.city]
    return _put_out(tx, _meant(ask.name, others), own, None, ctx, done=True)


def set_home(tx: Tx, ask: SetHome, _ctx: Context) -> OrganizationView:
    """Raises CityNotInIt, UsageError for a name that several have, IdAmbiguous."""
    tx.organizations.lock(_own(tx).id)
    tx.organizations.set_home(_meant(ask.name, tx.organizations.cities()).id)
    return _view(tx, _own(tx))


def version(tx: Tx, _ask: ShowOrganization | RenameOrganization, *, lock: bool) -> str:
    own = _own(tx)
    if lock:
        own = tx.organizations.lock(own.id) or own
    return version_of(own.id, own.name)


# ── parts of them ─────────────────────────────────────────────────────────────────────────────────────────────────


def _own(tx: Tx) -> OrganizationRow:
    own = tx.organizations.own()
    if own is None:
        raise NotFound("The city is in no database yet.", hint="`lamp start` puts it there.")
    return own


def _this(tx: Tx) -> CityInIt:
    return next(one for one in tx.organizations.cities() if one.id == tx.city)


def _meant(text: str, cities: Sequence[CityInIt]) -> CityInIt:
    """The city that is meant by its name, its id or a part of that. Raises CityNotInIt, UsageError, IdAmbiguous."""
    named = [one for one in cities if one.name == text]
    if len(named) > 1:
        raise UsageError(f"Several cities are called `{text}`.", hint="Name its id: `lamp org show` has it.")
    known = the_one(text, "city", [one.id for one in cities])
    for one in named or cities:
        if named or one.id == known:
            return one
    raise CityNotInIt(text, [one.name for one in cities])


def _named(text: str) -> str:
    """Raises UsageError."""
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"{name[:LONGEST_NAME]!r} cannot be the name of an organization.",
            hint=f"Use 1 to {LONGEST_NAME} printable characters.",
        )
    return name


def _view(tx: Tx, own: OrganizationRow) -> OrganizationView:
    cities = [
        CityInView(one.id, one.name, one.id == own.home_city_id, one.id == tx.city) for one in tx.organizations.cities()
    ]
    members = [view(row) for row in tx.members.all()]
    return OrganizationView(own.id, own.name, own.created_at, own.home_city_id == tx.city, cities, members)


def _invitation(tx: Tx, text: str, ctx: Context) -> Invitation:
    """Raises InvitationVoid, also for a token that may do anything else."""
    found = tx.organizations.invitations(token_hash(text)) if is_token(text) else []
    good = [
        one for one in found
        if one.token.scopes == (Verb.INVITE_CITY.value,) and one.token.revoked_at is None
        and (one.token.expires_at is None or one.token.expires_at > ctx.now)
        and Verb.INVITE_CITY in RIGHTS[Role(one.role)]
    ]  # fmt: skip
    if len(good) != 1:
        raise InvitationVoid
    return good[0]


def _put_out(tx: Tx, city: CityInIt, own: OrganizationRow, name: str | None, ctx: Context, *, done: bool) -> CityMoved:
    to = OrganizationRow(ctx.ids.make("org"), _named(name or city.name), ctx.now, city.id)
    told = _told(tx, city, own, to, ctx, done=done)
    if not done:
        return replace(told, organization_id=None)
    tx.organizations.add(to)
    _move(tx, city.id, own, to, ctx)
    there = tx if city.id == tx.city else Tx(tx.db, city.id)
    there.events.append(ctx.event("city.left", subject=to.name, payload={"organization": to.id, "before": own.name}))
    tx.wake(TOPIC)
    return told


def _told(tx: Tx, city: CityInIt, own: OrganizationRow, to: OrganizationRow, ctx: Context, *, done: bool) -> CityMoved:
    """What moving the city means. Raises HomeStays."""
    left = [one.name for one in tx.organizations.cities() if one.id != city.id]
    if left and own.home_city_id == city.id:
        raise HomeStays(own.name, left)
    members, tokens = tx.organizations.counts(own.id, ctx.now)
    return CityMoved(
        done, city.name, to.name, to.id, [one.name for one in tx.organizations.cities_of(to.id)],
        [view(row) for row in tx.organizations.members_of(to.id)], own.name, not left, members, tokens,
        len(_linked(Tx(tx.db, city.id))),
    )  # fmt: skip


def _move(tx: Tx, city: str, own: OrganizationRow, to: OrganizationRow, ctx: Context) -> None:
    """A name stands for somebody within one organization only: users of Slack are not linked to it in the other."""
    there = Tx(tx.db, city)
    for person in _linked(there):
        there.slack.put_person(changed(person, member=None, changed_at=ctx.now))
    tx.organizations.move(city, to.id)
    tx.organizations.end(own.id)


def _linked(tx: Tx) -> list[Person]:
    return [one for one in tx.slack.people() if one.member not in (None, OWNER)]


SHOW = read("org.show", Verb.READ, ShowOrganization, OrganizationView, show, http=Http("GET", "/organization"),
            version=version)  # fmt: skip
RENAME = transaction("org.rename", Verb.WRITE_ORGANIZATION, RenameOrganization, OrganizationView, rename,
                     http=Http("PATCH", "/organization"), version=version)  # fmt: skip
INVITE = transaction("org.invite", Verb.INVITE_CITY, InviteCity, InvitationMade, inviting(secrets.token_bytes),
                     http=Http("POST", "/organization/invitations", status=201), is_secret=True)  # fmt: skip
JOIN = transaction("org.join", Verb.MOVE_CITY, JoinOrganization, CityMoved, join,
                   http=Http("POST", "/organization/join"), changes=lambda ask: not ask.dry_run)  # fmt: skip
LEAVE = transaction("org.leave", Verb.MOVE_CITY, LeaveOrganization, CityMoved, leave,
                    http=Http("POST", "/organization/leave"), changes=lambda ask: not ask.dry_run)  # fmt: skip
REMOVE = transaction("org.remove", Verb.WRITE_ORGANIZATION, RemoveCity, CityMoved, remove,
                     http=Http("DELETE", "/organization/cities/{name}", status=204))  # fmt: skip
HOME = transaction("org.home", Verb.WRITE_ORGANIZATION, SetHome, OrganizationView, set_home,
                   http=Http("PUT", "/organization/home"))  # fmt: skip
