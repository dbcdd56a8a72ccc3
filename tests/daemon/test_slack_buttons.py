"""Buttons in Slack: the operation itself, under the presser's role; the first wins, and the message says who."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx2
import pytest
from loops_city import Loops
from slack_city import OPS, declare, hear, install, member

from lamplighter.domain.access import Role
from lamplighter.domain.inbox.items import InboxItem, State
from lamplighter.kit.records import changed
from lamplighter.services.slack.installing import FindSlackCode, LinkSlack, find_code, link
from lamplighter.store.members import MemberRow
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import SlackServer, slack_server
from lamplighter.testing.slack_shapes import as_form, press, signed


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
async def web(loops: Loops, slack: SlackServer) -> AsyncIterator[httpx2.AsyncClient]:
    await install(loops)
    declare(loops, slack, OPS)
    async with hear(loops, slack) as client:
        yield client


async def failing(loops: Loops, slack: SlackServer) -> dict[str, Any]:
    """The message about a run that failed."""
    await loops.add("nightly", exec="exit 1")
    await loops.work("nightly")
    await loops.parts.inbox.tell()
    await loops.parts.dispatcher.drain()
    return slack.messages["C1"][0]


def button(message: Mapping[str, Any], verb: str) -> dict[str, Any]:
    row = next(one for one in message["blocks"] if one["type"] == "actions")
    found: dict[str, Any] = next(one for one in row["elements"] if one["action_id"] == f"lamp:{verb}")
    return found | {"block_id": row["block_id"], "action_ts": "1.0"}


async def pressed(web: httpx2.AsyncClient, loops: Loops, payload: Mapping[str, Any]) -> int:
    body = as_form(payload)
    answer = await web.post("/slack/interactions", content=body, headers=signed(body, form=True))
    await loops.parts.dispatcher.drain()
    return answer.status_code


async def item(loops: Loops) -> InboxItem:
    def the_one(tx: Tx) -> InboxItem:
        row = tx.db.row("SELECT id FROM inbox_items WHERE kind = 'failed' ORDER BY id LIMIT 1", {})
        assert row is not None
        found = tx.inbox.get(row["id"])
        assert found is not None
        return found

    return await loops.store.read(the_one)


async def runs(loops: Loops) -> list[Any]:
    return await loops.store.read(lambda tx: list(tx.db.rows("SELECT id, assigned_to FROM runs ORDER BY id", {})))


async def test_a_claim_is_the_pressers_and_the_message_says_so(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await member(loops, "bo", Role.MEMBER, "U2")
    said = await failing(loops, slack)
    assert await pressed(web, loops, press(button(said, "claim"), said, "C1", "U2")) == 200
    assert [one["assigned_to"] for one in await runs(loops)] == ["bo"]
    assert said["blocks"][-1]["elements"][0]["text"] == "Claimed by bo"
    assert any(one["type"] == "actions" for one in said["blocks"])
    rows = await loops.store.read(lambda tx: list(tx.db.rows("SELECT actor, surface, operation FROM audit", {})))
    assert [tuple(one.values()) for one in map(dict, rows)] == [("bo", "slack", "inbox.claim")]


async def test_a_role_without_the_right_is_refused_and_told_so_alone(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await member(loops, "bo", Role.MEMBER, "U2")
    await member(loops, "ann", Role.ADMIN, "U1")
    said = await failing(loops, slack)
    await pressed(web, loops, press(button(said, "resolve"), said, "C1", "U2"))
    [told] = slack.ephemeral
    assert (told["user"], told["text"]) == ("U2", "bo may not resolve run.")
    assert slack.of("chat.update") == []
    await pressed(web, loops, press(button(said, "resolve"), said, "C1", "U1"))
    assert said["blocks"][-1]["elements"][0]["text"] == "Resolved by ann"
    assert not any(one["type"] == "actions" for one in said["blocks"])
    assert (await item(loops)).state is State.SETTLED


async def test_of_two_who_press_at_once_the_first_wins(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    for name, person in (("ann", "U1"), ("bo", "U2")):
        await member(loops, name, Role.ADMIN, person)
    said = await failing(loops, slack)
    for payload in [press(button(said, "resolve"), said, "C1", person) for person in ("U1", "U2")]:
        body = as_form(payload)
        await web.post("/slack/interactions", content=body, headers=signed(body, form=True))
    await loops.parts.dispatcher.drain()
    assert (await item(loops)).settled_by == "ann"
    [told] = slack.ephemeral
    assert told["user"] == "U2"
    assert all(one.args["text"].endswith("by ann") for one in slack.of("chat.update"))  # in whichever order they came
    assert not any(one["type"] == "actions" for one in said["blocks"])


async def test_a_claim_told_late_brings_no_buttons_back(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    for name, person in (("ann", "U1"), ("bo", "U2")):
        await member(loops, name, Role.ADMIN, person)
    said = await failing(loops, slack)
    for verb, person in (("claim", "U2"), ("resolve", "U1")):
        body = as_form(press(button(said, verb), said, "C1", person))
        await web.post("/slack/interactions", content=body, headers=signed(body, form=True))
    await loops.parts.dispatcher.drain()
    [told] = slack.of("chat.update")
    assert told.args["text"].endswith("Resolved by ann")
    assert not any(one["type"] == "actions" for one in said["blocks"])


async def test_a_press_that_comes_twice_counts_once(loops: Loops, slack: SlackServer, web: httpx2.AsyncClient) -> None:
    await member(loops, "ann", Role.ADMIN, "U1")
    said = await failing(loops, slack)
    body = as_form(press(button(said, "retry"), said, "C1", "U1"))
    await asyncio.gather(
        *(web.post("/slack/interactions", content=body, headers=signed(body, form=True)) for _ in range(3))
    )
    await loops.parts.dispatcher.drain()
    assert len(await runs(loops)) == 2
    assert slack.ephemeral == []


async def test_somebody_unknown_is_known_by_a_verified_address_or_by_a_code(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    for name in ("di@example.org", "cy"):
        row = MemberRow(name, Role.ADMIN, loops.clock.now(), "ann")
        await loops.store.transact(lambda tx, row=row: tx.members.add(row))
    slack.users["U4"] = {"is_email_confirmed": True, "profile": {"email": "Di@example.org"}}
    slack.users["U3"] = {"is_email_confirmed": False, "profile": {"email": "di@example.org"}, "real_name": "Cy"}
    said = await failing(loops, slack)
    claim = button(said, "claim")
    await pressed(web, loops, press(claim, said, "C1", "U3"))
    [told] = slack.ephemeral
    code = told["text"].partition("lamp slack link ")[2].partition("`")[0]
    asked = await loops.store.read(find_code, FindSlackCode(code), loops.context)
    assert (asked.person, asked.name, asked.workspace) == ("U3", "Cy", "City")
    cy = changed(loops.context, actor=changed(loops.context.actor, name="cy", role=Role.ADMIN))
    await loops.store.transact(link, LinkSlack(code), cy)
    await pressed(web, loops, press(claim | {"action_ts": "2.0"}, said, "C1", "U3"))
    assert said["blocks"][-1]["elements"][0]["text"] == "Claimed by cy"
    await pressed(web, loops, press(claim, said, "C1", "U4"))
    assert "cy" in slack.ephemeral[-1]["text"]  # di is known, and too late
    await loops.store.transact(lambda tx: tx.members.remove("cy"))
    await pressed(web, loops, press(claim | {"action_ts": "3.0"}, said, "C1", "U3"))
    assert "does not know who you are" in slack.ephemeral[-1]["text"]


async def test_what_slack_did_not_sign_just_now_is_refused(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await member(loops, "ann", Role.ADMIN, "U1")
    said = await failing(loops, slack)
    body = as_form(press(button(said, "resolve"), said, "C1", "U1"))
    now = loops.clock.now().timestamp()
    wrong = [
        {"content-type": "application/x-www-form-urlencoded"},
        signed(body, form=True, at=now - 310),
        signed(body, form=True, at=now + 310),
        signed(body + b" ", form=True),
        signed(body, form=True, secret="f" * 32),
    ]
    for headers in wrong:
        answer = await web.post("/slack/interactions", content=body, headers=headers)
        assert answer.status_code == 401
    for rubbish in (b"payload=[]", b"nonsense", b"payload=%7B%7D&x=1", b"payload=%00"):
        answer = await web.post("/slack/interactions", content=rubbish, headers=signed(rubbish, form=True))
        assert answer.status_code in {200, 400}
    assert (await item(loops)).state is State.OPEN
