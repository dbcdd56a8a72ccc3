"""Turns that are streamed as they come, with a plan of what is done: no word twice or lost, whatever Slack does."""

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from loops_city import Loops
from slack_city import hear, on_both
from slack_talk import count, ended, furnish, go, mention, send, step, until
from test_questions import ask

from lamplighter.domain.slack.stream import LASTS, Mode, Stream, written
from lamplighter.kit.clock import from_rfc3339, rfc3339
from lamplighter.testing.slack_server import Broken, Limited, Lost, Refused, SlackServer, Trouble, slack_server
from lamplighter.testing.slack_shapes import SCOPES, TEAM

START, APPEND, STOP = "chat.startStream", "chat.appendStream", "chat.stopStream"
JOINER = "\N{WORD JOINER}"


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        found.streams = True
        yield found


@pytest.fixture
async def web(loops: Loops, slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    await furnish(loops, monkeypatch)
    await loops.store.transact(lambda tx: tx.slack.scoped(TEAM, ",".join(SCOPES)))
    async with hear(loops, slack) as client:
        yield client


def ours(slack: SlackServer) -> list[dict[str, Any]]:
    return [one for one in slack.messages["C1"] if one.get("bot_id")]


def said(slack: SlackServer) -> list[str]:
    return [one["text"].strip() for one in ours(slack)]


def plan(message: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    found = message["blocks"][0]
    return found["title"], [(one["title"], one["status"]) for one in found["tasks"]]


@on_both
async def test_a_turn_is_streamed_as_it_comes_with_a_plan_of_what_is_done(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    (loops.root / "tools").write_text("command_execution command_execution file_change")
    over = "t1:command_execution:failed t2:command_execution:completed t3:file_change:failed"
    (loops.root / "over").write_text(over)
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, lambda: "Runs commands (2)" in str(ours(slack)))
    [message] = ours(slack)
    assert (message["text"], message["thread_ts"]) == ("Looking, turn 1.\n\n", first["ts"])
    assert plan(message) == (
        "At work",
        [("Works", "in_progress"), ("Runs commands (2)", "in_progress"), ("Changes files", "in_progress")],
    )
    assert slack.sessions == {("C1", first["ts"]): "processing"}
    go(loops, 1, "**Lit** & <!channel> told.")
    await ended(loops)
    assert said(slack) == [f"Looking, turn 1.\n\n**Lit** & <{JOINER}!channel> told."]
    assert plan(message) == (
        "Done",
        [("Works", "complete"), ("Runs commands (2)", "complete"), ("Changes files", "error")],
    )
    assert message["streaming_state"] == "completed"
    assert slack.sessions == {("C1", first["ts"]): "active"}
    [began] = slack.of(START)
    assert (began.args["recipient_user_id"], began.args["recipient_team_id"]) == ("U1", TEAM)
    assert began.args["task_display_mode"] == "plan"
    assert slack.of("chat.postMessage") == slack.of("chat.update") == []
    assert "secret-input" not in str(slack.calls)
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev2")
    go(loops, 2, "The gate.")
    await ended(loops)
    assert said(slack)[1:] == ["Looking, turn 2.\n\nThe gate."]


TROUBLE = {
    "begun without an answer": {(START, 0): Lost()},
    "not begun, without an answer": {(START, 0): Lost(taken=False)},
    "away when it is begun": {(START, 0): Broken(503), (START, 1): Broken(502)},
    "added without an answer": {(APPEND, 0): Lost()},
    "not added, without an answer": {(APPEND, 0): Lost(taken=False)},
    "the second addition without an answer": {(APPEND, 1): Lost()},
    "additions limited": {(APPEND, 0): Limited(1), (APPEND, 1): Limited(1)},
    "away when it is added to": {(APPEND, 0): Broken(503), (APPEND, 2): Broken(502)},
    "additions refused": {(APPEND, 1): Refused("message_not_in_streaming_state")},
    "a fault of Slack": {(APPEND, 1): Refused("internal_error"), (STOP, 0): Refused("fatal_error")},
    "ended without an answer": {(STOP, 0): Lost()},
    "not ended, without an answer": {(STOP, 0): Lost(taken=False), (STOP, 1): Limited(1)},
    "lost, and the edit after it too": {(APPEND, 0): Lost(), (STOP, 0): Lost(), ("chat.update", 0): Lost()},
    "beginning limited": {(START, 0): Limited(1)},
    "not in this channel": {(START, 0): Refused("channel_type_not_supported")},
}


@pytest.mark.parametrize("name", list(TROUBLE))
async def test_whatever_a_call_comes_to_each_word_stands_there_once(
    name: str, loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    left = dict(TROUBLE[name])

    def trouble(method: str, before: int) -> Trouble | None:
        return left.pop((method, before), None)

    slack.trouble = trouble
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    go(loops, 1, "Lit.")
    await ended(loops)
    assert left == {}, "all of the trouble came"
    assert [one for one in said(slack) if one] == ["Looking, turn 1.\n\nLit."]
    assert slack.streaming("C1") == []
    assert not any(one.get("reactions") for one in slack.messages["C1"])


@pytest.mark.parametrize("seed", range(4))
async def test_a_slack_that_fails_every_other_call_is_told_each_word_once_and_is_not_given_up(
    seed: int, loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    chance, failed = random.Random(seed), Counter[str]()

    def trouble(method: str, _before: int) -> Trouble | None:
        if chance.random() < 0.5 or failed[method] >= 6:
            return None
        failed[method] += 1
        return chance.choice([Lost(), Lost(taken=False), Limited(1), Broken(503), Broken(502), Refused("fatal_error")])

    slack.trouble = trouble
    (loops.root / "tools").write_text("command_execution file_change")
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    go(loops, 1, "Lit.")
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev2")
    go(loops, 2, "The gate.")
    await ended(loops)
    words = [one for one in said(slack) if one]
    assert words == ["Looking, turn 1.\n\nLit.", "Looking, turn 2.\n\nThe gate."]
    assert failed.total() > 0
    assert await loops.store.read(count("outbox WHERE kind = 'slack_follow' AND attempts > 5")) == 0


async def test_a_stream_that_slack_ends_is_gone_on_with_by_editing_its_message(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    slack.end_streams("C1")
    go(loops, 1, "**Lit.**")
    await ended(loops)
    [message] = ours(slack)
    assert (message["text"], message["blocks"]) == ("Looking, turn 1.\n\n*Lit.*", [])
    assert len(slack.of(START)) == 1


async def test_a_stream_is_ended_before_slack_ends_it_and_its_message_edited_from_then_on(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))

    def age(tx: Any) -> None:
        [row] = tx.db.rows("SELECT id, stream FROM slack_threads", {})
        kept = json.loads(row["stream"])
        kept["begun"] = rfc3339(from_rfc3339(kept["begun"]) - LASTS - timedelta(seconds=1))
        tx.db.execute("UPDATE slack_threads SET stream = :stream", {"stream": json.dumps(kept)})

    await loops.store.transact(age)
    await until(loops, lambda: slack.streaming("C1") == [])
    await until(loops, lambda: "works" in str(ours(slack)[0]["blocks"]))
    assert "lamp:stop" in str(ours(slack)[0]["blocks"])
    go(loops, 1, "Lit.")
    await ended(loops)
    assert said(slack) == ["Looking, turn 1.\n\nLit."]


@pytest.mark.parametrize("point", ["unsure", "open"])
async def test_a_new_process_goes_on_where_the_one_before_was_killed(
    point: str, loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    """Killed within a call that adds to the stream: nothing but the store is left, and it says that it is unsure."""
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    if point == "unsure":
        [row] = await loops.store.read(lambda tx: list(tx.db.rows("SELECT stream FROM slack_threads", {})))
        kept = json.dumps(json.loads(row["stream"]) | {"mode": "unsure"})
        await loops.store.transact(
            lambda tx: tx.db.execute("UPDATE slack_threads SET stream = :stream", {"stream": kept})
        )
        ours(slack)[0]["text"] += "Lit.\n\n"  # it was taken, and nobody heard of it
    loops.parts.dispatcher.handlers.slack = None
    hear(loops, slack)
    go(loops, 1, "Lit.")
    await ended(loops)
    assert said(slack) == ["Looking, turn 1.\n\nLit."]
    assert slack.streaming("C1") == []


async def test_slack_s_own_stop_button_ends_what_works_there(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    stopped = slack.end_streams("C1", by_user="U1")
    for number in range(2):
        assert await send(web, stopped, f"Ev2{number}") == 200
    await ended(loops)
    assert await loops.store.read(count("runs WHERE state = 'canceled'")) == 1
    assert said(slack) == ["Looking, turn 1.", ":x: Stopped."]
    assert slack.sessions == {("C1", first["ts"]): "active"}
    go(loops, 1, "Too late.")


async def test_an_app_that_may_not_stream_is_asked_again_after_an_hour(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    slack.streams = False
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    go(loops, 1, "Lit.")
    await ended(loops)
    assert (await loops.store.read(lambda tx: tx.slack.contact(TEAM))).unstreamed == "unknown_method"
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev2")
    go(loops, 2, "The gate.")
    await ended(loops)
    assert said(slack) == ["Looking, turn 1.\n\nLit.", "Looking, turn 2.\n\nThe gate."]
    assert sum(one.method == START for one in slack.calls) == 1
    slack.streams = True
    an_hour = "UPDATE slack_contacts SET unstreamed_at = unstreamed_at - 3700000000"
    await loops.store.transact(lambda tx: tx.db.execute(an_hour, {}))
    await send(web, slack.say("C1", "U1", "and the door", thread=first["ts"]), "Ev3")
    go(loops, 3, "The door.")
    await ended(loops)
    assert said(slack)[2:] == ["Looking, turn 3.\n\nThe door."]
    assert len(slack.of(START)) == 1
    assert (await loops.store.read(lambda tx: tx.slack.contact(TEAM))).unstreamed == ""


async def test_an_app_that_is_no_agent_streams_without_asking_for_slack_s_stop_button(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await loops.store.transact(lambda tx: tx.slack.scoped(TEAM, "chat:write"))
    await send(web, mention(slack, "light the lamps"), "Ev1")
    go(loops, 1, "Lit.")
    await ended(loops)
    assert said(slack) == ["Looking, turn 1.\n\nLit."]
    assert not any(one.method == "agents.sessions.setStatus" for one in slack.calls)


async def test_a_run_that_nobody_asked_for_is_told_by_an_edited_message(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    agent = {"prompt": "Light the lamps.", "preset": "codex", "mode": "full_access"}
    await loops.add("nightly", agent=agent, notify={"to": ["none"], "thread": "slack:C1"})
    await loops.fire("nightly")
    await until(loops, lambda: len(ours(slack)) == 2)
    go(loops, 1, "Lit.", ends=3)
    await ended(loops)
    assert not any(one.method == START for one in slack.calls)
    assert web is not None


async def test_a_long_turn_goes_on_in_another_stream_and_what_fits_none_in_messages(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    """The program says all of it at once: it is told in as many messages as it takes, in order, each word once."""
    await send(web, mention(slack, "light the lamps"), "Ev1")
    texts = [f"{letter * 3990}." for letter in "abcdef"]
    line = '"}}\n{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"'
    go(loops, 1, line.join([*texts, "&" * 4000]))
    await ended(loops)
    streams = [one["text"].split("\n\n")[:-1] for one in ours(slack) if one.get("streaming_state")]
    assert len(streams) > 1
    assert [text for one in streams for text in one] == ["Looking, turn 1.", *texts]
    rest = [one["text"] for one in ours(slack) if not one.get("streaming_state")]
    assert "".join(rest).replace("\n", "").count("&amp;") == 4000
    assert next(plan(one)[0] for one in ours(slack) if one.get("streaming_state")) == "Goes on below"


async def test_a_question_ends_the_stream_and_stands_below_it_with_its_buttons(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    rows = await loops.store.read(lambda tx: list(tx.db.rows("SELECT id FROM runs", {})))
    await ask(loops, rows[0]["id"])
    go(loops, 1, "I wait.")
    await ended(loops)
    answer, *late, question = ours(slack)
    assert plan(answer)[0] == "Asks for a person"
    told = "\n\n".join(one["text"].strip() for one in (answer, *late))
    assert told in {"Looking, turn 1.", "Looking, turn 1.\n\nI wait."}  # said after the run had ended, maybe too late
    assert question["text"] == "Which lamp first?"
    assert "lamp:answer:0" in str(question["blocks"])


async def test_a_thread_with_a_stream_is_kept_by_its_mode() -> None:
    assert written(Stream()) == ""
    assert json.loads(written(Stream(Mode.OPEN, "m")))["mode"] == "open"


async def test_a_message_that_may_not_be_edited_is_said_again_rather_than_lost(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: "Looking" in str(said(slack)))
    slack.end_streams("C1")
    slack.trouble = lambda method, before: (
        Refused("cant_update_message") if method == "chat.update" and not before else None
    )
    go(loops, 1, "Lit.")
    await ended(loops)
    assert said(slack) == ["Looking, turn 1.", "Looking, turn 1.\n\nLit."]
    await step(loops)
