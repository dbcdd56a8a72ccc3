"""A request with a key has one effect, and one with a version none on another version; on both databases."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.access import Actor, Forbidden, Role, owner
from lamplighter.domain.beads.model import BeadFilter
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.city.sections import Workspace
from lamplighter.kit.errors import UsageError
from lamplighter.services.beads.operations import CREATE, UPDATE, CreateBead, UpdateBead
from lamplighter.services.beads.queries import SHOW, ShowBead
from lamplighter.services.context import Configured
from lamplighter.services.guarding import (
    Guard,
    KeyReused,
    VersionChanged,
    check_guard,
    guarded,
    hash_of,
    versioned,
)
from lamplighter.services.runs.logs import SHOW_LOGS
from lamplighter.services.runs.operations import COMPLETE_RUN
from lamplighter.services.versions import version_of
from lamplighter.store.tx import Tx

CONFIG = CityConfig(workspace=Workspace(name="test"), prefix="te")


def keyed(city: City, title: str, key: str = "k", who: Actor | None = None) -> Callable[[Tx], Any]:
    ctx = replace(city.context, actor=who or owner("ada"), configured=Configured(CONFIG, city.rules))
    guard = Guard(key, hash_of({"title": title}))
    return lambda tx: guarded(tx, CREATE, CreateBead(title=title), ctx, guard)


def titles(city: City) -> list[str]:
    return sorted(bead.title for bead in city.read(lambda tx: tx.beads.matching(BeadFilter(), limit=99)))


def test_the_same_request_again_has_its_first_answer_and_no_second_effect(city: City) -> None:
    first = city.run(keyed(city, "Oil"))
    again = city.run(keyed(city, "Oil"))
    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert again.again["id"] == first.answer.id
    assert titles(city) == ["Oil"]


def test_the_same_key_with_another_content_is_refused(city: City) -> None:
    city.run(keyed(city, "Oil"))
    with pytest.raises(KeyReused):
        city.run(keyed(city, "Wick"))
    assert titles(city) == ["Oil"]


def test_a_key_is_each_actor_s_own(city: City) -> None:
    city.run(keyed(city, "Oil"))
    city.run(keyed(city, "Oil", who=owner("ben")))
    assert titles(city) == ["Oil", "Oil"]


def test_a_key_counts_for_a_day_and_is_then_cleared_away(city: City) -> None:
    city.run(keyed(city, "Oil"))
    city.advance(hours=23, minutes=59)
    assert city.run(keyed(city, "Oil")).is_repeated
    city.advance(minutes=1)
    assert not city.run(keyed(city, "Wick")).is_repeated
    city.advance(days=1)
    city.run(keyed(city, "Glass", key="another"))
    rows = city.read(lambda tx: tx.db.rows("SELECT key FROM idempotency_keys", {}))
    assert [row["key"] for row in rows] == ["another"]


def test_what_failed_keeps_no_key(city: City) -> None:
    with pytest.raises(UsageError):
        city.run(keyed(city, " "))
    assert city.read(lambda tx: tx.db.rows("SELECT key FROM idempotency_keys", {})) == []


def test_an_actor_without_the_right_sees_no_kept_answer(city: City) -> None:
    city.run(keyed(city, "Oil", who=owner("x")))
    with pytest.raises(Forbidden):
        city.run(keyed(city, "Oil", who=Actor("x", Role.RUN, "run_1")))


def test_many_at_once_have_one_effect(city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]) -> None:
    for number in range(5):
        done = ask_at_once([keyed(city, f"Oil {number}", key=f"k{number}") for _ in range(6)])
        assert sum(not one.is_repeated for one in done) == 1
        assert len({one.again["id"] if one.is_repeated else one.answer.id for one in done}) == 1
    assert titles(city) == [f"Oil {number}" for number in range(5)]


def test_an_edit_holds_only_for_the_version_that_was_read(city: City) -> None:
    bead = city.run(keyed(city, "Oil")).answer.id
    read = city.read(lambda tx: versioned(tx, SHOW, ShowBead(bead), city.context))
    ctx = replace(city.context, actor=owner("ada"))

    def edit(title: str, *versions: str) -> Any:
        guard = Guard(versions=frozenset(versions))
        city.clock.advance(timedelta(seconds=1))
        return city.run(lambda tx: guarded(tx, UPDATE, UpdateBead(bead, title=title), ctx, guard))

    edit("More oil", read.version, "another")
    with pytest.raises(VersionChanged):
        edit("Less oil", read.version)
    assert titles(city) == ["More oil"]
    edit("Any oil", "*")
    assert titles(city) == ["Any oil"]


@pytest.mark.parametrize(
    ("operation", "guard", "outside"),
    [
        (SHOW_LOGS, Guard(key="k"), False),
        (COMPLETE_RUN, Guard(key="k"), False),
        (CREATE, Guard(key="k"), True),
        (CREATE, Guard(key=""), False),
        (CREATE, Guard(key="k" * 256), False),
        (CREATE, Guard(versions=frozenset({"1"})), False),
        (UPDATE, Guard(versions=frozenset({"1"})), True),
    ],
)
def test_what_cannot_be_promised_is_refused(operation: Any, guard: Guard, outside: bool) -> None:  # noqa: FBT001
    with pytest.raises(UsageError):
        check_guard(operation, guard, outside=outside)


def test_a_version_differs_with_each_part() -> None:
    seen = {version_of(*parts) for parts in [("a",), ("a", None), ("b",), ({"x": 1},), ({"x": 2},), ("a", "b")]}
    assert len(seen) == 6
