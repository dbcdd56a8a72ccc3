"""The notices of items on both databases: opened, after so many, recovered, held back by quiet hours, one digest."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from automation_city import City
from inbox_causes import CAUSES
from test_inbox import swept

from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.city.model import Workspace
from lamplighter.domain.city.sections import Destination, Notifications
from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.domain.inbox.items import Kind, Shown
from lamplighter.domain.inbox.notices import Notice, NoticeState, What
from lamplighter.services import notices, outbox
from lamplighter.services.inbox import needs, operations, queries, settling, telling
from lamplighter.services.inbox.telling import Telling

TEAM = Destination(name="team", kind="command", command="true")
DUTY = Destination(name="duty", kind="command", command="true")


def rules_of(city: City, *destinations: Destination, **keys: Any) -> Telling:
    declared = Notifications(destinations=destinations or (TEAM,), **keys)
    return Telling.of(CityConfig(workspace=Workspace(name="test"), notifications=declared), city.rules.zone)


def tell(city: City, rules: Telling | None = None) -> list[tuple[str, str, str]]:
    """What the tick does; returns all notices as destination, occasion and state, oldest first."""
    while city.run(telling.tell, rules or rules_of(city), ctx=city.context) == telling.AT_ONCE:
        pass
    return [(one.destination, one.what.value, one.state.value) for one in every(city)]


def every(city: City) -> list[Notice]:
    return sorted(city.read(lambda tx: tx.notices.page(limit=1000)), key=lambda one: one.id)


def queued(city: City) -> int:
    found = city.read(lambda tx: tx.outbox.page(ItemState.PENDING, limit=1000))
    return sum(one.item.kind == "send_notice" for one in found)


def item(city: City) -> queries.ItemView:
    [found] = city.do(queries.LIST, queries.ListInbox())
    view: queries.ItemView = found
    return view


@pytest.mark.parametrize("kind", list(CAUSES))
def test_each_kind_is_told_once_when_it_opens(city: City, kind: Kind) -> None:
    CAUSES[kind].arise(city)
    count = len(city.do(queries.LIST, queries.ListInbox()))
    assert tell(city) == [("team", "opened", "pending")] * count
    swept(city)
    assert len(tell(city)) == count == queued(city)
    assert all(one.body["sentence"] and one.body["fix"] for one in every(city))


def test_the_same_failure_again_is_not_told_again(city: City) -> None:
    for _ in range(4):
        CAUSES[Kind.FAILED].arise(city)
        swept(city)
        tell(city)
        city.advance(seconds=5)
    assert tell(city) == [("team", "opened", "pending")]


def test_a_failure_is_told_when_it_has_happened_so_many_times(city: City) -> None:
    rules = rules_of(city, TEAM, replace(DUTY, after=3))
    for told in (["team"], ["team"], ["duty", "team"], ["duty", "team"]):
        CAUSES[Kind.FAILED].arise(city)
        assert sorted(one[0] for one in tell(city, rules)) == told
        city.advance(seconds=5)


def test_failures_that_are_counted_keep_no_other_item_from_being_told(city: City) -> None:
    rules = rules_of(city, replace(TEAM, after=3))
    for number in range(telling.AT_ONCE + 5):
        need = needs.Need(Kind.FAILED, f"run:{number:03}", "nightly", city.clock.now())
        city.run(needs.open_item, need, ctx=city.context)
    assert tell(city, rules) == []
    assert tell(city, rules) == []
    CAUSES[Kind.OUTBOX].arise(city)
    assert tell(city, rules) == [("team", "opened", "pending")]
    city.run(settling.of_success, "nightly", ctx=city.context)
    assert tell(city, rules) == [("team", "opened", "pending")], "of what nobody was told, nobody is told the end"
    assert city.run(lambda tx: tx.inbox.counting(after="", limit=9)) == []


def test_what_is_over_by_itself_is_told_as_a_recovery(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    tell(city)
    city.advance(seconds=5)
    CAUSES[Kind.FAILED].mend(city)
    swept(city)
    assert tell(city) == [("team", "opened", "pending"), ("team", "recovered", "pending")]
    assert every(city)[-1].body["sentence"].startswith("Over: a later run succeeded. It was: nightly failed")
    assert tell(city, rules_of(city)) == tell(city)


def test_without_recovery_only_the_opening_is_told(city: City) -> None:
    rules = rules_of(city, recovery=False)
    CAUSES[Kind.FAILED].arise(city)
    tell(city, rules)
    city.advance(seconds=5)
    CAUSES[Kind.FAILED].mend(city)
    swept(city)
    assert tell(city, rules) == [("team", "opened", "pending")]


def test_what_opened_and_ended_between_two_ticks_is_told_to_nobody(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    city.advance(seconds=5)
    CAUSES[Kind.FAILED].mend(city)
    swept(city)
    assert tell(city) == []


def test_what_a_person_settles_is_no_recovery(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    tell(city)
    city.do(operations.DISMISS, operations.DismissItem(item(city).id))
    assert tell(city) == [("team", "opened", "pending")]


def test_quiet_hours_hold_back_and_then_send_one_digest(city: City) -> None:
    """The clock of the test stands at noon in UTC."""
    start = city.clock.now()
    hours = f"{start:%H:%M}-{start + timedelta(hours=8):%H:%M}"
    rules = rules_of(city, quiet_hours=hours)
    CAUSES[Kind.FAILED].arise(city)
    CAUSES[Kind.TIMED_OUT].arise(city)
    CAUSES[Kind.NEEDS_HUMAN].arise(city)
    assert sorted(one[2] for one in tell(city, rules)) == ["held", "held", "pending"]
    assert queued(city) == 1
    city.advance(hours=8, minutes=1)
    told = tell(city, rules)
    assert told[-1] == ("team", "digest", "pending")
    assert sorted(one[2] for one in told[:-1]) == ["dropped", "dropped", "pending"]
    assert len(every(city)[-1].body["lines"]) == 2
    assert queued(city) == 2
    assert tell(city, rules) == told


def test_quiet_hours_have_a_zone_of_their_own_and_hold_successes_too(city: City) -> None:
    """The clock of the test stands in the city's own zone; at the same moment it is night in one and day in another."""
    start = city.clock.now()
    apart = {zone: start.astimezone(ZoneInfo(zone)) for zone in ("Asia/Tokyo", "America/New_York")}
    local = apart["Asia/Tokyo"]
    hours = f"{local - timedelta(hours=1):%H:%M}-{local + timedelta(hours=1):%H:%M}"
    there = rules_of(city, quiet_hours=hours, quiet_zone="America/New_York")
    here = rules_of(city, quiet_hours=hours, quiet_zone="Asia/Tokyo")
    assert (here.is_quiet(start), there.is_quiet(start)) == (True, False)
    city.add("proud", notify={"to": ["team"], "on": ["succeeded"]})
    for _ in range(2):
        run = city.finish(city.run_now("proud").run)
        [done] = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9)
        city.run(telling.tell_success, done, run, here, ctx=city.context)
    assert tell(city, here) == [("team", "succeeded", "held")] * 2
    city.advance(hours=1, minutes=1)
    assert tell(city, here)[-1] == ("team", "digest", "pending")


