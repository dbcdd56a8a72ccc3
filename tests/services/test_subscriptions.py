"""Told when a session ends, on both databases: once for each subscription, and again after subscribing again."""

from dataclasses import replace
from datetime import timedelta

import pytest
from automation_city import City
from test_notices import DUTY, TEAM, every, rules_of

from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.errors import NotFound
from lamplighter.services import fresh_start, outbox, session_ends, sessions, subscriptions
from lamplighter.services.inbox import telling
from lamplighter.services.runs import executing
from lamplighter.services.sessions import Ended
from lamplighter.store.agents import AgentStart
from lamplighter.store.sessions import SessionEnd, SessionRow

DESTINATIONS = (TEAM, DUTY, replace(TEAM, name="desk"))


def began(city: City, session: str, *, run: str | None = None) -> None:
    agent = None if run else "mayor"
    row = SessionRow(session, f"name-{session}", agent, run, "fake", "here", 7, city.clock.now())
    city.run(lambda tx: tx.sessions.add(row))


def subscribed(city: City, subject: str, *destinations: str) -> None:
    for name in destinations:
        city.run(subscriptions._subscribe, subject, name, city.context)


def ended(city: City, session: str, reason: str = "idle timeout") -> None:
    """As the patrol records it, for whatever reason: idle for good, an orphan, a crash."""
    end = SessionEnd(city.clock.now(), reason, 0)
    city.run(sessions.record, [Ended(SessionName("alpha"), session, end, wished=True)])


def claimed(city: City, kind: str) -> list[Item]:
    found = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=99)
    return [one for one in found if one.kind == kind]


def dispatched(city: City) -> int:
    items = claimed(city, "notify_session_complete")
    for one in items:
        city.run(session_ends.dispatch, one, rules_of(city, *DESTINATIONS), ctx=city.context)
    return len(items)


def told(city: City) -> list[str]:
    return sorted(one.destination for one in every(city))


def open_ones(city: City, subject: str) -> list[str]:
    return [one.destination for one in city.read(lambda tx: tx.subscriptions.of(subject)) if one.notified_at is None]


@pytest.mark.parametrize("reason", ["idle timeout", "orphaned", "exited"])
def test_an_agents_session_that_ends_is_told_to_each_who_subscribed(city: City, reason: str) -> None:
    began(city, "ses_1")
    subscribed(city, "ses_1", "team", "duty")
    ended(city, "ses_1", reason)
    ended(city, "ses_1", "again")
    assert dispatched(city) == 1
    assert told(city) == ["duty", "team"]
    assert every(city)[0].body["sentence"] == f"The session of mayor ended: {reason} (status 0)."


def test_nothing_is_queued_where_nobody_subscribed(city: City) -> None:
    began(city, "ses_1")
    ended(city, "ses_1")
    assert dispatched(city) == 0


def test_what_was_lost_with_the_machine_is_told_too(city: City) -> None:
    began(city, "ses_1")
    start = AgentStart("sta_1", SessionName("alpha"), "mayor", "ses_1", city.clock.now(), "wanted", None, counted=True)
    city.run(lambda tx: tx.agents.add(start))
    subscribed(city, "ses_1", "team")
    city.run(fresh_start.end_open_sessions, city.context)
    assert dispatched(city) == 1
    assert told(city) == ["team"]


def test_only_what_failed_is_tried_again(city: City) -> None:
    """Case 31: of three subscriptions one fails; two are stamped, and the next try reaches only the third."""
    began(city, "ses_1")
    subscribed(city, "ses_1", "team", "duty", "desk")
    ended(city, "ses_1")
    dispatched(city)
    notices = {one.id: one for one in every(city)}
    for item in claimed(city, "send_notice"):
        notice = notices[item.payload["notice"]]
        if notice.destination == "duty":
            city.run(telling.not_sent, item, notice, "duty answered 503", permanent=False, ctx=city.context)
        else:
            city.run(telling.sent, item, notice, ctx=city.context)
    assert open_ones(city, "ses_1") == ["duty"]
    city.advance(minutes=1)
    [again] = claimed(city, "send_notice")
    assert notices[again.payload["notice"]].destination == "duty"
    city.run(telling.sent, again, city.read(lambda tx: tx.notices.get(again.payload["notice"])), ctx=city.context)
    assert open_ones(city, "ses_1") == []
    city.advance(hours=1)
    assert claimed(city, "send_notice") == []
    assert {one.state for one in every(city)} == {NoticeState.SENT}


def test_who_subscribes_again_is_told_again(city: City) -> None:
    city.add("nightly")
    run = city.run_now("nightly").run
    for number, again in ((1, False), (2, True), (3, False)):
        if number == 1 or again:
            subscribed(city, run, "team")
        began(city, f"ses_{number}", run=run)
        city.run(executing.session_ended, run, SessionEnd(city.clock.now(), "ended"))
        dispatched(city)
        city.advance(seconds=5)
    assert [one.about for one in every(city)] == ["ses_1", "ses_2"]


def test_what_has_ended_or_never_was_cannot_be_subscribed_to(city: City) -> None:
    began(city, "ses_1")
    ended(city, "ses_1")
    with pytest.raises(subscriptions.SessionOver):
        subscribed(city, "ses_1", "team")
    with pytest.raises(NotFound):
        subscribed(city, "ses_2", "team")


def test_who_unsubscribed_is_not_told_and_old_subscriptions_go(city: City) -> None:
    began(city, "ses_1")
    subscribed(city, "ses_1", "team", "duty")
    assert city.run(lambda tx: tx.subscriptions.delete("ses_1", "team"))
    ended(city, "ses_1")
    dispatched(city)
    assert told(city) == ["duty"]
    began(city, "ses_2")
    subscribed(city, "ses_2", "team")
    city.advance(days=400)
    city.run(lambda tx: tx.subscriptions.prune(before=city.clock.now()))
    found = city.do(subscriptions.SUBSCRIPTIONS, subscriptions.ListSubscriptions())
    assert [(one.session, one.destination) for one in found] == [("ses_2", "team")]


def test_what_the_quiet_hours_held_back_is_told_by_their_digest(city: City) -> None:
    start = city.clock.now().astimezone(rules_of(city).zone)
    hours = f"{start:%H:%M}-{start + timedelta(hours=1):%H:%M}"
    quiet = rules_of(city, *DESTINATIONS, quiet_hours=hours)
    for session in ("ses_1", "ses_2"):
        began(city, session)
        subscribed(city, session, "team")
        ended(city, session)
    for one in claimed(city, "notify_session_complete"):
        city.run(session_ends.dispatch, one, quiet, ctx=city.context)
    assert {one.state for one in every(city)} == {NoticeState.HELD}
    city.advance(hours=1, minutes=1)
    city.run(telling.tell, quiet, ctx=city.context)
    [item] = claimed(city, "send_notice")
    digest = city.read(lambda tx: tx.notices.get(item.payload["notice"]))
    assert len(digest.body["lines"]) == 2
    city.run(telling.sent, item, digest, ctx=city.context)
    assert open_ones(city, "ses_1") == open_ones(city, "ses_2") == []
