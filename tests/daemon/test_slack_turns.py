"""What a thread shows of a turn, what it asks, and where it works: answered and chosen in place."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from loops_city import Loops
from slack_city import hear, member, on_both
from slack_talk import button, count, ended, furnish, go, mention, pressed, send, step, until
from test_questions import answer, ask

from lamplighter.daemon.pipeline.slack import MOST_AT_ONCE
from lamplighter.domain.access import Role
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.runs.target import Selected
from lamplighter.domain.slack.markdown import shown
from lamplighter.services import configurations
from lamplighter.services.slack.calling import call
from lamplighter.testing.slack_server import Broken, SlackServer, Slow, slack_server
from lamplighter.testing.slack_shapes import TEAM

PLACES = ("docs", "web")
choosing = pytest.mark.parametrize("web", [PLACES], indirect=True)


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
async def web(
    loops: Loops, slack: SlackServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[httpx2.AsyncClient]:
    """With `choosing`, its conversations work in one of two places."""
    places: tuple[str, ...] = getattr(request, "param", ())
    declared = tuple(Configuration(name=name, description=f"All about {name}.") for name in places)
    await loops.store.transact(configurations.sync, declared, loops.clock.now())
    await furnish(loops, monkeypatch, *places)
    async with hear(loops, slack) as client:
        yield client


async def last_run(loops: Loops) -> str:
    rows = await loops.store.read(lambda tx: list(tx.db.rows("SELECT id FROM runs ORDER BY id", {})))
    return str(rows[-1]["id"])


def ours(slack: SlackServer) -> list[dict[str, Any]]:
    return [one for one in slack.messages["C1"] if one.get("bot_id")]


async def test_while_it_works_a_message_shows_what_kind_of_thing_is_done_and_a_way_to_stop_it(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    (loops.root / "tools").write_text("command_execution file_change command_execution")
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: ours(slack) and "runs commands" in str(ours(slack)[0]["blocks"]))
    [message] = ours(slack)
    assert message["text"] == "Looking, turn 1."
    assert "changes files, runs commands" in message["blocks"][1]["elements"][0]["text"]
    assert "secret-input" not in str(slack.messages)
    assert await pressed(web, button(message, "stop"), message) == 200
    await ended(loops)
    assert await loops.store.read(count("runs WHERE state = 'canceled'")) == 1
    assert [one["text"] for one in ours(slack)] == ["Looking, turn 1.", ":x: Stopped."]
    assert ours(slack)[0]["blocks"] == []
    go(loops, 1, "Too late.")


async def test_a_message_that_only_showed_what_was_done_goes_when_nothing_was_said(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    (loops.root / "silent").touch()
    (loops.root / "tools").write_text("command_execution")
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, lambda: ours(slack))
    assert ours(slack)[0]["text"] == "runs commands"
    go(loops, 1, "")
    await ended(loops)
    assert ours(slack) == []


@on_both
async def test_a_question_is_answered_by_its_button_in_the_thread_and_the_thread_goes_on(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    await until(loops, (loops.root / "turn1").exists)
    await ask(loops, await last_run(loops))
    go(loops, 1, "I wait.")
    await ended(loops)
    question = ours(slack)[-1]
    assert question["text"] == "Which lamp first?"
    assert [one["text"]["text"] for one in question["blocks"][1]["elements"]] == ["the left", "the right", "Claim"]
    assert await pressed(web, button(question, "answer:1"), question, user="U3") == 200
    assert await loops.store.read(count("runs")) == 1
    for _ in range(2):
        assert await pressed(web, button(question, "answer:1"), question) == 200
    await until(loops, (loops.root / "turn2").exists)
    assert "the right" in (loops.root / "turn2").read_text()
    go(loops, 2, "The right one burns.")
    await ended(loops)
    assert ours(slack)[-1]["text"] == "Looking, turn 2.\n\nThe right one burns."
    assert "Answered by ann: the right" in str(question["blocks"])
    assert "answer" not in str(question["blocks"][1:]).replace("Answered", "")


async def test_what_is_answered_elsewhere_goes_on_in_the_thread(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, (loops.root / "turn1").exists)
    run = await last_run(loops)
    await ask(loops, run)
    go(loops, 1, "I wait.")
    await ended(loops)
    await answer(loops, run)
    go(loops, 2, "The left one burns.")
    await ended(loops)
    assert ours(slack)[-1]["text"] == "Looking, turn 2.\n\nThe left one burns."
    assert ours(slack)[-1]["thread_ts"] == first["ts"]


async def test_a_thread_whose_follower_was_given_up_is_told_on_with_the_next_message(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "light the lamps")
    await send(web, first, "Ev1")
    await until(loops, lambda: len(ours(slack)) == 1)
    give_up = "UPDATE outbox SET state = 'failed' WHERE kind = 'slack_follow'"
    await loops.store.transact(lambda tx: tx.db.execute(give_up, {}))
    go(loops, 1, "Lit.")
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev2")
    go(loops, 2, "The gate too.")
    await ended(loops)
    assert [one["text"] for one in ours(slack)] == ["Looking, turn 1.\n\nLit.", "Looking, turn 2.\n\nThe gate too."]


async def test_an_hour_without_slack_loses_nothing_of_a_conversation(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "light the lamps"), "Ev1")
    slack.trouble = lambda _method, _before: Broken(502)
    go(loops, 1, "Lit.")
    for _ in range(30):  # tries of an hour
        await step(loops)
    assert ours(slack) == []
    slack.trouble = lambda _method, _before: None
    await ended(loops)
    assert [one["text"] for one in ours(slack)] == ["Looking, turn 1.\n\nLit."]


async def test_a_slack_that_never_answers_delays_no_run_and_no_stop(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    begun: list[str] = []

    def trouble(method: str, _before: int) -> Slow:
        begun.append(method)
        return Slow(60)

    slack.trouble = trouble
    ctx = loops.context
    for number in range(100):  # more than are handled at once
        args = {"channel": "C1", "timestamp": str(number), "name": "eyes"}
        await loops.store.transact(lambda tx, args=args: call(tx, TEAM, "reactions.add", args, ctx))
    await loops.add("nightly", exec="true")
    dispatcher = loops.parts.dispatcher
    loop = asyncio.create_task(dispatcher.loop())
    await loops.until(lambda: asyncio.to_thread(lambda: bool(begun)))
    run = await loops.fire("nightly")

    async def over() -> bool:
        return (await loops.get(run)).ended

    await loops.until(over)
    assert 0 < len(begun) <= MOST_AT_ONCE
    assert slack.calls == []
    await dispatcher.stop()
    loop.cancel()
    left = "outbox WHERE kind = 'slack_call' AND state = 'pending' AND attempts = 0"
    assert await loops.store.read(count(left)) == 100, "they were cut short, and no call came to its time limit"
    assert web is not None


@choosing
async def test_a_model_chooses_where_a_conversation_works(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    loops.selector.answer = Selected("web", "It is about a page.")
    await send(web, mention(slack, "mend the page"), "Ev1")
    go(loops, 1, "Mended.")
    await ended(loops)
    [run] = await loops.store.read(lambda tx: tx.runs.page())
    assert (run.state, run.configuration) == ("succeeded", "web")
    assert [one.name for one in loops.selector.asked[0]] == list(PLACES)
    assert loops.selector.told[0]["summary"]["description"] == "mend the page"


@choosing
@on_both
async def test_where_no_model_can_choose_who_began_chooses_in_the_thread(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await member(loops, "bo", Role.ADMIN, "U2")
    await send(web, mention(slack, "mend the page"), "Ev1")
    await ended(loops)
    [asked] = ours(slack)
    assert "<@U1> may choose" in asked["text"]
    menu = button(asked, "place")
    assert [(one["value"], one["description"]["text"]) for one in menu["options"]] == [
        ("docs", "All about docs."),
        ("web", "All about web."),
    ]
    chosen = {"selected_option": menu["options"][1]}
    await pressed(web, button(asked, "place", **chosen), asked, user="U2")
    await pressed(web, button(asked, "place", selected_option={"value": "elsewhere"}, action_ts="2.0"), asked)
    await ended(loops)
    assert sorted(one["user"] for one in slack.ephemeral) == ["U1", "U2"]
    assert await loops.store.read(count("runs")) == 1
    for _ in range(2):
        await pressed(web, button(asked, "place", **chosen, action_ts="3.0"), asked)
    go(loops, 1, "Mended.")
    await ended(loops)
    found = await loops.store.read(lambda tx: tx.runs.page())
    assert sorted((one.state, one.configuration) for one in found) == [("failed", None), ("succeeded", "web")]
    prompt = (loops.root / "turn1").read_text()
    assert "mend the page" in prompt
    assert "Earlier work" not in prompt
    assert asked["text"] == "It works in *web*, as ann chose."
    assert ours(slack)[-1]["text"] == "Looking, turn 1.\n\nMended."
    assert await loops.store.read(count("inbox_items WHERE state = 'open'")) == 0


@choosing
async def test_it_is_too_late_to_choose_after_a_while(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await send(web, mention(slack, "mend the page"), "Ev1")
    await ended(loops)
    [asked] = ours(slack)
    long_ago = "UPDATE runs SET ended_at = ended_at - 1000000000"
    await loops.store.transact(lambda tx: tx.db.execute(long_ago, {}))
    menu = button(asked, "place")
    await pressed(web, menu | {"selected_option": menu["options"][0]}, asked)
    await ended(loops)
    assert "too late" in slack.ephemeral[0]["text"]
    assert await loops.store.read(count("runs")) == 1


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("# Done\n- **two** lamps\n* _one_ gate", "*Done*\n• *two* lamps\n• _one_ gate"),
        ("[a page](https://a.example/b?c=1&d=2)", "<https://a.example/b?c=1&amp;d=2|a page>"),
        ("[bank.example](https://evil.example/)", "bank.example (https://evil.example/)"),
        ("```python\nif a < b: **x**\n```", "```\nif a &lt; b: **x**\n```"),
        ("`a**b**c` and ~~gone~~", "`a**b**c` and ~gone~"),
        ("<!channel> @here <@U1> [x](javascript:y)", "&lt;!channel&gt; @here &lt;@U1&gt; [x](javascript:y)"),
        ("2 ** 3 ** 4, snake__case__name", "2 ** 3 ** 4, snake__case__name"),
        ("```\nleft open", "```\nleft open"),
    ],
)
def test_markdown_is_shown_as_slack_does_it_and_can_mention_nobody(text: str, there: str) -> None:
    assert shown(text) == there
