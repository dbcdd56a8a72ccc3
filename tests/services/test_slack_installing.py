"""Workspaces of Slack: what is taken for a token, what is kept of it, how one is shown, and who is who there."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from automation_city import CITY, City

from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.domain.access import Actor, Forbidden, Role, owner
from lamplighter.domain.city.model import Configuration
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.services import configurations
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.members import OWNER, MemberUnknown
from lamplighter.services.slack import installing
from lamplighter.services.slack.installing import (
    CODE_HOLDS,
    LOOKED_WITHIN,
    CodeUnknown,
    InstallationView,
    InstallSlack,
    LinkSlack,
    SlackUnknown,
    TrySlack,
    mark_of,
    secret_name,
)
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.members import MemberRow
from lamplighter.store.secrets import SecretRow
from lamplighter.store.slack import Installation, Person, Thread
from lamplighter.store.url import open_store
from lamplighter.testing.slack_server import Refused, SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN, BOT_USER, SIGNING_SECRET, TEAM

SECOND = timedelta(seconds=1)
MADE = InstallSlack(BOT_TOKEN)


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        yield found


@pytest.fixture
async def host(city: City, slack: SlackServer) -> AsyncIterator[Host]:
    store = open_store(city.place, CITY, Wakes())
    box = KeyedBox(city.place.runtime, {}, CITY)
    yield cast("Host", SimpleNamespace(store=store, slack=SlackWebApi(slack.api), secret_box=box))
    await store.close()


def by(city: City, actor: Actor | None = None) -> Context:
    return changed(city.context, actor=actor or owner("ann"), configured=city.configured)


def secrets(city: City) -> set[str]:
    return {one.name.rpartition("/")[2] for one in city.read(lambda tx: tx.secrets.all())}


def shown(city: City, team: str = TEAM) -> InstallationView:
    views = city.read(installing.list_slack, installing.ListSlack(), by(city))
    return next(one for one in views if one.team == team)


# ── installing ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (replace(MADE, bot_token=""), "xoxb-"),
        (replace(MADE, bot_token="xoxp-1-of-a-person"), "xoxb-"),  # noqa: S106  none's
        (replace(MADE, signing_secret="0123"), "32 hexadecimal"),  # noqa: S106  none's
        (replace(MADE, app_token=BOT_TOKEN), "xapp-"),
        (replace(MADE, mode="reckless"), "approval"),
        (replace(MADE, rig="wbe"), "did you mean `web`"),
        (replace(MADE, preset="cluade"), "did you mean `claude`"),
        (replace(MADE, configurations=("lost",)), "no configuration `lost`"),
        (replace(MADE, configurations=("docs", "bare")), "`bare` has no description"),
        (replace(MADE, configurations=("docs",), rig="web"), "give no rig"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_work_is_refused_before_slack_is_asked(
    city: City, host: Host, slack: SlackServer, ask: InstallSlack, told: str
) -> None:
    declared = (Configuration(name="docs", description="For what is written."), Configuration(name="bare"))
    city.run(configurations.sync, declared, city.clock.now())
    with pytest.raises(UsageError) as refused:
        await installing.install(host, ask, by(city))
    assert told in f"{refused.value.message} {refused.value.hint}"
    assert (slack.calls, city.read(lambda tx: tx.slack.all()), secrets(city)) == ([], [], set())


async def test_each_secret_that_is_given_is_kept_and_one_that_is_not_given_any_more_is_forgotten(
    city: City, host: Host, slack: SlackServer
) -> None:
    all_three = replace(MADE, signing_secret=f" {SIGNING_SECRET}\n", app_token=APP_TOKEN)
    made = await installing.install(host, all_three, by(city))
    assert (made.ways, secrets(city)) == (["events", "socket"], {"bot", "signing", "app"})
    _, tokens = await installing.opened(host, TEAM)
    assert tokens == {"bot": BOT_TOKEN, "signing": SIGNING_SECRET, "app": APP_TOKEN}
    assert (len(slack.of("auth.test")), len(slack.of("apps.connections.open"))) == (1, 1)
    again = await installing.install(host, replace(MADE, signing_secret=SIGNING_SECRET), by(city))
    assert (again.ways, secrets(city)) == (["events"], {"bot", "signing"})
    last = await installing.install(host, MADE, by(city))
    assert (last.ways, secrets(city), last.connected) == ([], {"bot"}, None)
    assert (last.bot_user, last.installed_by, last.rig, last.preset) == (BOT_USER, "ann", None, None)
    assert len(slack.of("apps.connections.open")) == 1
    assert [event.subject for event in city.events("slack.installed")] == [TEAM] * 3


async def test_an_app_works_in_one_configuration_or_in_one_that_is_chosen(city: City, host: Host) -> None:
    declared = (Configuration(name="docs", description="For what is written."), Configuration(name="bare"))
    city.run(configurations.sync, declared, city.clock.now())
    strategies = []
    for names in ((), ("bare",), ("bare", "bare")):
        made = await installing.install(host, replace(MADE, configurations=names), by(city))
        strategies.append((made.configurations, made.strategy))
    assert strategies == [([], None), (["bare"], "fixed"), (["bare"], "fixed")]
    described = replace(declared[1], description="For all else.")
    city.run(configurations.sync, (declared[0], described), city.clock.now())
    made = await installing.install(host, replace(MADE, configurations=("docs", "bare")), by(city))
    assert (made.configurations, made.strategy) == (["docs", "bare"], "agent_decide")


async def test_what_slack_refuses_when_it_is_tried_is_shown_until_something_else_fails(
    city: City, host: Host, slack: SlackServer
) -> None:
    with pytest.raises(SlackUnknown):
        await installing.try_slack(host, TrySlack(TEAM), by(city))
    await installing.install(host, MADE, by(city))
    assert (await installing.try_slack(host, TrySlack(TEAM), by(city))).bot_user == BOT_USER
    assert slack.of("apps.connections.open") == []
    assert shown(city).error is None
    await installing.install(host, replace(MADE, app_token=APP_TOKEN), by(city))
    opened = len(slack.of("apps.connections.open"))
    await installing.try_slack(host, TrySlack(TEAM), by(city))
    assert len(slack.of("apps.connections.open")) == opened + 1
    slack.trouble = lambda method, _before: Refused("token_revoked") if method == "apps.connections.open" else None
    with pytest.raises(Exception, match="token_revoked"):
        await installing.try_slack(host, TrySlack(TEAM), by(city))
    assert "token_revoked" in (shown(city).error or "")
    assert shown(city).failed_at == city.clock.now()


# ── listing and removing ──────────────────────────────────────────────────────────────────────────────────────────────


def put(city: City, team: str, *, hears: int = 0, has_socket: int = 0) -> None:
    row = Installation(team, team, "U0", "B0", "", "", "approval", hears, has_socket, city.clock.now(), "ann")
    city.run(lambda tx: tx.slack.put(row))


@pytest.mark.parametrize(
    ("hears", "has_socket", "heard", "sockets", "ago", "connected"),
    [
        (0, 0, True, 2, timedelta(0), None),
        (1, 0, False, 0, None, False),
        (1, 0, True, 0, None, True),
        (1, 1, True, 0, None, False),
        (0, 1, False, 0, timedelta(0), False),
        (0, 1, False, 1, timedelta(0), True),
        (0, 1, False, 2, LOOKED_WITHIN - SECOND, True),
        (0, 1, False, 2, LOOKED_WITHIN, False),
    ],
)
def test_a_workspace_is_connected_by_sockets_seen_open_of_late_or_by_having_called(  # noqa: PLR0917  a table
    city: City, hears: int, has_socket: int, heard: bool, sockets: int, ago: timedelta | None, connected: bool | None,  # noqa: FBT001
) -> None:  # fmt: skip
    put(city, TEAM, hears=hears, has_socket=has_socket)
    if heard:
        city.run(lambda tx: tx.slack.came(TEAM, city.clock.now()))
    if ago is not None:
        city.run(lambda tx: tx.slack.looked(TEAM, sockets, city.clock.now() - ago))
    assert shown(city).connected is connected


@dataclass(frozen=True)
class Kept:
    """What is on record about a workspace."""

    people: dict[str, str]
    conversations: dict[str, int]
    heard: bool
    secrets: list[str]


def kept(city: City, team: str) -> Kept | None:
    views = city.read(installing.list_slack, installing.ListSlack(), by(city))
    found = next((one for one in views if one.team == team), None)
    names = sorted(one.name for one in city.read(lambda tx: tx.secrets.all()) if f"/{team}/" in one.name)
    if found is None:
        assert names == []
        return None
    return Kept(dict(found.people), dict(found.conversations), found.heard_at is not None, names)


def test_workspaces_are_listed_and_removed_each_with_its_own_people_threads_and_secrets(city: City) -> None:
    now = city.clock.now()
    for team, person, member in (("T1", "U1", "ada"), ("T1", "U2", None), ("T2", "U1", "ben")):
        put(city, team)
        known = Person(team, person, member, "link", None, now)
        city.run(lambda tx, known=known: tx.slack.put_person(known))
        city.run(lambda tx, team=team: tx.slack.came(team, now))
        for which in ("bot", "signing", "app"):
            row = SecretRow(secret_name(team, which), "k", "n", "t", now, "ann", now, "ann")
            city.run(lambda tx, row=row: tx.secrets.put(row))
    for number, (team, channel) in enumerate((("T1", "C1"), ("T1", "C1"), ("T1", "C2"), ("T2", "C1"))):
        thread = Thread(f"slt_{number}", team, channel, f"{number}.0", "U1", f"run_{number}", now)
        assert city.run(lambda tx, thread=thread: tx.slack.add_thread(thread))
    all_three = ["app", "bot", "signing"]
    of_first = Kept({"U1": "ada"}, {"C1": 2, "C2": 1}, heard=True, secrets=[f"slack/T1/{one}" for one in all_three])
    of_second = Kept({"U1": "ben"}, {"C1": 1}, heard=True, secrets=[f"slack/T2/{one}" for one in all_three])
    assert (kept(city, "T1"), kept(city, "T2")) == (of_first, of_second)
    city.run(installing.remove, installing.RemoveSlack("T1"), by(city))
    assert (kept(city, "T1"), kept(city, "T2")) == (None, of_second)
    assert city.read(lambda tx: tx.slack.person("T1", "U2")) is None
    put(city, "T1")
    assert kept(city, "T1") == Kept({}, {"C1": 2, "C2": 1}, heard=False, secrets=[])


def test_a_thread_is_found_by_its_place_and_by_its_run_and_only_followed_ones_of_a_channel_are(city: City) -> None:
    now = city.clock.now()
    rows = [
        Thread("slt_1", "T1", "C1", "1.0", "U1", "run_1", now, is_followed=1),
        Thread("slt_2", "T1", "C1", "2.0", "U1", "run_2", now),
        Thread("slt_3", "T1", "C2", "1.0", "U1", "run_3", now, is_followed=1),
        Thread("slt_4", "T2", "C1", "1.0", "U1", "run_4", now, is_followed=1),
    ]
    for row in rows:
        assert city.run(lambda tx, row=row: tx.slack.add_thread(row))
        assert not city.run(lambda tx, row=row: tx.slack.add_thread(changed(row, id="slt_9", run="run_9")))
    for row in rows:
        place = (row.team, row.channel, row.thread)
        assert city.run(lambda tx, place=place: tx.slack.find_thread(*place)) == row
        assert city.run(lambda tx, run=row.run: tx.slack.of_run(run)) == row
    assert [one.id for one in city.read(lambda tx: tx.slack.followed_in("T1", "C1"))] == ["slt_1"]
    assert city.run(lambda tx: tx.slack.delete_of_runs(["run_1", "run_4", "run_9"])) == 2
    assert city.read(lambda tx: [tx.slack.thread(row.id) is not None for row in rows]) == [False, True, True, False]


# ── who is who ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def code(city: City) -> str:
    """A code that was shown to U1 just now; ada is an admin, max a member."""
    now = city.clock.now()
    for name, role in (("ada", Role.ADMIN), ("max", Role.MEMBER)):
        someone = MemberRow(name, role, now, "ann")
        city.run(lambda tx, someone=someone: tx.members.add(someone))
    for person, text in (("U0", "OTHER"), ("U1", "A1B2C3")):
        row = Person(TEAM, person, None, "link", mark_of(text), now)
        city.run(lambda tx, row=row: tx.slack.put_person(row))
    return "A1B2C3"


def link(city: City, code: str, actor: Actor, member: str = "") -> Any:
    return city.run(installing.link, LinkSlack(code, member), by(city, actor))


ADA, MAX = Actor("ada", Role.ADMIN), Actor("max", Role.MEMBER)


@pytest.mark.parametrize(
    ("actor", "member", "named"),
    [
        (ADA, "", "ada"), (MAX, "", "max"), (MAX, "max", "max"), (owner("ann"), "ada", "ada"),
        (owner("human"), "", OWNER), (owner("human"), OWNER, OWNER),
    ],
)  # fmt: skip
def test_a_code_links_whoever_shows_it_or_by_an_owner_somebody_else(
    city: City, code: str, actor: Actor, member: str, named: str
) -> None:
    done = link(city, f" {code.lower()} ", actor, member)
    assert (done.team, done.person, done.member) == (TEAM, "U1", named)
    role = {"ada": Role.ADMIN, "max": Role.MEMBER, OWNER: Role.OWNER}[named]
    assert city.run(installing.member_of, TEAM, "U1") == (named, role)
    assert city.run(installing.member_of, TEAM, "U0") is None
    with pytest.raises(CodeUnknown):
        link(city, code, actor, member)


@pytest.mark.parametrize("actor", [ADA, MAX])
def test_nobody_but_an_owner_says_who_somebody_else_is(city: City, code: str, actor: Actor) -> None:
    for other in ("max" if actor is ADA else "ada", OWNER):
        with pytest.raises(Forbidden):
            link(city, code, actor, other)
    with pytest.raises(MemberUnknown):
        link(city, code, owner("ann"), "nobody")
    assert city.run(installing.member_of, TEAM, "U1") is None


def test_a_code_holds_for_a_while_and_no_longer(city: City, code: str) -> None:
    with pytest.raises(CodeUnknown):
        link(city, "A1B2C4", ADA)
    city.advance(seconds=CODE_HOLDS.total_seconds())
    assert link(city, code, ADA).member == "ada"
    city.advance(seconds=1)
    with pytest.raises(CodeUnknown):
        link(city, "OTHER", ADA)


def test_a_user_of_slack_is_nobody_once_the_member_they_were_is_removed(city: City, code: str) -> None:
    assert city.run(installing.member_of, TEAM, "U9") is None
    link(city, code, ADA)
    assert city.run(installing.member_of, "T9", "U1") is None
    city.run(lambda tx: tx.members.remove("ada"))
    assert city.run(installing.member_of, TEAM, "U1") is None


def test_an_address_links_the_member_who_has_it_for_a_name(city: City) -> None:
    city.run(lambda tx: tx.members.add(MemberRow("Di@example.org", Role.ADMIN, city.clock.now(), "ann")))
    assert not city.run(installing.link_by_email, TEAM, "U4", "other@example.org", by(city))
    assert city.run(installing.member_of, TEAM, "U4") is None
    assert city.run(installing.link_by_email, TEAM, "U4", "di@Example.org", by(city))
    assert city.run(installing.member_of, TEAM, "U4") == ("Di@example.org", Role.ADMIN)
    assert [json.loads(json.dumps(event.payload)) for event in city.events("slack.linked")] == [
        {"team": TEAM, "person": "U4"}
    ]
