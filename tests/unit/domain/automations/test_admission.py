"""One table of admission: what asks, what is switched off, what is under way, and what becomes of the firing."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.automations.admission import Decision, Fire, Hold, Origin, Replace, Skip, barred, decide
from lamplighter.domain.automations.decisions import ActiveRun, SkipReason, Switches
from lamplighter.domain.automations.policies import Overlap

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ON = Switches()
TWO = (ActiveRun("run_1", NOW + HOUR), ActiveRun("run_2"))
IN_THE_WAY = Skip(SkipReason.OVERLAP, "run_1")
AFTER_IT = Hold("run_1")


@pytest.mark.parametrize(
    ("policy", "hand", "slot", "later_slot", "events"),
    [
        (Overlap.ALLOW, Fire(), Fire(), Fire(), Fire()),
        (Overlap.SKIP, IN_THE_WAY, IN_THE_WAY, AFTER_IT, AFTER_IT),
        (Overlap.QUEUE, IN_THE_WAY, AFTER_IT, AFTER_IT, AFTER_IT),
        (Overlap.REPLACE, *[Replace(("run_1", "run_2"))] * 4),
    ],
)
def test_case_11_beside_runs_under_way_the_policy_and_the_origin_decide(
    policy: Overlap, hand: Decision, slot: Decision, later_slot: Decision, events: Decision
) -> None:
    expected = {Origin.HAND: hand, Origin.SLOT: slot, Origin.LATER_SLOT: later_slot, Origin.EVENTS: events}
    expected[Origin.DELIVERY] = events
    assert {origin: decide(ON, policy, TWO, origin, NOW) for origin in Origin} == expected


@pytest.mark.parametrize("origin", Origin)
@pytest.mark.parametrize("policy", Overlap)
def test_with_nothing_under_way_and_nothing_switched_off_it_fires(policy: Overlap, origin: Origin) -> None:
    assert decide(ON, policy, (), origin, NOW) == Fire()


@pytest.mark.parametrize("origin", Origin)
@pytest.mark.parametrize("policy", Overlap)
def test_a_run_past_its_deadline_is_in_nobodys_way(policy: Overlap, origin: Origin) -> None:
    assert decide(ON, policy, [ActiveRun("run_1", NOW)], origin, NOW) == Fire()


@pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE])
def test_a_run_that_a_person_has_taken_has_no_deadline_and_is_not_replaced(policy: Overlap) -> None:
    active = [ActiveRun("run_1", NOW + HOUR), ActiveRun("run_2", NOW - HOUR, taken=True)]
    waits = {Origin.LATER_SLOT, Origin.EVENTS, Origin.DELIVERY} | ({Origin.SLOT} if policy is Overlap.QUEUE else set())
    for origin in Origin:
        expected = Hold("run_2") if origin in waits else Skip(SkipReason.OVERLAP, "run_2")
        assert decide(ON, policy, active, origin, NOW) == expected


def test_only_runs_that_may_still_go_on_are_replaced() -> None:
    active = [ActiveRun("run_old", NOW - HOUR), ActiveRun("run_new", NOW + HOUR)]
    assert decide(ON, Overlap.REPLACE, active, Origin.SLOT, NOW) == Replace(("run_new",))


@pytest.mark.parametrize(
    ("switches", "reason"),
    [
        (Switches(paused=True), SkipReason.PAUSED),
        (Switches(city_suspended=True), SkipReason.CITY_SUSPENDED),
        (Switches(rig_suspended=True), SkipReason.RIG_SUSPENDED),
        (Switches(suspended=True), SkipReason.AUTOMATION_SUSPENDED),
    ],
)
@pytest.mark.parametrize("policy", Overlap)
def test_a_pause_or_suspension_comes_before_every_policy_and_ends_no_run(
    policy: Overlap, switches: Switches, reason: SkipReason
) -> None:
    for origin in (Origin.HAND, Origin.SLOT, Origin.LATER_SLOT):
        assert decide(switches, policy, TWO, origin, NOW) == Skip(reason)
    assert decide(switches, policy, TWO, Origin.EVENTS, NOW) == Hold(), "events wait until it is lifted"


@pytest.mark.parametrize(
    ("switches", "reason"),
    [(Switches(enabled=False), SkipReason.DISABLED), (Switches(left_out=True), SkipReason.LEFT_OUT)],
)
def test_what_is_disabled_or_left_out_fires_only_by_hand(switches: Switches, reason: SkipReason) -> None:
    assert decide(switches, Overlap.SKIP, (), Origin.HAND, NOW) == Fire()
    assert decide(switches, Overlap.SKIP, (), Origin.SLOT, NOW) == Skip(reason)
    assert decide(switches, Overlap.SKIP, (), Origin.EVENTS, NOW) == Hold()


@pytest.mark.parametrize("origin", Origin)
def test_whether_it_is_barred_needs_no_run_to_be_read(origin: Origin) -> None:
    assert barred(ON, origin) is None
    assert barred(Switches(paused=True), origin) == decide(Switches(paused=True), Overlap.REPLACE, TWO, origin, NOW)
