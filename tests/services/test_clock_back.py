"""After the clock was set back: waits go on where they were, no slot fires twice, and it is told."""

from datetime import timedelta
from typing import Any

from automation_city import City
from inbox_causes import CAUSES
from test_delivery_cases import HOOK, connect, deliver, work
from test_pipeline_cases import AGENT, running

from lamplighter.domain.events import EventFilter
from lamplighter.domain.inbox.items import Kind, Shown
from lamplighter.domain.sessions.logins import Go, Login, LoginKey, LoginState, Waiting, decide
from lamplighter.services import clock_back
from lamplighter.services.automations import due, outlook
from lamplighter.services.inbox import operations, queries
from lamplighter.services.runs import taking
from lamplighter.store.polls import PollRow

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def mend(city: City, by: timedelta = DAY) -> None:
    city.clock.set_back(by)
    city.run(clock_back.mend, by, rules=city.rules, ctx=city.context)


def explained(city: City, name: str) -> str:
    return " ".join(city.read(outlook.explained, name, now=city.clock.now(), rules=city.rules))


def moving(city: City, run: str) -> dict[str, Any]:
    row = city.read(lambda tx: tx.runs.get(run))
    return {"deadline": row.deadline_at, "lease": row.lease.expires_at}


def test_a_cooldown_goes_on_with_what_remained_of_it(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="5s")
    city.finish(city.tick().fired[0])
    city.advance(seconds=2)
    mend(city)
    assert city.tick().fired == []
    city.advance(seconds=3)
    assert len(city.tick().fired) == 1


def test_a_slot_that_comes_again_is_not_fired_again_and_later_ones_are(city: City) -> None:
    city.add("nightly", gate="cron", schedule="0 * * * *", overlap="replace")
    for _ in range(3):  # 10:00, 11:00 and 12:00
        city.advance(hours=1)
        assert len(city.tick().fired) == 1
    mend(city, timedelta(hours=2))
    for _ in range(2):
        city.advance(hours=1)
        assert city.tick().fired == []
    assert [row.state.value for row in city.runs_of("nightly")] == ["canceled", "canceled", "ready"]
    city.advance(hours=1)
    assert len(city.tick().fired) == 1


def test_a_schedule_that_was_far_ahead_comes_at_its_next_time(city: City) -> None:
    city.add("nightly", gate="schedule", cadence="daily", hour=10)
    city.advance(days=1000, hours=1)
    city.finish(city.tick().fired[0])
    mend(city, timedelta(days=1000, hours=2))
    city.advance(hours=2)
    assert len(city.tick().fired) == 1


def test_events_that_waited_are_dealt_with_at_once(city: City) -> None:
    city.add("hears", gate="event", on="x.y")
    city.emit("x.y")
    city.position = city.run(due.scan_events, 0, city.clock.now())
    mend(city)
    assert len(city.tick().fired) == 1


def test_runs_under_way_keep_their_spans_and_items_their_delays(city: City) -> None:
    city.add("long")
    run = city.run_now("long").run
    before = moving(city, run)
    due_at = city.read(lambda tx: tx.outbox.next_due_at())
    mend(city)
    after = moving(city, run)
    assert before["deadline"] - after["deadline"] == DAY
    assert city.read(lambda tx: tx.outbox.next_due_at()) == due_at - DAY


def test_it_is_an_event_and_explained_for_a_week(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    city.tick()
    mend(city)
    (event,) = city.read(lambda tx: tx.events.latest(EventFilter(type=clock_back.EVENT), limit=9))
    assert (event.message, event.payload) == ("the clock was set back by 1d", {"by_seconds": 86400.0})
    assert "The clock was set back by 1d, noticed at 2026-03-01 09:00:00 UTC" in explained(city, "tidy")
    city.advance(days=8)
    assert "set back" not in explained(city, "tidy")


def test_times_on_record_that_lie_ahead_are_noticed_until_they_are_mended(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    city.tick()
    assert city.read(clock_back.ahead, city.clock.now()) is None
    city.clock.set_back(DAY)
    assert city.read(clock_back.ahead, city.clock.now()) == DAY
    assert "The clock was set back by 1d: times on record lie ahead of it." in explained(city, "tidy")
    assert "is not due: 1 h remain, for the clock was set back. It comes next at" in explained(city, "tidy")
    city.run(clock_back.mend, DAY, rules=city.rules, ctx=city.context)
    assert city.read(clock_back.ahead, city.clock.now()) is None


def test_what_people_and_providers_put_off_comes_when_it_would_have(city: City) -> None:
    """Without it all of these wait for a day: polls ask nobody, a held login has each run skipped."""
    connect(city)
    city.add("fix", **HOOK, gather="30s")
    deliver(city)
    work(city)
    city.run(lambda tx: tx.polls.add(PollRow("gh", "a/b", "https://h", "", {}, city.clock.now() + MINUTE)))
    CAUSES[Kind.FAILED].arise(city)
    (item,) = city.do(queries.LIST, queries.ListInbox())
    city.do(operations.SNOOZE, operations.SnoozeItem(item.id, "1h"))
    key = LoginKey("node", "claude", "/home", "")
    held = Login(key, LoginState.LIMITED, city.clock.now(), until=city.clock.now() + MINUTE, looked_at=city.clock.now())
    city.run(lambda tx: tx.logins.put(held))
    mend(city)
    city.advance(minutes=1)
    now = city.clock.now()
    assert [one.next_at for one in city.read(lambda tx: tx.polls.all())] == [now]
    (found,) = city.read(lambda tx: tx.logins.all())
    assert decide(found, "", Waiting("run_1", now + DAY), now) == Go()
    work(city)
    assert len(city.runs_of("fix")) == 1
    city.advance(hours=1)
    assert [one.state for one in city.do(queries.LIST, queries.ListInbox())] == [Shown.OPEN]


def test_a_run_that_a_person_has_taken_keeps_the_time_it_stood(city: City) -> None:
    city.add("sweep", agent=AGENT)
    run = city.run_now("sweep").run
    running(city, run)
    before = city.get(run).deadline_at
    city.run(taking.take, run, ctx=city.context)
    city.run(taking.hand_over, run, city.get(run).lease.version, ctx=city.context)
    mend(city)
    city.advance(hours=1)
    city.run(taking.give, run, "", ctx=city.context)
    assert before is not None
    assert city.get(run).deadline_at == before - DAY + timedelta(hours=1)
