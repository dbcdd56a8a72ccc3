"""Cities of one database that share their members: who may let them in and out, and what nobody gets by it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from lamplighter.domain.access import Actor, Forbidden, NotItsHome, Role, TokenVoid, Verb, owner
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.services import token_checks
from lamplighter.services.auditing import LIST as AUDIT
from lamplighter.services.auditing import ListAudit
from lamplighter.services.context import Context
from lamplighter.services.members import ADD, REMOVE, ROLE, AddMember, ListMembers, PersonRole, RemoveMember, SetRole
from lamplighter.services.members import LIST as MEMBERS
from lamplighter.services.operation import Operation, judged
from lamplighter.services.organizations import (
    HOME,
    INVITE,
    JOIN,
    LEAVE,
    RENAME,
    SHOW,
    CityMoved,
    CityNotInIt,
    HomeStays,
    InvitationVoid,
    InviteCity,
    JoinOrganization,
    LeaveOrganization,
    OrganizationView,
    RemoveCity,
    RenameOrganization,
    SetHome,
    ShowOrganization,
)
from lamplighter.services.organizations import REMOVE as PUT_OUT
from lamplighter.services.signing_in import NoMember, sign_in
from lamplighter.services.tokens import CREATE, REVOKE, CreateToken, ListTokens, RevokeToken, TokenMade
from lamplighter.services.tokens import LIST as TOKENS
from lamplighter.store.slack import Person
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import Place, PostgresUrl, open_direct
from lamplighter.testing.clock import FakeClock

ADA = owner("ada")
"""The user who can read the files of each city."""


@dataclass
class City:
    store: DirectStore
    clock: FakeClock
    ids: IdSource
    name: str

    def do(self, operation: Operation[Any, Any], ask: Any, actor: Actor = ADA) -> Any:
        self.clock.advance(timedelta(milliseconds=1))  # ids are in the order of time
        return self.store.transact(judged, operation, ask, self.context(actor))

    def context(self, actor: Actor = ADA) -> Context:
        return Context(actor, self.clock.now(), self.ids, "api")

    def bearer(self, token: str) -> Actor:
        """Who shows this token with a request. Raises TokenVoid; AssertionError for a token that is not known."""
        found = self.store.read(token_checks.find, token, self.clock.now())
        assert found is not None, f"{self.name} does not know the token"
        return changed(found[0], is_proved=True)

    def knows(self, token: str) -> bool:
        return self.store.read(token_checks.find, token, self.clock.now()) is not None

    def show(self) -> OrganizationView:
        found: OrganizationView = self.do(SHOW, ShowOrganization())
        return found

    def token(self, member: str | None = None, actor: Actor = ADA, **more: Any) -> str:
        made: TokenMade = self.do(CREATE, CreateToken("t", member, **more), actor)
        return made.token

    def invitation(self) -> str:
        return str(self.do(INVITE, InviteCity()).invitation)

    def join(self, invitation: str, **more: Any) -> CityMoved:
        moved: CityMoved = self.do(JOIN, JoinOrganization(invitation, **more))
        return moved

    def audit(self) -> list[tuple[str, str, str | None]]:
        return [(one.operation, one.actor, one.asked_in) for one in self.do(AUDIT, ListAudit())]


@pytest.fixture
def make(place: Place, fake_clock: FakeClock, ids: IdSource) -> Iterator[Callable[[str], City]]:
    stores = []

    def city(name: str) -> City:
        stores.append(store := open_direct(place, f"cty_{name}"))
        store.transact(lambda tx: tx.cities.ensure(name, fake_clock.now()))
        return City(store, fake_clock, ids, name)

    yield city
    for store in stores:
        store.close()


@pytest.fixture
def north(make: Callable[[str], City]) -> City:
    """The home of an organization, with a member of each role."""
    city = make("north")
    for role in PersonRole:
        city.do(ADD, AddMember(f"{role.value}-of-north", role))
    return city


@pytest.fixture
def south(make: Callable[[str], City]) -> City:
    """A city with an organization of its own and a member in it."""
    city = make("south")
    city.do(ADD, AddMember("sam", PersonRole.OWNER))
    return city


@pytest.fixture
def joined(north: City, south: City) -> City:
    """The second city, after it joined the organization of the first."""
    south.join(north.invitation())
    return south


def test_each_city_has_an_organization_of_its_own(north: City, south: City) -> None:
    ours, theirs = north.show(), south.show()
    assert (ours.name, ours.is_home, [one.name for one in ours.cities]) == ("north", True, ["north"])
    assert (theirs.name, theirs.is_home, [one.name for one in theirs.cities]) == ("south", True, ["south"])
    assert ours.id != theirs.id
    assert [one.name for one in theirs.members] == ["sam"], "strangers on one server share nobody"
    token = north.token("owner-of-north")
    assert not south.knows(token)


def test_one_member_and_one_token_are_good_in_each_city(north: City, joined: City) -> None:
    token = north.token("member-of-north")
    for city in (north, joined):
        assert (city.bearer(token).name, city.bearer(token).role) == ("member-of-north", Role.MEMBER)
    north.do(ROLE, SetRole("member-of-north", PersonRole.ADMIN))
    assert joined.bearer(token).role is Role.ADMIN
    north.do(ADD, AddMember("new"))
    assert "new" in [one.name for one in joined.do(MEMBERS, ListMembers())]
    north.do(REMOVE, RemoveMember("member-of-north"))
    assert not north.knows(token)
    assert not joined.knows(token)


@pytest.mark.parametrize("revoked_in", ["north", "south"])
def test_a_token_revoked_in_one_city_is_void_in_the_other_at_once(north: City, joined: City, revoked_in: str) -> None:
    token, mine = north.token("member-of-north"), north.token("owner-of-north")
    city, other = (north, joined) if revoked_in == "north" else (joined, north)
    meanwhile = other.bearer(token)
    city.do(REVOKE, RevokeToken(city.bearer(token).token or ""), city.bearer(mine))
    for again in (north, joined):
        with pytest.raises(TokenVoid):
            again.bearer(token)
    with pytest.raises(TokenVoid):
        other.do(MEMBERS, ListMembers(), meanwhile)


def test_joining_says_beforehand_what_it_means_and_does_nothing_yet(north: City, south: City) -> None:
    south.token("sam")
    person = Person("T1", "U1", "sam", "link", None, south.clock.now())
    south.store.transact(lambda tx: tx.slack.put_person(person))
    invitation = north.invitation()
    before = (north.audit(), south.audit())
    told = south.join(invitation, dry_run=True)
    assert (told.done, told.organization, told.cities, told.before) == (False, "north", ["north"], "south")
    assert (told.before_ends, told.members_before, told.tokens_before, told.slack_before) == (True, 1, 1, 1)
    assert {one.name: one.role.value for one in told.members} == {
        "ada": "owner", "owner-of-north": "owner", "admin-of-north": "admin", "member-of-north": "member",
    }  # fmt: skip
    assert (north.audit(), south.audit()) == before
    assert south.show().name == "south"
    assert replace(told, done=True) == south.join(invitation)


def test_who_was_a_member_before_is_not_one_any_more(north: City, south: City) -> None:
    """Also not somebody of the same name: a name stands for a person within one organization."""
    person = Person("T1", "U1", "sam", "link", None, south.clock.now())
    south.store.transact(lambda tx: tx.slack.put_person(person))
    north.do(ADD, AddMember("sam"))
    token = south.token("sam")
    stale = south.bearer(token)
    south.join(north.invitation())
    assert not south.knows(token)
    assert not north.knows(token)
    with pytest.raises(TokenVoid):
        south.do(MEMBERS, ListMembers(), stale)
    (left,) = south.store.read(lambda tx: tx.slack.people())
    assert left.member is None


def test_an_invitation_is_good_once_and_for_an_hour(north: City, south: City, make: Callable[[str], City]) -> None:
    invitation, late = north.invitation(), north.invitation()
    south.join(invitation)
    with pytest.raises(InvitationVoid):
        make("west").join(invitation)
    north.clock.advance(timedelta(hours=1))
    with pytest.raises(InvitationVoid):
        make("east").join(late)


@pytest.mark.parametrize("what", ["nonsense", "token", "owner's", "revoked", "demoted", "own"])
def test_what_is_no_invitation_lets_nobody_in(north: City, south: City, what: str) -> None:
    shown = "lamp_" + "a" * 36
    if what == "token":
        shown = north.token("owner-of-north")
    elif what == "owner's":
        shown = north.token("owner-of-north", scopes=("invite_city", "read"))
    elif what == "revoked":
        shown = north.invitation()
        north.do(REVOKE, RevokeToken(north.do(TOKENS, ListTokens())[-1].id))
    elif what == "demoted":
        shown = north.invitation()
        north.do(ROLE, SetRole("ada", PersonRole.ADMIN))
    elif what == "own":
        shown = south.invitation()
        with pytest.raises(Conflict, match="in the organization south already"):
            south.join(shown)
        return
    with pytest.raises(InvitationVoid):
        south.join(shown)
    assert [one.name for one in south.show().cities] == ["south"]


def test_an_invitation_may_nothing_else(north: City) -> None:
    guest = north.bearer(north.invitation())
    with pytest.raises(Forbidden):
        north.do(MEMBERS, ListMembers(), guest)
    with pytest.raises(UsageError, match="makes no other"):
        north.do(INVITE, InviteCity(), guest)


OF_ORGANIZATION: tuple[tuple[Operation[Any, Any], Any], ...] = (
    (ADD, AddMember("mallory", PersonRole.OWNER)),
    (ROLE, SetRole("member-of-north", PersonRole.OWNER)),
    (REMOVE, RemoveMember("owner-of-north")),
    (CREATE, CreateToken("t", "owner-of-north")),
    (CREATE, CreateToken("t")),
    (TOKENS, ListTokens()),
    (REVOKE, RevokeToken("tok")),
    (RENAME, RenameOrganization("mine")),
    (INVITE, InviteCity()),
    (PUT_OUT, RemoveCity("north")),
    (HOME, SetHome("south")),
)


@pytest.mark.parametrize(("operation", "ask"), OF_ORGANIZATION)
def test_who_owns_a_city_that_joined_is_no_owner_of_the_organization(
    north: City, joined: City, operation: Operation[Any, Any], ask: Any
) -> None:
    """Nor is whoever its browser sessions, its provider or its Slack say is one: all of it lies in the city's files."""
    before = north.show()
    shown = joined.bearer(north.token("owner-of-north"))
    for actor in (ADA, owner("owner-of-north"), changed(shown, is_proved=False), Actor("owner-of-north", Role.OWNER)):
        with pytest.raises(NotItsHome) as refused:
            joined.do(operation, ask, actor)
        assert "home city, north" in refused.value.message
    assert north.show() == before


