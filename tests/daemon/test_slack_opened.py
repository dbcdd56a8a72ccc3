"""Runs that open a thread of their own in a channel: once, told there, and steered from there."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from loops_city import Loops
from slack_city import hear, on_both
from slack_talk import count, ended, furnish, go, send, step, until

from lamplighter.testing.slack_server import Lost, Refused, SlackServer, Trouble, slack_server


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


async def fire(loops: Loops, thread: str = "slack:C1") -> str:
    agent = {"prompt": "Light the lamps.", "preset": "codex", "mode": "full_access"}
    await loops.add("nightly", agent=agent, notify={"to": ["none"], "thread": thread})
    return await loops.fire("nightly")


@on_both
async def test_a_run_opens_its_thread_is_told_there_and_steered_from_there(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    await fire(loops)
    await until(loops, lambda: len(slack.messages["C1"]) == 2)
    first, turn = slack.messages["C1"]
    assert first["text"].startswith("*nightly* began")
    assert (turn["text"], turn["thread_ts"]) == ("Looking, turn 1.", first["ts"])
    await send(web, slack.say("C1", "U1", "and the gate", thread=first["ts"]), "Ev1")
    go(loops, 1, "No oil.", ends=3)
    await until(loops, (loops.root / "turn2").exists)
    assert "and the gate" in (loops.root / "turn2").read_text()
    go(loops, 2, "The gate.", ends=3)
    await ended(loops)
    told = [one["text"] for one in slack.messages["C1"] if one.get("bot_id")][1:]
    assert told[0] == "Looking, turn 1.\n\nNo oil."
    assert "The run ended as failed" in told[1]
    assert told[2] == "Looking, turn 2.\n\nThe gate."
    assert await loops.store.read(count("slack_threads")) == 1


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize("may_look", [True, False])
async def test_a_thread_whose_opening_had_no_answer_is_opened_once_where_that_can_be_seen(
    loops: Loops, slack: SlackServer, *, may_look: bool
) -> None:
    def trouble(method: str, before: int) -> Trouble | None:
        if method == "conversations.history" and not may_look:
            return Refused("missing_scope")
        return Lost() if method == "chat.postMessage" and not before else None

    slack.trouble = trouble
    await fire(loops)
    go(loops, 1, "Lit.", ends=3)
    await until(loops, lambda: "Lit." in str(slack.messages["C1"]))
    await ended(loops)
    assert sum("began" in one for one in slack.texts("C1")) == (1 if may_look else 2)


@pytest.mark.usefixtures("web")
async def test_a_place_that_is_no_channel_is_told_and_the_run_does_not_notice(loops: Loops, slack: SlackServer) -> None:
    await fire(loops, thread="nowhere")
    await until(loops, (loops.root / "turn1").exists)
    for _ in range(3):
        await step(loops)
    items = await loops.store.read(lambda tx: tx.inbox.open_ones())
    assert "names `nowhere` for its threads" in str(items)
    go(loops, 1, "Lit.", ends=3)
    assert slack.messages["C1"] == []
