"""Members and their tokens over HTTP: every operation, asked by everybody who may and may not."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from served import Served

from lamplighter.domain.access import RIGHTS, Role, TokenVoid, Verb, owner
from lamplighter.domain.tokens import new_token, token_hash
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.records import changed
from lamplighter.services import table
from lamplighter.services.operation import ROOT, Operation
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow
from lamplighter.store.url import open_direct
from lamplighter.web.held import AGAIN

UNDERSTOOD = {400, 404, 409, 422}
"""The request was read, so the right was there; what it asks for is nonsense."""
TELLS_WHAT_IS_WRONG = {"automation.preview"}
"""Nonsense is answered by what is wrong with it."""
ROUTED = [one for one in table.every() if one.http is not None]


def token_of(city: Served, role: Role, *scopes: Verb, **more: Any) -> dict[str, str]:
    """The header with a new token of a member of that role."""
    token = new_token(lambda count: city.opened.ids.make("x").encode()[-count:].rjust(count, b"x"))

    def add(tx: Any) -> None:
        now = city.opened.clock.now()
        tx.members.add(MemberRow(role.value, role, now, "ada"))
        tx.tokens.add(
            TokenRow(
                city.opened.ids.make("tok"), role.value, "t", token_hash(token), token[-4:],
                tuple(one.value for one in scopes), now, "ada", more.get("expires_at"),
                revoked_at=more.get("revoked_at"),
            )
        )  # fmt: skip

    city.opened.store.transact(add)
    return {"Authorization": f"Bearer {token}"}


async def asked(client: httpx2.AsyncClient, run: str, operation: Operation[Any, Any], headers: dict[str, str]) -> int:
    """The status for a request that has the right form but for a key that is not known."""
    http = operation.http
    assert http is not None
    path = ROOT + http.path.replace("{run}", run)
    for name in ("name", "bead", "message", "agent", "token"):
        path = path.replace("{" + name + "}", "nobody")
    if http.method in {"GET", "DELETE"}:
        return (await client.request(http.method, f"{path}?naem=1", headers=headers)).status_code
    return (await client.request(http.method, path, headers=headers, json={"naem": 1})).status_code


async def test_every_operation_is_asked_by_everybody(city: Served) -> None:
    """As the table of roles says, and nothing else."""
    now = city.opened.clock.now()
    strangers = {
        "nobody": {},
        "bad checksum": {"Authorization": "Bearer lamp_" + "a" * 36},
        "unknown": {"Authorization": f"Bearer {new_token(lambda count: b'u' * count)}"},
        "revoked": token_of(city, Role.OWNER, revoked_at=now),
        "ended": token_of(city, Role.OWNER, expires_at=now - timedelta(seconds=1)),
        "of another city": of_another_city(city),
    }
    roles = {role: token_of(city, role) for role in (Role.OWNER, Role.ADMIN, Role.MEMBER)}
    roles[Role.RUN] = city.of_run()
    scoped = token_of(city, Role.OWNER, Verb.EMIT_EVENT)
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        for operation in ROUTED:
            for who, headers in strangers.items():
                assert await asked(client, city.run, operation, headers) == 401, (operation.name, who)
            for role, headers in roles.items():
                found = await asked(client, city.run, operation, headers)
                allowed = operation.verb in RIGHTS[role]
                understood = {200} if operation.name in TELLS_WHAT_IS_WRONG else UNDERSTOOD
                assert (found in understood) == allowed, (operation.name, role, found)
                assert allowed or found == 403, (operation.name, role, found)
            found = await asked(client, city.run, operation, scoped)
            assert (found != 403) == (operation.verb is Verb.EMIT_EVENT), (operation.name, found)


def of_another_city(city: Served) -> dict[str, str]:
    """A good token of another city in the same database."""
    token = new_token(lambda count: b"o" * count)
    other = open_direct(city.opened.place, "cty_other")
    now = city.opened.clock.now()

    def add(tx: Any) -> None:
        tx.cities.ensure("other", now)
        tx.members.add(MemberRow("ann", Role.OWNER, now, "ann"))
        tx.tokens.add(TokenRow("tok_1", "ann", "t", token_hash(token), "oooo", (), now, "ann", None))

    other.transact(add)
    other.close()
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_that_was_revoked_meanwhile_does_nothing(city: Served) -> None:
    """It was good when the request came, and is not when the operation is judged: nothing of any request is read."""
    stale = changed(owner("ada"), token="tok_gone")  # noqa: S106  the id of one that is no more
    for operation in table.every():
        with pytest.raises(TokenVoid):
            await city.operations.do(operation, None, stale, surface="api")


async def test_a_member_s_token_is_made_used_and_revoked(city: Served) -> None:
    api = f"{ROOT}/tokens"
    assert (await city.call("POST", f"{ROOT}/members", headers=city.owner, body={"name": "ben"})).status_code == 201
    made = await city.call("POST", api, headers=city.owner, body={"name": "ci", "member": "ben"})
    assert made.status_code == 201
    ben = {"Authorization": f"Bearer {made.json()['token']}"}
    bead = await city.call("POST", f"{ROOT}/beads", headers=ben, body={"title": "Oil"})
    assert bead.status_code == 201
    entry = (await city.call("GET", f"{ROOT}/audit?limit=1", headers=city.owner)).json()["data"][0]
    assert (entry["actor"], entry["token"], entry["operation"]) == ("ben", made.json()["id"], "bead.create")
    (listed,) = (await city.call("GET", api, headers=ben)).json()["data"]
    assert listed["used_at"] is not None
    assert "token" not in listed
    own = await city.call("POST", api, headers=ben, body={"name": "mine"})
    assert (own.status_code, own.json()["member"]) == (201, "ben")
    assert (await city.call("POST", api, headers=ben, body={"name": "x", "member": "ann"})).status_code == 403
    assert (await city.call("POST", f"{api}/{made.json()['id']}/revoke", headers=ben)).status_code == 200
    void = await city.call("GET", f"{ROOT}/runs", headers=ben)
    assert (void.status_code, void.json()["detail"]) == (401, "The token was revoked.")
    assert (await city.call("DELETE", f"{ROOT}/members/ben", headers=city.owner)).status_code == 204
    mine = {"Authorization": f"Bearer {own.json()['token']}"}
    assert (await city.call("GET", f"{ROOT}/runs", headers=mine)).status_code == 401


async def test_a_role_that_changes_counts_at_once(city: Served) -> None:
    headers = token_of(city, Role.ADMIN)
    path = f"{ROOT}/city/pause"
    assert (await city.call("POST", path, headers=headers)).status_code == 200
    role = await city.call("PUT", f"{ROOT}/members/admin/role", headers=city.owner, body={"role": "member"})
    assert (role.status_code, role.json()["role"]) == (200, "member")
    assert (await city.call("POST", path, headers=headers)).status_code == 403


async def test_a_scoped_token_makes_none_that_may_more(city: Served) -> None:
    headers = token_of(city, Role.OWNER, Verb.WRITE_TOKENS, Verb.READ)
    for scopes, status in (([], 400), (["write_city"], 400), (["read"], 201)):
        found = await city.call("POST", f"{ROOT}/tokens", headers=headers, body={"name": "x", "scopes": scopes})
        assert found.status_code == status
    other = await city.call("POST", f"{ROOT}/tokens", headers=headers, body={"name": "x", "member": "ann"})
    assert other.status_code == 403


async def test_a_token_is_kept_nowhere(city: Served) -> None:
    headers = city.owner | {"Idempotency-Key": "x"}
    refused = await city.call("POST", f"{ROOT}/tokens", headers=headers, body={"name": "ci"})
    assert (refused.status_code, "kept nowhere" in refused.json()["detail"]) == (400, True)
    made = await city.call("POST", f"{ROOT}/tokens", headers=city.owner, body={"name": "ci"})
    files = [one for one in city.opened.paths.runtime.rglob("*") if one.is_file()]
    assert all(made.json()["token"].encode() not in one.read_bytes() for one in files)


async def test_what_is_on_record_has_no_secrets(city: Served) -> None:
    env = {"API_TOKEN": "s3cret", "PLAIN": "x"}
    body = {"name": "site", "path": "/srv", "env": env}
    made = await city.call("POST", f"{ROOT}/configurations", headers=city.owner, body=body)
    assert made.status_code == 201
    entry = (await city.call("GET", f"{ROOT}/audit", headers=city.owner)).json()["data"][0]
    assert entry["asked"]["body"]["env"] == {"API_TOKEN": "•••", "PLAIN": "x"}


async def test_what_was_refused_or_only_read_leaves_no_record(city: Served) -> None:
    before = (await city.call("GET", f"{ROOT}/audit", headers=city.owner)).json()["data"]
    for method, path in (("GET", "/runs"), ("POST", "/runs/run_9/cancel"), ("GET", "/tokens")):
        await city.call(method, ROOT + path, headers=city.owner)
    assert (await city.call("GET", f"{ROOT}/audit", headers=city.owner)).json()["data"] == before


async def test_an_effect_is_on_record_before_it_begins(city: Served) -> None:
    found = await city.call("POST", f"{ROOT}/agents/nobody/kill", headers=city.owner)
    assert found.status_code == 404
    entry = (await city.call("GET", f"{ROOT}/audit", headers=city.owner)).json()["data"][0]
    assert (entry["operation"], entry["object"], entry["surface"]) == ("agent.kill", "nobody", "api")


@pytest.mark.parametrize("path", ["/stream?content=events&after=0", "/events/tail?after=0"])
async def test_an_open_stream_gives_nothing_out_once_its_token_is_void(city: Served, path: str) -> None:
    """The look at the token before counts for a second; the events come after that."""
    shown = token_of(city, Role.MEMBER)
    async with (
        httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client,
        client.stream("GET", ROOT + path, headers=shown) as answer,
        TimeLimit(30),
    ):
        assert answer.status_code == 200
        lines = answer.aiter_lines()
        _emit(city, "deploy.before")
        while "deploy.before" not in await anext(lines):
            pass
        city.opened.store.transact(_revoke_all)
        await asyncio.sleep(AGAIN.total_seconds() * 1.1)
        _emit(city, "deploy.after")
        assert [line async for line in lines if "deploy.after" in line] == [], "it has ended, and without the event"


def _emit(city: Served, event_type: str) -> None:
    city.opened.store.transact(lambda tx: tx.events.append(city.opened.context().event(event_type)))


def _revoke_all(tx: Any) -> None:
    for token in tx.tokens.all():
        tx.tokens.revoke(token.id, token.created_at)


async def test_a_token_that_ends_makes_none_that_holds_longer(city: Served) -> None:
    end = city.opened.clock.now() + timedelta(hours=1)
    mine = token_of(city, Role.MEMBER, expires_at=end)
    for expires in ("never", "30d"):
        made = await city.call("POST", f"{ROOT}/tokens", headers=mine, body={"name": expires, "expires": expires})
        assert (made.status_code, made.json()["expires_at"]) == (201, rfc3339(end))


async def test_what_a_scoped_token_lacks_is_told_as_the_token_s_lack(city: Served) -> None:
    mine = token_of(city, Role.MEMBER, Verb.READ)
    refused = await city.call("POST", f"{ROOT}/automations/light/run", headers=mine, body={})
    assert refused.status_code == 403
    assert "keeps only: read" in refused.json()["hint"]


@pytest.mark.parametrize(
    "body",
    [b'{"type": "x.y", "message": "\xed\xa0\x80"}', '{"type": "x.y", "message": "a\\u0000"}'.encode("utf-16-le")],
    ids=["half a pair", "other encoding"],
)
async def test_a_text_that_no_database_keeps_is_refused(city: Served, body: bytes) -> None:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        headers = city.owner | {"Content-Type": "application/json"}
        found = await client.post(f"{ROOT}/events", headers=headers, content=body)
    assert found.status_code == 400


async def test_a_message_of_an_event_is_bounded(city: Served) -> None:
    body = {"type": "x.y", "message": "m" * 8001}
    assert (await city.call("POST", f"{ROOT}/events", headers=city.owner, body=body)).status_code == 400