def test_an_owner_s_token_does_it_from_any_city(north: City, joined: City) -> None:
    boss = joined.bearer(north.token("owner-of-north"))
    joined.do(ADD, AddMember("new"), boss)
    assert joined.do(RENAME, RenameOrganization("towns"), boss).name == "towns"
    assert "new" in [one.name for one in north.show().members]
    admin = joined.bearer(north.token("admin-of-north"))
    for operation, ask in OF_ORGANIZATION[:3]:
        with pytest.raises(Forbidden):
            joined.do(operation, ask, admin)


def test_the_owner_of_the_home_city_looks_after_the_organization(north: City, joined: City) -> None:
    north.do(ADD, AddMember("new", PersonRole.ADMIN))
    assert [one.name for one in joined.show().cities if one.is_home] == ["north"]
    assert joined.show().is_home is False


def test_what_changes_an_organization_is_on_record_in_each_of_its_cities(
    north: City, south: City, make: Callable[[str], City]
) -> None:
    other = make("other")
    south.join(north.invitation())
    assert ("org.join", "ada", None) in south.audit()
    assert ("org.join", "ada", "south") in north.audit()
    north.do(ADD, AddMember("new"))
    assert north.audit()[0] == ("member.add", "ada", None)
    assert south.audit()[0] == ("member.add", "ada", "north")
    boss = north.token("owner-of-north")
    south.do(LEAVE, LeaveOrganization(), south.bearer(boss))
    assert south.audit()[0] == ("org.leave", "owner-of-north", None)
    assert north.audit()[0] == ("org.leave", "owner-of-north", "south")
    assert other.audit() == []


