"""Socket Mode against real sockets: acknowledged after the commit, opened again whenever one ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from loops_city import Loops
from slack_city import install, member, on_both
from slack_day import Day, ShortPauses, told

from lamplighter.adapters.slack.socket_mode import SlackDial
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.daemon.slack_sockets import SlackSockets
from lamplighter.domain.access import Role
from lamplighter.services.context import Configured
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.store.slack import Contact
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import SlackServer, slack_server
from lamplighter.testing.slack_shapes import BOT_USER, TEAM, envelope

CUTS = 12


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
async def sockets(loops: Loops, slack: SlackServer) -> AsyncIterator[SlackSockets]:
    found = await install(loops, preset="codex", socket=True)
    await member(loops, "ann", Role.ADMIN, "U1")
    configured = Configured(loops.city, loops.rules)
    receiver = SlackReceiver(found, loops.clock, loops.ids, lambda: configured)
    made = SlackSockets(receiver, SlackWebApi(slack.api), SlackDial(), ShortPauses())
    running = asyncio.create_task(made.loop())
    await until(slack, lambda: slack.opened == 2)
    yield made
    running.cancel()
    await asyncio.wait({running})


async def until(slack: SlackServer, holds: Any) -> None:
    await asyncio.to_thread(slack.wait_until, holds, within=180)


def runs(tx: Tx) -> int:
    row = tx.db.row("SELECT count(*) AS n FROM runs", {})
    assert row is not None
    return int(row["n"])


async def contact(loops: Loops) -> Contact:
    [found] = await loops.store.read(lambda tx: tx.slack.contacts())
    return found


async def until_kept(loops: Loops, holds: Callable[[Contact], bool]) -> None:
    async def looked() -> bool:
        return holds(await contact(loops))

    await loops.until(looked)


async def tell(slack: SlackServer, event: dict[str, Any], number: str) -> None:
    await asyncio.to_thread(slack.push, "events_api", envelope(event, f"Ev{number}"), f"env-{number}")


@on_both
async def test_what_comes_over_a_socket_is_committed_before_it_is_acknowledged(
    loops: Loops, slack: SlackServer, sockets: SlackSockets
) -> None:
    said = slack.say("C1", "U1", f"<@{BOT_USER}> light the lamps") | {"type": "app_mention"}
    await tell(slack, said, "1")
    await until(slack, lambda: slack.acknowledged == ["env-1"])
    assert await loops.store.read(runs) == 1
    await tell(slack, said, "1")  # once more, as after an acknowledgement that was lost
    await until(slack, lambda: slack.acknowledged == ["env-1", "env-1"])
    assert await loops.store.read(runs) == 1
    await asyncio.to_thread(slack.push, "events_api", {"type": "event_callback", "event": {}, "team_id": "T9"}, "env-2")
    await until(slack, lambda: slack.acknowledged[-1] == "env-2")
    assert sockets.receiver is not None


async def test_sockets_that_are_cut_or_asked_to_leave_are_opened_again(
    loops: Loops, slack: SlackServer, sockets: SlackSockets
) -> None:
    await asyncio.to_thread(slack.ask_to_reconnect)
    await until(slack, lambda: slack.opened == 3 and slack.sockets == 2)
    for number in range(3):
        before = slack.opened
        await asyncio.to_thread(slack.cut)
        await until(slack, lambda before=before: slack.opened == before + 2 and slack.sockets == 2)
        said = slack.say("C1", "U1", f"<@{BOT_USER}> {number}") | {"type": "app_mention"}
        await tell(slack, said, str(number))
        await until(slack, lambda number=number: f"env-{number}" in slack.acknowledged)
    assert await loops.store.read(runs) == 3
    await until_kept(loops, lambda one: one.sockets == 2 and one.heard_at is not None)
    assert "The socket to Slack is closed" in (await contact(loops)).error
    await loops.store.transact(lambda tx: tx.slack.remove(TEAM))
    await sockets.tick()
    await until(slack, lambda: not slack.sockets)


async def test_a_socket_that_ended_by_a_bug_is_opened_again(
    loops: Loops, slack: SlackServer, sockets: SlackSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: object, _url: str, _hear: object) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(SlackDial, "__call__", broken)
        await asyncio.to_thread(slack.cut)
        await until(slack, lambda: not slack.sockets)

        async def over() -> bool:
            return all(one.done() for one in sockets._open.values())

        await loops.until(over)
    await sockets.tick()
    await until(slack, lambda: slack.sockets == 2)


@on_both
async def test_sockets_that_are_cut_all_day_lose_and_repeat_nothing(
    loops: Loops, slack: SlackServer, sockets: SlackSockets
) -> None:
    day = Day(slack)
    await day.pass_by(cuts=CUTS)
    runs, said = await told(loops.store)
    assert runs == day.mentions
    assert sorted(said) == sorted(day.replies)
    assert sockets.receiver is not None
