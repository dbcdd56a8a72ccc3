"""A city with an app in a Slack on this machine."""

import json
from collections.abc import Sequence
from dataclasses import replace

import httpx2
import pytest
from loops_city import CITY, Loops
from starlette.applications import Starlette

from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.adapters.notices.messenger import CityMessenger
from lamplighter.adapters.slack.attachments import Attachments
from lamplighter.adapters.slack.notices import SlackNotices
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.daemon.inbox import InboxKeeper
from lamplighter.daemon.pipeline.slack import SlackHandlers, SlackOutside
from lamplighter.domain.access import Role
from lamplighter.domain.city.sections import Destination, Notifications
from lamplighter.kit.clock import SystemClock
from lamplighter.services.context import Configured
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.installing import APP, BOT, SIGNING, secret_name
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.services.slack.workspaces import Workspaces
from lamplighter.store.members import MemberRow
from lamplighter.store.secrets import SecretRow
from lamplighter.store.slack import Installation, Person
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import SlackServer
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_ID, BOT_TOKEN, BOT_USER, SIGNING_SECRET, TEAM
from lamplighter.web.slack import routes

on_both = pytest.mark.parametrize("loops", ["sqlite", "postgres"], indirect=True)
PUBLIC = "https://lamp.example.org"
OPS = Destination(name="ops", kind="slack_channel", channel="C1")


def workspaces(loops: Loops) -> Workspaces:
    (loops.root / ".gc").mkdir(exist_ok=True)
    return Workspaces(loops.store, StoredSecrets(loops.store, KeyedBox(loops.root / ".gc", {}, CITY)))


async def install(loops: Loops, *, preset: str = "", socket: bool = False, places: Sequence[str] = ()) -> Workspaces:
    found, now = workspaces(loops), loops.clock.now()
    values = {BOT: BOT_TOKEN, SIGNING: SIGNING_SECRET} | ({APP: APP_TOKEN} if socket else {})
    rows = []
    for which, value in values.items():
        name = secret_name(TEAM, which)
        sealed = found.secrets.box.seal(name, value, ())
        rows.append(SecretRow(name, sealed.key_id, sealed.nonce, sealed.text, now, "ann", now, "ann"))

    def put(tx: Tx) -> None:
        made = Installation(TEAM, "City", BOT_USER, BOT_ID, preset, "", "full_access", 1, int(socket), now, "ann")
        tx.slack.put(replace(made, configurations=json.dumps(places)))
        for row in rows:
            tx.secrets.put(row)

    await loops.store.transact(put)
    return found


def messenger(loops: Loops, slack: SlackServer, *, seconds: float = 10.0) -> CityMessenger:
    notices = SlackNotices(SlackWebApi(slack.api, seconds), workspaces(loops).for_notices, lambda: PUBLIC)
    return CityMessenger(loops.root, SystemClock(), dict, {}, slack=notices)


def declare(loops: Loops, slack: SlackServer, *destinations: Destination, slack_channel: str = "") -> InboxKeeper:
    """The city with these destinations, as if a reload had brought them into force."""
    city = replace(loops.city, notifications=Notifications(destinations=destinations, slack_channel=slack_channel))
    loops.parts.active.swap(city, loops.rules)
    sender = loops.parts.dispatcher.handlers.notices
    loops.parts.dispatcher.handlers.notices = replace(sender, messenger=messenger(loops, slack))
    return loops.parts.inbox


def hear(loops: Loops, slack: SlackServer) -> "httpx2.AsyncClient":
    """The routes that Slack calls, and the outbox with its Slack."""
    found = workspaces(loops)
    parts = loops.parts
    configured = Configured(loops.city, loops.rules)
    receiver = SlackReceiver(found, loops.clock, loops.ids, lambda: configured)
    outside = SlackOutside(
        found, SlackWebApi(slack.api), keep=Attachments(loops.root / ".gc/slack", SystemClock()).keep
    )
    parts.dispatcher.handlers.slack = SlackHandlers(
        loops.store, loops.clock, loops.ids, parts.active, outside, "controller"
    )
    app = Starlette(routes=routes(receiver, loops.clock.monotonic))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://city")


async def member(loops: Loops, name: str, role: Role, person: str) -> None:
    def put(tx: Tx) -> None:
        tx.members.add(MemberRow(name, role, loops.clock.now(), "ann"))
        tx.slack.put_person(Person(TEAM, person, name, "link", None, loops.clock.now()))

    await loops.store.transact(put)