def test_the_record_does_not_hold_the_invitation(north: City, south: City) -> None:
    invitation = north.invitation()
    south.join(invitation)
    for city in (north, south):
        assert all(invitation not in str(one.asked) for one in city.do(AUDIT, ListAudit()))


def test_a_city_leaves_into_an_organization_of_its_own_without_members(north: City, joined: City) -> None:
    token = north.token("owner-of-north")
    told = joined.do(LEAVE, LeaveOrganization(dry_run=True))
    assert (told.done, told.before_ends, told.members, told.cities) == (False, False, [], [])
    assert joined.knows(token)
    joined.do(LEAVE, LeaveOrganization("lone"))
    found = joined.show()
    assert (found.name, found.is_home, found.members) == ("lone", True, [])
    assert not joined.knows(token)
    assert north.knows(token)
    joined.do(ADD, AddMember("sam"))
    assert "sam" not in [one.name for one in north.show().members]
    with pytest.raises(Conflict, match="only one"):
        joined.do(LEAVE, LeaveOrganization())


def test_an_owner_of_the_organization_puts_a_city_out(north: City, joined: City) -> None:
    token = north.token("owner-of-north")
    with pytest.raises(CityNotInIt):
        north.do(PUT_OUT, RemoveCity("north"))
    north.do(PUT_OUT, RemoveCity("outh"))  # a part of its id
    assert [one.name for one in north.show().cities] == ["north"]
    assert (joined.show().name, joined.show().is_home) == ("south", True)
    assert not joined.knows(token)
    assert ("org.remove", "ada", "north") in joined.audit()
    with pytest.raises(CityNotInIt):
        north.do(PUT_OUT, RemoveCity("south"))


