"""Notices in Slack: what they say, once each, and once again only where Slack cannot be asked."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from loops_city import Loops
from slack_city import OPS, PUBLIC, declare, install, on_both

from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.domain.inbox.items import Kind
from lamplighter.domain.inbox.notices import Notice, NoticeState
from lamplighter.domain.slack import messages
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import Broken, Limited, Lost, Refused, SlackServer, Trouble, slack_server
from lamplighter.testing.slack_shapes import BOT_TOKEN


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


async def told(loops: Loops) -> list[Notice]:
    return await loops.store.read(lambda tx: tx.notices.page())


async def fail(loops: Loops, **keys: Any) -> None:
    await loops.add("nightly", exec="echo 'no <oil> & no wick' >&2; exit 1", **keys)
    await loops.work("nightly")
    await loops.parts.inbox.tell()


def make_due(tx: Tx) -> None:
    tx.db.execute("UPDATE outbox SET due_at = 0 WHERE state = 'pending'", {})


async def again(loops: Loops) -> None:
    """What failed is tried again now."""
    await loops.store.transact(make_due)
    await loops.parts.dispatcher.drain()


async def test_a_failure_is_told_in_its_channel_with_its_mend_its_link_and_buttons(
    loops: Loops, slack: SlackServer
) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    await fail(loops)
    await loops.parts.dispatcher.drain()
    [said] = slack.messages["C1"]
    assert said["text"] == "nightly failed (exit 1): no &lt;oil&gt; &amp; no wick."
    text = said["blocks"][0]["text"]["text"]
    [notice] = await told(loops)
    assert f"<{PUBLIC}/runs/{notice.body['run']}|Open the run>" in text
    assert str(notice.body["fix"]) in text
    assert [one["action_id"] for one in said["blocks"][2]["elements"]] == ["lamp:retry", "lamp:claim", "lamp:resolve"]
    assert said["metadata"]["event_payload"] == {"notice": notice.id}
    assert notice.state is NoticeState.SENT


async def test_an_automation_names_a_channel_or_a_person_itself(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack)
    await fail(loops, notify=["slack:C1", "slack:U7"])
    await loops.parts.dispatcher.drain()
    assert len(slack.texts("C1")) == len(slack.texts("D7")) == 1


async def test_the_channel_of_the_city_is_told_what_names_nobody(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack, slack_channel="C1")
    await fail(loops)
    await loops.parts.dispatcher.drain()
    assert len(slack.texts("C1")) == 1


async def test_a_workspace_that_is_not_installed_is_named(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack, replace(OPS, team="T9"))
    await fail(loops)
    await loops.parts.dispatcher.drain()
    [notice] = await told(loops)
    assert "Slack's workspace `T9` is not installed" in notice.last_error


@on_both
async def test_a_message_whose_answer_was_lost_is_found_and_not_sent_again(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    slack.trouble = lambda method, before: Lost() if method == "chat.postMessage" and not before else None
    await fail(loops)
    await loops.parts.dispatcher.drain()
    [notice] = await told(loops)
    assert (notice.state, notice.attempts) == (NoticeState.PENDING, 1)
    await again(loops)
    [notice] = await told(loops)
    assert notice.state is NoticeState.SENT
    assert len(slack.texts("C1")) == len(slack.of("chat.postMessage")) == 1


@on_both
@pytest.mark.parametrize("refusal", [Refused("missing_scope"), Refused("not_in_channel")])
async def test_where_slack_cannot_be_asked_it_is_sent_again_and_the_doubt_is_on_record(
    loops: Loops, slack: SlackServer, refusal: Trouble
) -> None:
    await install(loops)
    declare(loops, slack, OPS)

    def trouble(method: str, before: int) -> Trouble | None:
        if method == "conversations.history":
            return refusal
        return Lost() if not before else None

    slack.trouble = trouble
    await fail(loops)
    await loops.parts.dispatcher.drain()
    await again(loops)
    [notice] = await told(loops)
    effect = await loops.store.transact(lambda tx: tx.effects.lock(f"notify:{notice.about}:ops:opened"))
    assert effect is not None
    assert (notice.state, effect.doubts) == (NoticeState.SENT, 1)
    assert len(slack.texts("C1")) == 2


@on_both
async def test_where_slack_cannot_be_asked_nobody_is_told_more_than_twice(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    asks = False

    def trouble(method: str, _before: int) -> Trouble | None:
        if method == "conversations.history":
            return None if asks else Refused("missing_scope")
        return Lost()

    slack.trouble = trouble
    await fail(loops)
    for _ in range(5):
        await again(loops)
    [notice] = [one for one in await told(loops) if one.destination == "ops"]
    assert len(slack.texts("C1")) == 2
    assert (notice.state, notice.doubts) == (NoticeState.PENDING, 2)
    assert "not known whether it arrived" in notice.last_error
    items = await loops.store.read(lambda tx: tx.inbox.open_ones())
    assert [one.subject for one in items if one.kind is Kind.DESTINATION] == ["ops"]
    asks = True  # the app was given the scope: now it is known
    await again(loops)
    [notice] = [one for one in await told(loops) if one.destination == "ops"]
    assert (notice.state, len(slack.texts("C1"))) == (NoticeState.SENT, 2)


@pytest.mark.parametrize(
    ("trouble", "doubts"), [(Broken(503), 0), (Broken(502), 1), (Refused("fatal_error"), 1), (Refused("no_text"), 0)]
)
async def test_what_slack_says_it_did_not_do_leaves_no_doubt(
    loops: Loops, slack: SlackServer, trouble: Trouble, doubts: int
) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    slack.trouble = lambda method, _before: trouble if method == "chat.postMessage" else None
    await fail(loops)
    await loops.parts.dispatcher.drain()
    [notice] = await told(loops)
    assert (notice.state, notice.doubts) == (NoticeState.PENDING, doubts)


async def test_a_limit_of_slack_is_waited_for_and_costs_no_attempt(loops: Loops, slack: SlackServer) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    slack.trouble = lambda _method, before: Limited(77) if not before else None
    await fail(loops)
    began = loops.clock.now()
    await loops.parts.dispatcher.drain()
    due = await loops.store.read(lambda tx: tx.outbox.next_due_at())
    assert due is not None
    assert due >= began + timedelta(seconds=77)
    assert slack.texts("C1") == []
    await again(loops)
    [notice] = await told(loops)
    assert (notice.state, notice.attempts) == (NoticeState.SENT, 1)


async def test_a_channel_that_takes_nothing_needs_a_person_and_no_token_is_told(
    loops: Loops, slack: SlackServer
) -> None:
    await install(loops)
    declare(loops, slack, OPS)
    slack.trouble = lambda _method, before: Broken() if before == 1 else Refused("channel_not_found")
    await fail(loops)
    for _ in range(3):
        await again(loops)
    items = await loops.store.read(lambda tx: tx.inbox.open_ones())
    [item] = [one for one in items if one.kind is Kind.DESTINATION]
    assert item.subject == "ops"
    kept = [*items, *await told(loops), *await loops.store.read(lambda tx: tx.outbox.page(ItemState.PENDING))]
    assert BOT_TOKEN not in repr(kept)


async def test_without_a_workspace_it_is_told_why(loops: Loops, slack: SlackServer) -> None:
    declare(loops, slack, Destination(name="me", kind="slack_dm_user", user="U7"))
    await fail(loops)
    await loops.parts.dispatcher.drain()
    [notice] = await told(loops)
    assert notice.last_error == "No workspace of Slack is installed."


def test_a_question_has_its_choices_and_a_place_for_an_answer() -> None:
    asked = {"item": "itm_1", "state": "open", "kind": "needs_human", "sentence": "Which?",
             "question": {"choices": ["red", "b" * 200], "answerable": True, "plan": False}}  # fmt: skip
    row, free = messages.actions(asked)
    assert [one["action_id"] for one in row["elements"]] == ["lamp:answer:0", "lamp:answer:1", "lamp:claim"]
    assert len(row["elements"][1]["text"]["text"]) == 75
    assert (row["elements"][1]["value"], free["element"]["action_id"]) == ("b" * 200, "lamp:answer")
    plan = asked | {"question": {"plan": True}}
    assert [one["action_id"] for one in messages.actions(plan)[0]["elements"]] == [
        "lamp:approve",
        "lamp:reject",
        "lamp:claim",
    ]
    assert messages.actions(asked | {"state": "settled"}) == []


def test_long_texts_are_parted_at_lines_and_nothing_of_them_is_lost() -> None:
    text = "\n".join(f"line {number} " + "x" * 80 for number in range(100))
    found = messages.parts(text)
    assert max(map(len, found)) <= messages.LONGEST_PART
    assert "\n".join(found) == text
    assert [len(one) for one in messages.parts("y" * 7001)] == [3500, 3500, 1]
    assert messages.parts(" ") == []
