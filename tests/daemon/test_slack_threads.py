"""Threads of Slack that are conversations: a mention begins one, replies are its turns, in order."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx2
import pytest
from loops_city import Loops
from slack_city import hear, member, on_both
from slack_talk import count, ended, furnish, go, mention, send, step, until

from lamplighter.domain.access import Role
from lamplighter.domain.slack.events import said, stopped
from lamplighter.testing.slack_server import Limited, Lost, SlackServer, Trouble, slack_server
from lamplighter.testing.slack_shapes import BOT_ID, BOT_USER, TEAM, envelope, signed


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
async def web(loops: Loops, slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    await furnish(loops, monkeypatch)
    async with hear(loops, slack) as client:
        yield client


@on_both
async def test_a_whole_conversation_is_told_in_order_in_one_edited_message_a_turn(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light &lt;all&gt; the lamps")
    assert await send(web, first, "Ev1") == 200
    await until(loops, lambda: (loops.root / "turn1").exists() and len(slack.messages["C1"]) == 2)
    assert "light <all> the lamps" in (loops.root / "turn1").read_text()
    assert slack.messages["C1"][0]["reactions"] == ["eyes"]
    # Said while it works: it waits, and is told with what comes after it; what others say is nothing to us.
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev2")
    await send(web, slack.say("C1", "U1", "and the door", thread=first["ts"]), "Ev3")
    go(loops, 1, "Lit & done.")
    await until(loops, (loops.root / "turn2").exists)
    told = (loops.root / "turn2").read_text()
    assert told.index("and the gate") < told.index("and the door")
    assert "th-1" in told
    go(loops, 2, "x" * 5000)
    await ended(loops)
    ours = [one for one in slack.messages["C1"] if one.get("bot_id")]
    assert ours[0]["text"] == "Looking, turn 1.\n\nLit &amp; done."
    assert "".join(one["text"] for one in ours[1:]).replace("\n", "") == "Looking, turn 2." + "x" * 5000
    assert len(ours) == 3
    assert all(one["thread_ts"] == first["ts"] for one in ours)
    assert all(not one.get("reactions") for one in slack.messages["C1"])
    rows = await loops.store.read(lambda tx: list(tx.db.rows("SELECT state, reason, automation FROM runs", {})))
    assert {tuple(dict(one).values()) for one in rows} == {("succeeded", "replied", "conversation")}


@on_both
async def test_events_that_repeat_and_come_in_another_order_begin_one_conversation(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    as_message = first | {"type": "message"}
    reply = slack.say("C1", "U1", "quickly", thread=first["ts"])
    await asyncio.gather(*(send(web, first, "Ev1") for _ in range(3)), send(web, as_message, "Ev2"))
    await asyncio.gather(send(web, reply, "Ev3"), send(web, first, "Ev1"), send(web, reply, "Ev3"))
    assert await loops.store.read(count("slack_threads")) == 1
    assert await loops.store.read(count("runs")) == 1
    assert await loops.store.read(count("messages")) == 1
    go(loops, 1, "Lit.")
    go(loops, 2, "Quick.")
    await ended(loops)
    assert [one["text"] for one in slack.messages["C1"] if one.get("bot_id")] == [
        "Looking, turn 1.\n\nLit.",
        "Looking, turn 2.\n\nQuick.",
    ]


@on_both
async def test_a_reply_that_comes_before_its_mention_waits_for_it(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    replies = [slack.say("C1", "U1", text, thread=first["ts"]) for text in ("the first", "the second", "the third")]
    other = slack.say("C1", "U1", "nothing for you")
    await send(web, slack.say("C1", "U1", "in another thread", thread=other["ts"]), "Ev0")
    for number, reply in enumerate(reversed(replies[1:])):
        assert await send(web, reply, f"Ev{number + 1}") == 200
    assert await loops.store.read(count("runs")) == 0
    await asyncio.gather(send(web, first, "Ev8"), send(web, replies[0], "Ev9"), send(web, replies[1], "Ev2"))
    said = await loops.store.read(lambda tx: [str(one["text"]) for one in tx.db.rows("SELECT text FROM messages", {})])
    assert sorted(said) == ["the first", "the second", "the third"]
    assert await loops.store.read(count("slack_early")) == 1
    assert await loops.store.read(count("runs")) == 1
    go(loops, 1, "Lit.")
    go(loops, 2, "All.")
    await ended(loops)
    told = (loops.root / "turn2").read_text()
    assert told.index("the second") < told.index("the third")


async def test_lost_answers_limits_and_a_new_process_neither_lose_nor_repeat_what_is_said(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    def trouble(method: str, before: int) -> Trouble | None:
        if method == "chat.postMessage":
            return {0: Lost(), 1: Limited(1)}.get(before)
        return Lost() if method == "chat.update" and before == 0 else None

    slack.trouble = trouble
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: len(slack.messages["C1"]) == 2)
    go(loops, 1, "Lit.")
    loops.parts.dispatcher.handlers.slack = None  # whoever told on is gone; nothing but the store is left
    hear(loops, slack)
    await ended(loops)
    assert [one["text"] for one in slack.messages["C1"] if one.get("bot_id")] == ["Looking, turn 1.\n\nLit."]


async def test_a_turn_that_fails_is_marked_and_says_why(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    go(loops, 1, "No oil.", ends=3)
    await ended(loops)
    assert slack.messages["C1"][0]["reactions"] == ["x"]
    assert "ended as failed" in slack.texts("C1")[-1]


def reacted(message: Mapping[str, Any], user: str, reaction: str = "x") -> dict[str, Any]:
    item = {"type": "message", "channel": "C1", "ts": message["ts"]}
    return {"type": "reaction_added", "user": user, "reaction": reaction, "item": item, "event_ts": f"{user}.1"}


async def test_a_cross_on_a_message_of_the_thread_stops_what_works_there(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, lambda: len(slack.messages["C1"]) == 2)
    ours = slack.messages["C1"][1]
    for number, event in enumerate(
        (reacted(ours, BOT_USER), reacted(ours, "U1", "eyes"), reacted({"ts": "1.0"}, "U1"))
    ):
        assert await send(web, event, f"Ev2{number}") == 200
    assert await loops.store.read(count("runs WHERE state = 'canceled'")) == 0
    await send(web, reacted(ours, "U9"), "Ev3")  # nobody knows them
    await until(loops, lambda: [one["user"] for one in slack.ephemeral] == ["U9"])
    await asyncio.gather(*(send(web, reacted(first, "U1"), "Ev4") for _ in range(2)))
    await ended(loops)
    assert await loops.store.read(count("runs WHERE state = 'canceled'")) == 1
    assert slack.texts("C1")[-1] == ":x: Stopped."
    assert not slack.messages["C1"][0].get("reactions")
    assert len(slack.ephemeral) == 1
    go(loops, 1, "Too late.")  # nobody ends the program of a canceled run in these loops: it ends itself
    await send(web, reacted(ours, "U1"), "Ev5")  # nothing works there any more
    await step(loops)
    assert len(slack.ephemeral) == 1


async def test_who_may_begin_and_who_is_heard(loops: Loops, slack: SlackServer, web: httpx2.AsyncClient) -> None:
    await send(web, mention(slack, "hello", user="U9"), "Ev1")
    await step(loops)
    await step(loops)
    assert "lamp slack link" in slack.ephemeral[0]["text"]
    await send(web, slack.say("C1", "U1", "nothing for you"), "Ev2")
    await send(web, mention(slack, " "), "Ev3")
    assert await loops.store.read(count("runs")) == 0
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev4")
    await member(loops, "bo", Role.MEMBER, "U2")
    await send(web, slack.say("C1", "U2", "I am third here", thread=first["ts"]), "Ev5")
    await send(web, slack.say("C1", "U1", "now I have to mention it", thread=first["ts"]), "Ev6")
    assert await loops.store.read(count("messages")) == 0
    await send(web, mention(slack, "as I do", user="U2", thread=first["ts"]), "Ev7")
    assert await loops.store.read(count("messages")) == 1
    go(loops, 1, "Lit.")
    go(loops, 2, "Too.")
    await ended(loops)


async def test_the_address_is_tried_by_a_challenge_that_is_signed(web: httpx2.AsyncClient) -> None:
    body = b'{"type":"url_verification","challenge":"abc"}'
    answer = await web.post("/slack/events", content=body, headers=signed(body))
    assert (answer.status_code, answer.json()) == (200, {"challenge": "abc"})
    assert (await web.post("/slack/events", content=body, headers=signed(body, at=1.0))).status_code == 401
    other = httpx2.Request("POST", "http://x", json=envelope({"type": "message"}, "Ev1", team_id="T9")).content
    assert (await web.post("/slack/events", content=other, headers=signed(other))).status_code == 400


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message", "bot_id": "B9", "user": "U1", "text": "x", "ts": "1.0", "channel": "C1"},
        {"type": "message", "user": BOT_USER, "text": "x", "ts": "1.0", "channel": "C1"},
        {"type": "message", "subtype": "bot_message", "user": "U1", "text": "x", "ts": "1.0", "channel": "C1"},
        {"type": "message", "subtype": "message_changed", "user": "U1", "text": "x", "ts": "1.0", "channel": "C1"},
        {"type": "message", "text": "x", "ts": "1.0", "channel": "C1"},
        {"type": "reaction_added", "user": "U1", "text": "x", "ts": "1.0", "channel": "C1", "item": "C1"},
    ],
)
def test_what_no_person_wrote_is_not_heard(event: dict[str, Any]) -> None:
    assert said(TEAM, event, bot_user=BOT_USER, bot_id=BOT_ID) is None
    assert stopped(TEAM, event | {"reaction": "x"}, bot_user=BOT_USER) is None


def test_a_message_is_read_as_it_was_written() -> None:
    event = {"type": "message", "user": "U1", "ts": "1.0", "channel": "D1", "channel_type": "im",
             "text": "look at <https://a.example/b|b> &amp; <https://c.example> now"}  # fmt: skip
    found = said(TEAM, event, bot_user=BOT_USER, bot_id=BOT_ID)
    assert found is not None
    assert (found.text, found.to_us) == ("look at https://a.example/b & https://c.example now", True)