def test_the_home_city_leaves_last(north: City, joined: City, make: Callable[[str], City]) -> None:
    west = make("west")
    invitation = west.invitation()
    for operation, ask in ((JOIN, JoinOrganization(invitation)), (LEAVE, LeaveOrganization())):
        with pytest.raises(HomeStays, match="other cities: south"):
            north.do(operation, ask)
    boss = joined.bearer(north.token("owner-of-north"))
    with pytest.raises(HomeStays):
        joined.do(PUT_OUT, RemoveCity("north"), boss)
    joined.do(LEAVE, LeaveOrganization())
    assert north.join(invitation).before_ends


def test_another_city_becomes_the_home(north: City, joined: City) -> None:
    """Also where the machine of the one before is no more: an owner's token does it from any city."""
    boss = joined.bearer(north.token("owner-of-north"))
    assert joined.do(HOME, SetHome("south"), boss).is_home
    joined.do(ADD, AddMember("new"))
    with pytest.raises(NotItsHome):
        north.do(ADD, AddMember("mallory"))
    with pytest.raises(CityNotInIt):
        joined.do(HOME, SetHome("west"))
    assert north.audit()[1][0] == "org.home"
    north.do(LEAVE, LeaveOrganization())
    assert [one.name for one in joined.show().cities] == ["south"]


def test_only_an_owner_moves_a_city(north: City, south: City) -> None:
    invitation = north.invitation()
    for role in (PersonRole.ADMIN, PersonRole.MEMBER):
        south.do(ADD, AddMember(role.value, role))
        actor = south.bearer(south.token(role.value))
        for operation, ask in ((JOIN, JoinOrganization(invitation)), (LEAVE, LeaveOrganization())):
            with pytest.raises(Forbidden):
                south.do(operation, ask, actor)
    assert south.do(JOIN, JoinOrganization(invitation), south.bearer(south.token("sam"))).done


