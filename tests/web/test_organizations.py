"""Cities of one organization in one PostgreSQL, asked over HTTP: one token for all of them, nothing for strangers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import Served, served

from lamplighter.domain.access import OF_ORGANIZATION, RIGHTS, Role, Verb
from lamplighter.domain.tokens import new_token, token_hash
from lamplighter.services import table
from lamplighter.services.operation import ROOT, WITHOUT_BODY, Operation
from lamplighter.store.engine import PostgresTables
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow

ROUTED = [one for one in table.every() if one.http is not None]
PATH = f"{ROOT}/organization"


@pytest.fixture
async def north(tmp_path: Path, postgres_url: str) -> AsyncIterator[Served]:
    async with served(tmp_path / "north", more=f'[store]\nurl = "{postgres_url}"\n') as city:
        yield city


@pytest.fixture
async def south(tmp_path: Path, postgres_url: str) -> AsyncIterator[Served]:
    async with served(tmp_path / "south", more=f'[store]\nurl = "{postgres_url}"\n') as city:
        yield city


@pytest.fixture
async def west(tmp_path: Path, postgres_url: str) -> AsyncIterator[Served]:
    """A city in an organization of its own."""
    async with served(tmp_path / "west", more=f'[store]\nurl = "{postgres_url}"\n') as city:
        yield city


@pytest.fixture
async def joined(north: Served, south: Served) -> Served:
    made = await north.call("POST", f"{PATH}/invitations", headers=north.owner, body={})
    assert made.status_code == 201
    body = {"invitation": made.json()["invitation"]}
    done = await south.call("POST", f"{PATH}/join", headers=south.owner, body=body)
    assert (done.status_code, done.json()["done"]) == (200, True)
    return south


def token_of(city: Served, role: Role, name: str = "") -> dict[str, str]:
    """The header with a new token of a member of that role."""
    token = new_token(lambda count: city.opened.ids.make("x").encode()[-count:].rjust(count, b"x"))

    def add(tx: Any) -> None:
        now, member = city.opened.clock.now(), name or role.value
        tx.members.add(MemberRow(member, role, now, "ada"))
        ending = token[-4:]
        tx.tokens.add(
            TokenRow(city.opened.ids.make("tok"), member, "t", token_hash(token), ending, (), now, "ada", None)
        )

    city.opened.store.transact(add)
    return {"Authorization": f"Bearer {token}"}


async def test_one_token_works_at_both_until_it_is_revoked_at_one(north: Served, joined: Served) -> None:
    assert (await north.call("POST", f"{ROOT}/members", headers=north.owner, body={"name": "ben"})).status_code == 201
    made = await north.call("POST", f"{ROOT}/tokens", headers=north.owner, body={"name": "ci", "member": "ben"})
    ben = {"Authorization": f"Bearer {made.json()['token']}"}
    for city in (north, joined):
        assert (await city.call("GET", f"{ROOT}/runs/{city.run}", headers=ben)).status_code == 200
    assert (await north.call("GET", f"{ROOT}/runs/{joined.run}", headers=ben)).status_code == 404
    revoked = await joined.call("POST", f"{ROOT}/tokens/{made.json()['id']}/revoke", headers=ben)
    assert revoked.status_code == 200
    for city in (north, joined):
        void = await city.call("GET", f"{ROOT}/runs", headers=ben)
        assert (void.status_code, void.json()["detail"]) == (401, "The token was revoked.")


async def test_every_operation_is_asked_across_cities_and_organizations(
    north: Served, joined: Served, west: Served
) -> None:
    """A role holds in each city of the organization, and nowhere else; the local owner of a city that joined has no
    say in the organization.
    """
    roles = {role: token_of(north, role) for role in (Role.OWNER, Role.ADMIN, Role.MEMBER)}
    strangers = {role: token_of(west, role) for role in (Role.OWNER, Role.ADMIN, Role.MEMBER)}
    async with httpx2.AsyncClient(base_url=joined.url, trust_env=False, timeout=180) as client:
        for operation in ROUTED:
            for role, headers in strangers.items():
                assert await asked(client, operation, headers, joined.run) == 401, (operation.name, role)
            for role, headers in roles.items():
                found = await asked(client, operation, headers, joined.run)
                allowed = operation.verb in RIGHTS[role]
                assert (found == 403) is not allowed, (operation.name, role, found)
                assert found < 500, (operation.name, role, found)


async def test_the_local_owner_of_a_city_that_joined_has_no_say_in_the_organization(
    north: Served, joined: Served
) -> None:
    bodies = {
        "member.add": {"name": "mallory", "role": "owner"}, "member.role": {"role": "owner"},
        "token.create": {"name": "t"}, "org.rename": {"name": "mine"}, "org.invite": {},
        "org.home": {"name": "town"},
    }  # fmt: skip
    asked_for = [one for one in ROUTED if one.verb in OF_ORGANIZATION]
    assert {one.verb for one in asked_for} == OF_ORGANIZATION
    for operation in asked_for:
        http = operation.http
        assert http is not None
        path = ROOT + http.path.replace("{name}", "ada").replace("{token}", "tok")
        body = None if http.method in WITHOUT_BODY else bodies.get(operation.name, {})
        found = await joined.call(http.method, path, headers=joined.owner, body=body)
        assert (found.status_code, "home city" in found.json()["detail"]) == (403, True), operation.name
    shown = (await joined.call("GET", PATH, headers=joined.owner)).json()
    assert [one["name"] for one in shown["cities"]] == ["town", "town"]
    assert shown == (await north.call("GET", PATH, headers=north.owner)).json() | {
        "is_home": False, "cities": shown["cities"],
    }  # fmt: skip


async def test_ids_of_another_city_or_organization_lead_to_nothing(north: Served, joined: Served, west: Served) -> None:
    """Whoever may everything in one city, or in the organization, asks there for what others have."""
    boss = token_of(north, Role.OWNER)
    made = await west.call("POST", f"{ROOT}/beads", headers=west.owner, body={"title": "Oil"})
    others = {"run": west.run, "bead": made.json()["id"], "session": f"ses_{west.run}"}
    stranger = token_of(west, Role.OWNER, "stan")
    listed = (await west.call("GET", f"{ROOT}/tokens", headers=stranger)).json()["data"]
    others["token"] = listed[0]["id"]
    others["name"] = "stan"
    before = rows_of(west)
    async with httpx2.AsyncClient(base_url=joined.url, trust_env=False, timeout=180) as client:
        for operation in ROUTED:
            http = operation.http
            assert http is not None
            if "{" not in http.path:
                continue
            path = ROOT + http.path
            for name in ("run", "bead", "session", "token", "name"):
                path = path.replace("{" + name + "}", others[name])
            if "{" in path:
                continue
            for headers in (boss, joined.owner):
                body = None if http.method in WITHOUT_BODY else {}
                found = await client.request(http.method, path, headers=headers, json=body)
                assert 400 <= found.status_code < 500, (operation.name, found.status_code, found.text)
    assert rows_of(west) == before, "nothing of the other organization was touched"


def rows_of(city: Served) -> dict[str, list[str]]:
    """All that the city and its organization have in the database, but for when a token was last used."""
    place = city.opened.place
    side = PostgresTables(getattr(place, "url"))  # noqa: B009  the other kind of place has none
    try:
        tables = {name: one for name, one in side.tables().items() if name != "tokens"}
        ours = city.opened.paths.city_id()
        side.begin(read_only=True)
        return {name: sorted(map(repr, side.rows(one, one.columns, ours))) for name, one in tables.items()}
    finally:
        side.rollback()
        side.close()


async def asked(client: httpx2.AsyncClient, operation: Operation[Any, Any], headers: dict[str, str], run: str) -> int:
    """The status for a request that has the right form but for a key that is not known."""
    http = operation.http
    assert http is not None
    path = ROOT + http.path.replace("{run}", run)
    for name in ("name", "bead", "message", "agent", "token"):
        path = path.replace("{" + name + "}", "nobody")
    if http.method in WITHOUT_BODY:
        return (await client.request(http.method, f"{path}?naem=1", headers=headers)).status_code
    return (await client.request(http.method, path, headers=headers, json={"naem": 1})).status_code


async def test_a_name_is_changed_once_for_a_key_and_only_on_the_version_seen(north: Served) -> None:
    seen = await north.call("GET", PATH, headers=north.owner)
    keyed = north.owner | {"Idempotency-Key": "k", "If-Match": seen.headers["etag"]}
    for repeated in (None, "true"):
        done = await north.call("PATCH", PATH, headers=keyed, body={"name": "towns"})
        assert (done.status_code, done.json()["name"]) == (200, "towns")
        assert done.headers.get("idempotent-replayed") == repeated
    stale = north.owner | {"If-Match": seen.headers["etag"]}
    assert (await north.call("PATCH", PATH, headers=stale, body={"name": "x"})).status_code == 412
    assert (await north.call("GET", PATH, headers=north.owner)).json()["name"] == "towns"


async def test_a_browser_that_signed_in_is_shown_the_members_and_changes_none_where_the_home_is_elsewhere(
    north: Served, joined: Served
) -> None:
    token = token_of(north, Role.OWNER)["Authorization"].removeprefix("Bearer ")
    assert Verb.WRITE_MEMBERS in RIGHTS[Role.OWNER]
    own = {"Origin": joined.url, "Sec-Fetch-Site": "same-origin"}
    async with httpx2.AsyncClient(base_url=joined.url, trust_env=False, timeout=180, headers=own) as browser:
        signed_in = await browser.post("/sign-in", data={"token": token})
        assert signed_in.status_code == 303
        page = await browser.get("/settings/people")
        assert page.status_code == 200
        assert "home city" in page.text
        refused = await browser.post("/settings/people/add", data={"name": "mallory", "role": "owner"})
        assert refused.status_code == 403
    names = [one["name"] for one in (await north.call("GET", PATH, headers=north.owner)).json()["members"]]
    assert "mallory" not in names