def test_a_single_held_notice_is_sent_as_it_is_and_what_is_over_by_then_is_dropped(city: City) -> None:
    start = city.clock.now()
    rules = rules_of(city, quiet_hours=f"{start:%H:%M}-{start + timedelta(hours=8):%H:%M}")
    CAUSES[Kind.FAILED].arise(city)
    CAUSES[Kind.OUTBOX].arise(city)
    assert tell(city, rules) == [("team", "opened", "held")] * 2
    city.advance(seconds=5)
    CAUSES[Kind.FAILED].mend(city)
    swept(city)
    assert sorted(one[2] for one in tell(city, rules)) == ["dropped", "held"]
    city.advance(hours=8)
    assert sorted(tell(city, rules)) == [("team", "opened", "dropped"), ("team", "opened", "pending")]
    assert queued(city) == 1


@pytest.mark.parametrize(
    ("notify", "told"),
    [
        (["duty"], ["duty"]),
        (["none"], []),
        (["inbox"], []),
        ({"on": ["timed_out"]}, []),
        ({"to": ["duty"], "after": 2}, []),
        ({"to": ["duty", "team"], "on": ["failed"]}, ["duty", "team"]),
    ],
)
def test_an_automation_has_rules_of_its_own(city: City, notify: Any, told: list[str]) -> None:
    city.add("nightly", auto_disable_after=0, overlap="allow", notify=notify)
    CAUSES[Kind.FAILED].arise(city)
    assert sorted(one[0] for one in tell(city, rules_of(city, TEAM, DUTY))) == told


