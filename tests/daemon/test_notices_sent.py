"""Notices leave the city: webhooks over real HTTP, checked by the library of Standard Webhooks, and real commands."""

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loops_city import Loops
from standardwebhooks import Webhook

from lamplighter.adapters.notices.messenger import CityMessenger
from lamplighter.adapters.notices.webhook import signed
from lamplighter.daemon.inbox import InboxKeeper
from lamplighter.daemon.pipeline.under_way import Places
from lamplighter.domain.city.sections import Destination, Notifications
from lamplighter.domain.inbox.items import Kind
from lamplighter.domain.inbox.notices import Notice, NoticeState
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Unavailable
from lamplighter.ports.messenger import Gone, Message, NotTaken
from lamplighter.services.automations import editing
from lamplighter.services.context import acting
from lamplighter.services.notices import TryDestination, send_for_trial
from lamplighter.services.sessions import Ended, record
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.subscriptions import Subscription
from lamplighter.testing.webhooks import Receiver, receiving

SECRET = f"whsec_{base64.b64encode(b'thirty-two bytes of a good secret').decode()}"
ENV = {"TEAM_SECRET": SECRET, "PATH": "/usr/bin:/bin"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def webhook(receiver: Receiver, **keys: str) -> Destination:
    url = f"{receiver.url}/hooks/1"
    return Destination(name="team", kind="webhook", url=url, signing_env="TEAM_SECRET", allow_private=True, **keys)


def messenger(root: Path) -> CityMessenger:
    return CityMessenger(root, SystemClock(), lambda: ENV, ENV)


def message(**body: str) -> Message:
    now = SystemClock().now()
    return Message("ntc_1", "opened", now, "town", {"sentence": "nightly failed.", "subject": "nightly"} | body)


def declare(loops: Loops, *destinations: Destination) -> InboxKeeper:
    """The city with these destinations, as if a reload had brought them into force."""
    city = replace(loops.city, notifications=Notifications(destinations=destinations))
    loops.parts.active.swap(city, loops.rules)
    sender = loops.parts.dispatcher.handlers.notices
    loops.parts.dispatcher.handlers.notices = replace(sender, messenger=messenger(loops.root))
    return loops.parts.inbox


async def notices(loops: Loops) -> list[Notice]:
    return await loops.store.read(lambda tx: tx.notices.page())


async def test_a_webhook_is_signed_as_its_standard_says_and_carries_a_cloud_event(
    tmp_path: Path, receiver: Receiver
) -> None:
    assert await messenger(tmp_path).send(webhook(receiver), message(odd="käse\ud800")) == {"status": 204}
    [got] = receiver.received
    told = Webhook(SECRET).verify(got.body, got.headers)
    assert json.loads(got.body) == told
    assert (told["specversion"], told["id"], told["type"]) == ("1.0", "ntc_1", "lamplighter.notice.opened")
    assert (told["source"], told["subject"], told["datacontenttype"]) == ("/cities/town", "nightly", "application/json")
    assert told["data"]["sentence"] == "nightly failed."
    assert (got.path, got.headers["content-type"]) == ("/hooks/1", "application/cloudevents+json")
    assert got.headers["webhook-id"] == "ntc_1"


def test_the_signature_is_the_one_the_library_makes() -> None:
    now = SystemClock().now()
    content, headers = signed(message(), [base64.b64decode(SECRET.removeprefix("whsec_"))], int(now.timestamp()))
    assert headers["webhook-signature"] == Webhook(SECRET).sign("ntc_1", now, content.decode())


@pytest.mark.parametrize("status", [301, 400, 401, 410, 429, 500, 503])
async def test_an_answer_that_is_no_success_is_a_refusal(tmp_path: Path, receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(NotTaken, match=f"team answered {status}"):
        await messenger(tmp_path).send(webhook(receiver), message())


async def test_no_answer_leaves_a_doubt_and_no_listener_leaves_none(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 0
    with pytest.raises(Unavailable, match="gave no answer"):
        await messenger(tmp_path).send(webhook(receiver), message())
    nobody = replace(webhook(receiver), url="http://127.0.0.1:1/")
    with pytest.raises(NotTaken, match="cannot be reached"):
        await messenger(tmp_path).send(nobody, message())


@pytest.mark.parametrize(
    ("secret", "told"), [("", "is not set"), ("whsec_no!", "is not base64"), ("whsec_", "not base64")]
)
async def test_nothing_is_sent_without_a_usable_secret(
    tmp_path: Path, receiver: Receiver, secret: str, told: str
) -> None:
    sender = CityMessenger(tmp_path, SystemClock(), lambda: ENV, {"TEAM_SECRET": secret})
    with pytest.raises(NotTaken, match=told):
        await sender.send(webhook(receiver), message())
    assert receiver.received == []


async def test_a_command_gets_the_notice_as_json_and_in_its_environment(tmp_path: Path) -> None:
    told = Destination(name="desk", kind="command", command='cat > told.json; echo "$LAMP_NOTICE_TEXT" > told.txt')
    assert await messenger(tmp_path).send(told, message(fix="lamp run retry run_1")) == {"exit": 0}
    found = json.loads((tmp_path / "told.json").read_text())
    assert (found["id"], found["what"], found["city"], found["fix"]) == (
        "ntc_1",
        "opened",
        "town",
        "lamp run retry run_1",
    )
    assert (tmp_path / "told.txt").read_text() == "nightly failed.\n"


async def test_a_command_that_fails_is_a_refusal_with_what_it_said(tmp_path: Path) -> None:
    told = Destination(name="desk", kind="command", command="echo no paper >&2; exit 3")
    with pytest.raises(NotTaken, match="ended with status 3 and said: no paper"):
        await messenger(tmp_path).send(told, message())


async def test_a_failing_run_is_told_once_and_its_recovery_too(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, webhook(receiver))
    await loops.add("nightly", exec="test -e good || { echo 'no oil' >&2; exit 1; }")
    await loops.work("nightly")
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    await loops.work("nightly")
    await keeper.sweep()
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    [first] = receiver.received
    told = Webhook(SECRET).verify(first.body, first.headers)
    assert told["data"]["sentence"] == "nightly failed (exit 1): no oil."
    (loops.root / "good").touch()
    await loops.work("nightly")
    await keeper.sweep()
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    [_, second] = receiver.received
    assert Webhook(SECRET).verify(second.body, second.headers)["type"] == "lamplighter.notice.recovered"
    assert {one.state for one in await notices(loops)} == {NoticeState.SENT}


async def test_a_paused_city_goes_on_to_tell_what_needs_a_person(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, webhook(receiver))
    await loops.add("nightly", exec="exit 1")
    await loops.add("later", exec="true")
    await loops.work("nightly")
    await keeper.tell()
    run = await loops.fire("later")
    await loops.store.transact(editing.pause, ctx=loops.context)
    await loops.parts.dispatcher.drain()
    assert len(receiver.received) == 1
    assert await state(loops, run) is RunState.READY
    assert loops.parts.dispatcher.until_next() > timedelta(seconds=5), "nobody looks again and again"
    await loops.store.transact(editing.resume, ctx=loops.context)
    await loops.parts.dispatcher.drain()
    assert await state(loops, run) is RunState.SUCCEEDED


async def state(loops: Loops, run: str) -> RunState | None:
    found = await loops.store.read(lambda tx: tx.runs.get(run))
    return None if found is None else found.state


async def test_a_refused_notice_is_tried_again_with_the_same_id(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, webhook(receiver))
    receiver.status = 503
    await loops.add("nightly", exec="exit 1")
    await loops.work("nightly")
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    [waiting] = await notices(loops)
    assert (waiting.state, waiting.attempts, waiting.last_error) == (NoticeState.PENDING, 1, "team answered 503.")
    receiver.status = 200
    await loops.store.transact(_due_now)
    await loops.parts.dispatcher.drain()
    assert [one.headers["webhook-id"] for one in receiver.received] == [waiting.id] * 2
    [sent] = await notices(loops)
    assert (sent.state, sent.attempts, sent.last_error) == (NoticeState.SENT, 2, "")


async def test_a_destination_that_is_gone_is_told_and_nothing_else_stops(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, webhook(receiver))
    await loops.add("nightly", exec="exit 1")
    await loops.work("nightly")
    await keeper.tell()
    declare(loops)
    await loops.parts.dispatcher.drain()
    [failed] = await notices(loops)
    assert (failed.state, failed.last_error) == (NoticeState.FAILED, "There is no destination team any more.")
    found = await loops.store.read(lambda tx: tx.inbox.open_ones())
    assert {one.kind for one in found} == {Kind.FAILED, Kind.DESTINATION}
    await keeper.sweep()
    found = await loops.store.read(lambda tx: tx.inbox.open_ones())
    assert {one.kind for one in found} == {Kind.FAILED}
    assert receiver.received == []


async def test_a_receiver_that_is_gone_is_disabled_until_it_takes_one_or_leads_elsewhere(
    loops: Loops, receiver: Receiver
) -> None:
    keeper = declare(loops, webhook(receiver))
    receiver.status = 410
    for name in ("first", "second"):
        await loops.add(name, exec="exit 1")
        await loops.work(name)
        await keeper.tell()
        await loops.parts.dispatcher.drain()
    assert len(receiver.received) == 1
    found = {one.body["subject"]: one for one in await notices(loops)}
    assert {one.state for one in found.values()} == {NoticeState.FAILED}
    assert found["first"].last_error == "team answered 410, and is disabled."
    assert "lamp notify test team" in found["second"].last_error
    [item] = [one for one in await loops.store.read(lambda tx: tx.inbox.open_ones()) if one.kind is Kind.DESTINATION]
    assert item.facts["error"] == "team answered 410, and is disabled."
    receiver.status = 204
    declare(loops, replace(webhook(receiver), url=f"{receiver.url}/hooks/2"))
    await keeper.sweep()
    await loops.add("third", exec="exit 1")
    await loops.work("third")
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    assert receiver.received[-1].path == "/hooks/2"
    assert await loops.store.read(lambda tx: tx.disabled_destinations.all()) == []
    items = await loops.store.read(lambda tx: tx.inbox.open_ones())
    assert Kind.DESTINATION not in {one.kind for one in items}


async def test_a_trial_that_succeeds_enables_a_destination_and_one_that_is_gone_disables_it(
    loops: Loops, receiver: Receiver
) -> None:
    declare(loops, webhook(receiver))
    host: Any = SimpleNamespace(
        store=loops.store, messenger=messenger(loops.root), roster=SimpleNamespace(city=loops.parts.active.city)
    )
    ctx = acting("tester", loops.clock.now(), loops.ids)
    receiver.status = 410
    with pytest.raises(Gone):
        await send_for_trial(host, TryDestination("team"), ctx)
    [disabled] = await loops.store.read(lambda tx: tx.disabled_destinations.all())
    assert disabled.why == "team answered 410, and is disabled."
    receiver.status = 204
    await send_for_trial(host, TryDestination("team"), ctx)
    assert await loops.store.read(lambda tx: tx.disabled_destinations.all()) == []
    assert await loops.store.read(lambda tx: tx.inbox.open_ones()) == []
    assert await loops.store.read(lambda tx: tx.notices.last_answer("team")) == "204"


async def test_a_notice_whose_answer_was_lost_has_its_doubt_on_record(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, webhook(receiver))
    receiver.status = 0
    await loops.add("nightly", exec="exit 1")
    await loops.work("nightly")
    await keeper.tell()
    await loops.parts.dispatcher.drain()
    [waiting] = await notices(loops)
    assert (waiting.state, waiting.attempts, waiting.doubts) == (NoticeState.PENDING, 1, 1)
    receiver.status = 204
    await loops.store.transact(_due_now)
    await loops.parts.dispatcher.drain()
    [sent] = await notices(loops)
    assert (sent.state, sent.doubts, sent.answer) == (NoticeState.SENT, 1, "204")
    assert len({one.headers["webhook-id"] for one in receiver.received}) == 1
    assert len(receiver.received) == 2


async def test_the_end_of_a_session_is_told_to_each_subscriber_and_only_the_rest_is_tried_again(
    loops: Loops, receiver: Receiver
) -> None:
    """Case 31: three subscriptions, of which one fails at first."""
    places = [replace(webhook(receiver), name=name, url=f"{receiver.url}/{name}") for name in ("ann", "ben", "cat")]
    declare(loops, *places)
    receiver.judge = lambda got: 503 if got.path == "/ben" else 204
    now = loops.clock.now()
    row = SessionRow("ses_1", "gc-town-mayor", "mayor", None, "fake", "here", 7, now)
    await loops.store.transact(lambda tx: tx.sessions.add(row))
    for one in places:
        await loops.store.transact(lambda tx, one=one: tx.subscriptions.put(Subscription("ses_1", one.name, "me", now)))
    ended = Ended(SessionName("gc-town-mayor"), "ses_1", SessionEnd(now, "idle timeout", 0), wished=True)
    await loops.store.transact(record, [ended])
    await loops.parts.dispatcher.drain()
    assert sorted(one.path for one in receiver.received) == ["/ann", "/ben", "/cat"]
    assert await _told_ones(loops) == ["ann", "cat"]
    receiver.judge = None
    await loops.store.transact(_due_now)
    await loops.parts.dispatcher.drain()
    assert [one.path for one in receiver.received[3:]] == ["/ben"]
    assert await _told_ones(loops) == ["ann", "ben", "cat"]
    told = Webhook(SECRET).verify(receiver.received[3].body, receiver.received[3].headers)
    assert (told["type"], told["data"]["agent"]) == ("lamplighter.notice.session", "mayor")


async def _told_ones(loops: Loops) -> list[str]:
    found = await loops.store.read(lambda tx: tx.subscriptions.of("ses_1"))
    return [one.destination for one in found if one.notified_at is not None]


def hanging(loops: Loops) -> Destination:
    """Takes each notice and never comes to an end; says so in a file."""
    return Destination(name="stuck", kind="command", command=f"echo began >> {loops.root}/stuck.txt; sleep 300")


async def test_a_hanging_destination_delays_only_its_own_notices_and_no_stop(loops: Loops, receiver: Receiver) -> None:
    keeper = declare(loops, hanging(loops), webhook(receiver))
    dispatcher = loops.parts.dispatcher
    for number in range(7):  # more than there are places for one destination
        await loops.add(f"nightly-{number}", exec="exit 1")
        await loops.fire(f"nightly-{number}")
    tick = asyncio.create_task(dispatcher.loop())
    await loops.until(lambda: _told(loops, keeper, 14))
    await loops.until(lambda: _answer(len(receiver.received) == 7))
    await loops.until(lambda: _answer(_lines(loops.root / "stuck.txt") == 5))
    run = await loops.fire("nightly-0")
    await loops.until(lambda: _ended(loops, run))
    found = [one for one in await notices(loops) if one.destination == "stuck"]
    assert {(one.state, one.attempts) for one in found} == {(NoticeState.PENDING, 0)}
    async with asyncio.timeout(25):  # a command may take 30 s
        await dispatcher.stop()
    tick.cancel()
    assert loops.sleepers() == []
    found = [one for one in await notices(loops) if one.destination == "stuck"]
    assert {(one.state, one.attempts) for one in found} == {(NoticeState.PENDING, 0)}


async def _told(loops: Loops, keeper: InboxKeeper, count: int) -> bool:
    await keeper.tell()
    return len(await notices(loops)) == count


async def _answer(value: bool) -> bool:  # noqa: FBT001  what `until` waits for
    return value


async def _ended(loops: Loops, run: str) -> bool:
    return (await loops.get(run)).ended


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize(("most", "waits"), [(1, [1, 2, 3]), (5, [None, None, None])])
def test_a_notice_that_finds_no_place_waits_the_longer_the_more_wait(most: int, waits: list[int | None]) -> None:
    places = Places()
    places.take("team")
    told = [places.full("team", most) for _ in waits]
    assert [None if one is None else one.total_seconds() - 1 for one in told] == waits
    assert places.full("desk", most) is None
    places.leave("team")
    assert places.full("team", most) is None


def _due_now(tx: object) -> None:
    from lamplighter.store.tx import Tx

    assert isinstance(tx, Tx)
    tx.db.execute("UPDATE outbox SET due_at = 0 WHERE city_id = :city AND state = 'pending'", {"city": tx.city})
    tx.wake("outbox")
