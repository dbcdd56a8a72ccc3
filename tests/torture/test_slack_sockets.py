"""A day of Socket Mode in short: two hundred sockets are cut, and what comes over them is taken up once each."""

import asyncio
import os
from pathlib import Path

from loops_city import Loops
from slack_city import install, member
from slack_day import Day, ShortPauses, told

from lamplighter.adapters.slack.socket_mode import SlackDial
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.daemon.slack_sockets import SlackSockets
from lamplighter.domain.access import Role
from lamplighter.kit.clock import SystemClock
from lamplighter.services.context import Configured
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.store.owners import Owner
from lamplighter.store.url import Place
from lamplighter.testing.slack_server import slack_server

CUTS = 200


async def test_two_hundred_cut_sockets_lose_nothing(place: Place, tmp_path: Path, counts: dict[str, object]) -> None:
    loops = Loops(place, tmp_path, SystemClock())
    await loops.store.transact(lambda tx: tx.cities.ensure("loops", loops.clock.now()))
    owner = Owner("own_first", "controller", "here", os.getpid(), loops.clock.now())
    await loops.store.transact(lambda tx: tx.owners.register(owner))
    found = await install(loops, preset="codex", socket=True)
    await member(loops, "ann", Role.ADMIN, "U1")
    configured = Configured(loops.city, loops.rules)
    receiver = SlackReceiver(found, loops.clock, loops.ids, lambda: configured)
    with slack_server() as slack:
        slack.messages["C1"] = []
        sockets = SlackSockets(receiver, SlackWebApi(slack.api), SlackDial(), ShortPauses())
        running = asyncio.create_task(sockets.loop())
        day = Day(slack)
        try:
            await day.pass_by(cuts=CUTS)
        finally:
            running.cancel()
            await asyncio.wait({running})
        counts |= {"cut": day.cut, "opened": slack.opened, "mentions": day.mentions, "replies": len(day.replies)}
    runs, said = await told(loops.store)
    await loops.parts.close()
    await loops.store.close()
    assert runs == day.mentions
    assert sorted(said) == sorted(day.replies)