def test_a_destination_that_nobody_declared_needs_a_person(city: City) -> None:
    city.add("nightly", auto_disable_after=0, overlap="allow", notify=["tema"])
    CAUSES[Kind.FAILED].arise(city)
    tell(city)
    assert tell(city) == [("team", "opened", "pending")]  # of the item about the other destination
    [missing] = [one for one in city.do(queries.LIST, queries.ListInbox()) if one.kind is Kind.DESTINATION]
    assert "declares no such destination" in missing.sentence
    city.run(telling.forget_destinations, [TEAM], ctx=city.context)
    assert len(city.do(queries.LIST, queries.ListInbox())) == 2
    city.run(telling.forget_destinations, [TEAM, replace(TEAM, name="tema")], ctx=city.context)
    assert len(city.do(queries.LIST, queries.ListInbox())) == 1


def test_successes_are_told_only_where_asked(city: City) -> None:
    city.add("quiet")
    city.add("proud", notify={"to": ["team"], "on": ["succeeded"]})
    for name in ("quiet", "proud"):
        run = city.finish(city.run_now(name).run)
    items = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9)
    assert [one.kind for one in items] == ["notify_run_terminal"]
    city.run(telling.tell_success, items[0], run, rules_of(city), ctx=city.context)
    assert [(one.what, one.about, one.body["sentence"]) for one in every(city)] == [
        (What.SUCCEEDED, run.id, "proud succeeded.")
    ]


def test_a_destination_that_keeps_failing_becomes_an_item_that_is_not_told_there(city: City) -> None:
    rules = rules_of(city, TEAM, DUTY)
    CAUSES[Kind.FAILED].arise(city)
    tell(city, rules)
    failing = next(one for one in every(city) if one.destination == "team")
    for attempt in range(1, 11):
        items = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9)
        mine = next(one for one in items if one.payload["notice"] == failing.id)
        for other in items:
            if other.id != mine.id:
                city.run(outbox.done, other, city.clock.now())
        notice = city.read(lambda tx: tx.notices.get(failing.id))
        city.run(telling.not_sent, mine, notice, "answered 503", permanent=False, ctx=city.context)
        found = [one for one in city.do(queries.LIST, queries.ListInbox()) if one.kind is Kind.DESTINATION]
        assert [one.subject for one in found] == (["team"] if attempt >= telling.FAILING_AFTER else [])
        city.advance(hours=24)
    given_up = city.read(lambda tx: tx.notices.get(failing.id))
    assert (given_up.state, given_up.attempts, given_up.last_error) == (NoticeState.FAILED, 10, "answered 503")
    tell(city, rules)
    assert [one.destination for one in every(city) if one.body["kind"] == "destination"] == ["duty"]
    kinds = {one.kind for one in city.do(queries.LIST, queries.ListInbox())}
    assert Kind.OUTBOX not in kinds
    city.run(telling.takes_notices, "team", ctx=city.context)
    settled = city.do(queries.LIST, queries.ListInbox(Shown.SETTLED))
    assert [one.kind for one in settled] == [Kind.DESTINATION]


def test_destinations_and_notices_are_listed(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    tell(city)
    [shown] = city.do(notices.LOG, notices.ListNotices())
    assert (shown.destination, shown.state, shown.item) == ("team", NoticeState.PENDING, item(city).id)
    declared = Notifications(destinations=(TEAM, DUTY))
    config = replace(city.configured.city, notifications=declared)
    ctx = replace_city(city, config)
    found = city.read(notices.list_destinations, notices.ListDestinations(), ctx)
    assert [(one.name, one.state) for one in found] == [("team", notices.Health.GOOD), ("duty", notices.Health.UNUSED)]


def test_the_rules_say_who_is_told_what_and_whether_it_is_quiet(city: City) -> None:
    start = city.clock.now().astimezone(ZoneInfo("Asia/Tokyo"))
    hours = f"{start:%H:%M}-{start + timedelta(hours=1):%H:%M}"
    declared = Notifications(
        destinations=(TEAM, replace(DUTY, after=3)), to=("team",), quiet_hours=hours, quiet_zone="Asia/Tokyo"
    )
    city.add("plain")
    city.add("proud", notify={"to": ["duty"], "on": ["succeeded"], "after": 2})
    ctx = replace_city(city, replace(city.configured.city, notifications=declared))
    found = city.read(notices.show_rules, notices.ShowRules(), ctx)
    assert (found.to, found.after, found.quiet, found.zone) == (["team"], 1, True, "Asia/Tokyo")
    assert (found.destinations, found.quiet_hours) == ({"duty": 3}, hours)
    assert found.automations == [notices.OwnRule("proud", ["duty"], ["succeeded"], 2)]


def replace_city(city: City, config: CityConfig) -> Any:
    from lamplighter.services.context import Configured

    return replace(city.context, configured=Configured(config, city.rules))