def test_a_provider_of_a_city_that_joined_makes_nobody_a_member(north: City, joined: City) -> None:
    """It is that city's settings that name it, and they could name one that says anything."""

    def signed_in(city: City, address: str) -> Actor:
        ctx = city.context(owner(address))
        return city.store.transact(sign_in, address, "https://idp", ["example.org"], f"x {address}", ctx)

    with pytest.raises(NoMember):
        signed_in(joined, "eve@example.org")
    assert signed_in(north, "eve@example.org").role is Role.MEMBER
    north.do(ADD, AddMember("boss@example.org", PersonRole.OWNER))
    with pytest.raises(NotItsHome):
        joined.do(ADD, AddMember("mallory"), signed_in(joined, "boss@example.org"))


def test_a_name_for_an_organization_is_a_short_text(north: City) -> None:
    for name in ("", " ", "x" * 81, "a\nb"):
        with pytest.raises(UsageError):
            north.do(RENAME, RenameOrganization(name))
    assert north.do(RENAME, RenameOrganization(" The towns ")).name == "The towns"


def test_an_organization_that_ends_leaves_nothing_behind(north: City, south: City) -> None:
    south.token("sam")
    before = south.show().id
    south.join(north.invitation())

    def left(tx: Tx) -> list[Any]:
        tables = {"organizations": "id", "members": "organization_id", "tokens": "organization_id"}
        asked = {"id": before}
        return [
            row
            for table, key in tables.items()
            for row in tx.db.rows(f"SELECT 1 FROM {table} WHERE {key} = :id", asked)
        ]

    assert south.store.read(left) == []


@pytest.mark.parametrize("first", ["join", "add"])
def test_a_right_is_used_in_the_organization_in_which_it_was_judged(
    postgres_place: PostgresUrl, fake_clock: FakeClock, ids: IdSource, first: str
) -> None:
    """A city moves while its owner adds a member: that member is never one of the organization that it comes to."""
    cities = []
    for name in ("north", "south"):
        store = open_direct(postgres_place, f"cty_{name}")
        store.transact(lambda tx, name=name: tx.cities.ensure(name, fake_clock.now()))
        cities.append(City(store, fake_clock, ids, name))
    north, south = cities
    asked: dict[str, tuple[Operation[Any, Any], Any]] = {
        "join": (JOIN, JoinOrganization(north.invitation())), "add": (ADD, AddMember("mallory", PersonRole.OWNER)),
    }  # fmt: skip
    done, go_on = threading.Event(), threading.Event()

    def held(tx: Tx, operation: Operation[Any, Any], ask: Any) -> Any:
        answer = judged(tx, operation, ask, south.context())
        done.set()
        assert go_on.wait(60)
        return answer

    other = open_direct(postgres_place, "cty_south")
    (second,) = asked.keys() - {first}
    with ThreadPoolExecutor(2) as threads:
        holding = threads.submit(south.store.transact, held, *asked[first])
        assert done.wait(60)
        waiting = threads.submit(other.transact, judged, *asked[second], south.context())
        _wait_for_a_lock(postgres_place)
        go_on.set()
        holding.result(60)
        if first == "join":
            with pytest.raises(NotItsHome):
                waiting.result(60)
        else:
            waiting.result(60)
    assert south.show().name == "north"
    assert "mallory" not in [one.name for one in north.show().members]
    for store in (north.store, south.store, other):
        store.close()


def _wait_for_a_lock(place: PostgresUrl) -> None:
    """Until some transaction waits for another's lock."""
    with psycopg.connect(place.url, autocommit=True) as watch:
        for _ in range(600):
            if watch.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                return
            time.sleep(0.05)
    raise AssertionError("nobody waits")


def test_the_rights_in_an_organization_are_those_of_owners() -> None:
    for verb in (Verb.WRITE_ORGANIZATION, Verb.INVITE_CITY, Verb.MOVE_CITY, Verb.WRITE_MEMBERS):
        assert not Actor("a", Role.ADMIN).may(verb)
        assert Actor("o", Role.OWNER).may(verb)
