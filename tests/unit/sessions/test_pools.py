from datetime import timedelta

import pytest

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen
from lamplighter.domain.sessions.pools import Bounds, demand_of, instance_names, wanted_instances
from lamplighter.testing.sessions import START, a_session

MANY = Bounds(0, 4)


def running(*names: str, idle: dict[str, int] | None = None, draining: tuple[str, ...] = ()) -> dict[str, Seen]:
    return {
        name: a_session(
            name,
            last_activity=START - timedelta(minutes=(idle or {}).get(name, 0)),
            marked={meta.DRAIN: "1893499200", meta.DRAIN_REASON: "surplus"} if name in draining else {},
        )
        for name in names
    }


def test_one_instance_bears_the_pools_name_and_several_are_numbered() -> None:
    assert instance_names("coder", 0) == ()
    assert instance_names("coder", 1) == ("coder",)
    assert instance_names("coder", 3) == ("coder-1", "coder-2", "coder-3")


@pytest.mark.parametrize(("demand", "size"), [(0, 1), (2, 2), (9, 3), (-5, 1)])
def test_demand_is_kept_within_the_bounds(demand: int, size: int) -> None:
    assert len(wanted_instances("coder", Bounds(1, 3), demand, {}, frozenset())) == size


def test_unknown_demand_keeps_what_runs() -> None:
    kept = wanted_instances("coder", MANY, None, running("coder-2", "coder-4"), frozenset())
    assert kept == ("coder-2", "coder-4")
    assert wanted_instances("coder", Bounds(1, 4), None, {}, frozenset()) == ("coder-1",)


def test_unknown_demand_does_not_call_back_who_was_asked_to_leave() -> None:
    now = running("coder-1", "coder-2", "coder-3", draining=("coder-1", "coder-3"))
    assert wanted_instances("coder", MANY, None, now, frozenset()) == ("coder-2",)
    assert wanted_instances("coder", Bounds(2, 4), None, now, frozenset()) == ("coder-1", "coder-2")


def test_scaling_down_lets_the_idlest_go() -> None:
    now = running("coder-1", "coder-2", "coder-3", idle={"coder-1": 60, "coder-2": 1, "coder-3": 5})
    assert wanted_instances("coder", MANY, 2, now, frozenset()) == ("coder-2", "coder-3")


def test_a_busy_instance_is_kept_whatever_the_demand() -> None:
    now = running("coder-1", "coder-2", idle={"coder-2": 600})
    assert wanted_instances("coder", MANY, 0, now, frozenset({"coder-2"})) == ("coder-2",)
    assert "coder-9" in wanted_instances("coder", MANY, 0, running("coder-9"), frozenset({"coder-9"}))


def test_an_instance_that_was_asked_to_leave_goes_first() -> None:
    now = running("coder-1", "coder-2", idle={"coder-2": 30}, draining=("coder-1",))
    assert wanted_instances("coder", MANY, 1, now, frozenset()) == ("coder-2",)


def test_scaling_up_takes_the_lowest_free_names() -> None:
    assert wanted_instances("coder", MANY, 3, running("coder-2"), frozenset()) == ("coder-1", "coder-2", "coder-3")


@pytest.mark.parametrize(
    ("text", "demand"),
    [(" 3\n", 3), ("0", 0), ("-1", -1), ("", None), ("two", None), ("1.5", None), ("٣", None), ("-", None)],
)
def test_only_a_number_is_a_demand(text: str, demand: int | None) -> None:
    assert demand_of(text) == demand
