"""Socket Mode against real sockets: acknowledged after the commit, opened again whenever one ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from loops_city import Loops
from slack_city import install, member, messenger, on_both, workspaces
from slack_day import Day, ShortPauses, told

from lamplighter.adapters.slack.socket_mode import SlackDial
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.daemon.automation_loops import AutomationLoops, Outside
from lamplighter.daemon.pipeline.slack import SlackOutside
from lamplighter.daemon.slack_sockets import SlackSockets
from lamplighter.domain.access import Role
from lamplighter.services.context import Configured
from lamplighter.services.runs import review
from lamplighter.services.slack.installing import TOPIC as SLACK
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


def outside(loops: Loops, slack: SlackServer, *, dial: bool) -> Outside:
    found = SlackOutside(workspaces(loops), SlackWebApi(slack.api), SlackDial() if dial else None)
    notices = messenger(loops, slack)
    return Outside(loops.runner, lambda _name, _rig: None, lambda: None, {}, loops.agents(), notices, slack=found)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("dial", [True, False])
async def test_a_city_opens_its_sockets_where_what_they_need_is_installed(
    loops: Loops, slack: SlackServer, *, dial: bool
) -> None:
    parts = AutomationLoops.build(
        loops.city, loops.rules, outside(loops, slack, dial=dial), store=loops.store, clock=ShortPauses(),
        ids=loops.ids, me=review.Worker("own_other", "here"),
    )  # fmt: skip
    assert parts.dispatcher.handlers.slack is not None
    names = [one.name for one in parts.children()]
    assert names == ["dispatcher", "worker", "deadlines", *(["slack"] if dial else []), "scheduler"]
    assert "slack" not in [one.name for one in parts.pipeline()]
    parts.listen(loops.wakes)
    if not dial:
        await parts.close()
        return
    running = asyncio.create_task(next(one for one in parts.children() if one.name == "slack").run())
    await install(loops, socket=True)
    await loops.store.transact(lambda tx: tx.wake(SLACK))  # installed while it runs: it is woken
    await until(slack, lambda: slack.sockets == 2)
    running.cancel()
    await asyncio.wait({running})
    await until(slack, lambda: not slack.sockets)
    await parts.close()


async def test_a_city_without_slack_has_no_part_for_it(loops: Loops) -> None:
    assert loops.parts.sockets is None
    assert loops.parts.dispatcher.handlers.slack is None
    assert "slack" not in [one.name for one in loops.parts.children()]


async def test_a_workspace_without_sockets_has_none_and_an_installation_anew_opens_others(
    loops: Loops, slack: SlackServer, sockets: SlackSockets
) -> None:
    before = slack.opened
    await install(loops, preset="codex", socket=True)
    await sockets.tick()
    await until(slack, lambda: slack.opened == before + 2 and slack.sockets == 2)
    await install(loops, preset="codex", socket=False)
    await sockets.tick()
    await until(slack, lambda: not slack.sockets)
