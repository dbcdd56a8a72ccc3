"""A whole conversation in Slack with a real agent program: mention, work, question, button, done."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from programs import Town, completing, only

from lamplighter.adapters.slack.socket_mode import SlackDial
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.app.secrets import box_of
from lamplighter.daemon.pipeline.slack import SlackHandlers, SlackOutside
from lamplighter.daemon.slack_sockets import SlackSockets
from lamplighter.domain.access import Role
from lamplighter.domain.city.model import Configuration
from lamplighter.services import configurations
from lamplighter.services.context import Configured
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.installing import APP, BOT, secret_name
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.services.slack.workspaces import Workspaces
from lamplighter.store.members import MemberRow
from lamplighter.store.secrets import SecretRow
from lamplighter.store.slack import Installation, Person
from lamplighter.store.tx import Tx
from lamplighter.testing.model_server import CallTool, ModelServer, Say
from lamplighter.testing.slack_server import SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_ID, BOT_TOKEN, BOT_USER, TEAM, envelope, press

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]
WITHIN_S = 330


async def install(town: Town, model: ModelServer, slack: SlackServer) -> SlackSockets:
    """The app, whose conversations work in the program's configuration, and ann; returns its sockets."""
    box, now = box_of(town.opened), town.loops.clock.now()
    town.program.furnish(town.home, model.url)
    place = Configuration(name="real", env=town.program.env(model.url, town.home), model=town.program.model)

    def put(tx: Tx) -> None:
        configurations.sync(tx, (place,), now)
        made = Installation(
            TEAM, "City", BOT_USER, BOT_ID, town.program.name, "", "full_access", 0, 1, now, "ann", '["real"]'
        )
        tx.slack.put(made)
        for which, value in ((BOT, BOT_TOKEN), (APP, APP_TOKEN)):
            sealed = box.seal(secret_name(TEAM, which), value, ())
            row = SecretRow(secret_name(TEAM, which), sealed.key_id, sealed.nonce, sealed.text, now, "ann", now, "ann")
            tx.secrets.put(row)
        tx.members.add(MemberRow("ann", Role.MEMBER, now, "owner"))
        tx.slack.put_person(Person(TEAM, "U1", "ann", "link", None, now))

    await town.store.transact(put)
    workspaces = Workspaces(town.store, StoredSecrets(town.store, box))
    parts, calls = town.loops, SlackWebApi(slack.api)
    parts.dispatcher.handlers.slack = SlackHandlers(
        town.store, parts.clock, parts.ids, parts.active, SlackOutside(workspaces, calls), "controller"
    )
    in_force = Configured(parts.active.city, parts.active.rules)
    receiver = SlackReceiver(workspaces, parts.clock, parts.ids, lambda: in_force)
    return SlackSockets(receiver, calls, SlackDial(), parts.clock)


async def tell(slack: SlackServer, kind: str, payload: dict[str, Any], number: int) -> None:
    await asyncio.to_thread(slack.deliver, kind, payload, f"env-{number}")
    await asyncio.to_thread(slack.wait_until, lambda: not slack.unacknowledged)


async def work(town: Town, holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            await town.loops.dispatcher.tick()
            await asyncio.sleep(0.05)


async def last_run(town: Town) -> str:
    rows = await town.store.read(lambda tx: tx.db.rows("SELECT id FROM runs ORDER BY id", {}))
    return str([row["id"] for row in rows][-1])


@only("claude")
async def test_a_conversation_from_the_mention_to_the_last_word(town: Town) -> None:
    with ModelServer() as model, slack_server() as slack:
        slack.messages["C1"], slack.streams = [], True
        sockets = await install(town, model, slack)
        running = asyncio.create_task(sockets.loop())
        await asyncio.to_thread(slack.wait_until, lambda: slack.sockets == 2)
        mention = slack.say("C1", "U1", f"<@{BOT_USER}> light the lamps") | {"type": "app_mention"}
        await tell(slack, "events_api", envelope(mention, "Ev1"), 1)
        run = await last_run(town)
        lit = town.home / "lit"
        model.script = (
            CallTool("Bash", {"command": f"touch {lit}", "description": "light"}),
            CallTool("automation_ask", {"run_id": run, "question": "Which lamp?", "choices": ["left", "right"]}),
            Say("I wait."),
        )
        await work(town, lambda: "Which lamp?" in str(slack.messages["C1"][1:]))
        [question] = [one for one in slack.messages["C1"] if one["text"] == "Which lamp?"]
        assert lit.exists()
        row = next(one for one in question["blocks"] if one["type"] == "actions")
        pressed = row["elements"][1] | {"block_id": row["block_id"], "action_ts": "1.0"}
        await tell(slack, "interactive", press(pressed, question, "C1", "U1"), 2)
        made = await last_run(town)
        assert made != run
        model.by_text = {f"run_id: {made}": (Say("Lost."), Say("Lost."), completing(made), Say("**Lit.**"))}
        await work(town, lambda: "*Lit.*" in slack.texts("C1")[-1] and not slack.streaming("C1"))
        running.cancel()
        await asyncio.wait({running})
        told = [one for one in model.asked if "right" in str(one.body["messages"][-1])]
    last = await town.get(made)
    assert (last.state, last.continues) == ("succeeded", run)
    assert told
    assert "Answered by ann: right" in str(question["blocks"])
    assert all(one["thread_ts"] == mention["ts"] for one in slack.messages["C1"][1:])
    assert slack.of("chat.startStream")
    assert not slack.messages["C1"][0].get("reactions")
    assert str(lit) not in str(slack.messages), "what a tool is given is told nobody"
    assert town.processes() == set()
