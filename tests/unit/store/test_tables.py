"""Records and their columns: what goes in comes out, and the lists of columns say what is kept how."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest

from lamplighter.domain.runs.lease import Lease
from lamplighter.domain.runs.model import Grade, Run, RunState, Stage
from lamplighter.kit.records import record
from lamplighter.store.run_rows import ENDED, FIXED, MADE, MOVING, RUNS, ended, made, moving
from lamplighter.store.tables import Table

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


@record
class Held:
    version: int = 0
    until: datetime | None = None


@record
class Thing:
    id: str
    at: datetime
    colour: Colour
    second: Colour | None = None
    note: str | None = None
    count: int | None = None
    price: float | None = None
    on: bool = False
    took: timedelta | None = None
    names: tuple[str, ...] = ()
    body: Mapping[str, Any] | None = None
    held: Held = field(default_factory=Held)
    seen: bool = False


THINGS = Table(Thing, renamed={"took": "took_us", "names": "labels"}, left_out=("seen",))
FULL = Thing(
    "a", AT, Colour.RED, Colour.RED, "n", 3, 1.5, True, timedelta(seconds=2), ("x", "y"), {"k": [1]}, Held(2, AT)
)  # fmt: skip
BARE = Thing("b", AT, Colour.RED)


@pytest.mark.parametrize("thing", [FULL, BARE], ids=["full", "bare"])
def test_what_is_written_is_read_again(thing: Thing) -> None:
    assert THINGS.read(THINGS.writer()(thing)) == thing


def test_values_are_kept_as_both_databases_take_them() -> None:
    assert THINGS.writer()(FULL) == {
        "id": "a", "at": 1772442000000000, "colour": "red", "second": "red", "note": "n", "count": 3, "price": 1.5,
        "on": 1, "took_us": 2_000_000, "labels": '["x", "y"]', "body": '{"k": [1]}', "held_version": 2,
        "held_until": 1772442000000000,
    }  # fmt: skip


def test_a_column_is_named_once_and_listed_everywhere() -> None:
    assert THINGS.names == (
        "id", "at", "colour", "second", "note", "count", "price", "on", "took_us", "labels", "body", "held_version",
        "held_until",
    )  # fmt: skip
    assert THINGS.listed("id", "at") == "id, at"
    assert THINGS.given("id", "at") == ":id, :at"
    assert THINGS.assigned("id", "at") == "id = :id, at = :at"
    assert THINGS.whole() == "at count on took_us held_version held_until"
    assert THINGS.real() == "price"


def test_some_columns_can_be_written_alone() -> None:
    assert THINGS.writer("id", "on")(FULL) == {"id": "a", "on": 1}
    with pytest.raises(KeyError):
        THINGS.writer("seen")


RUN = Run(
    "run_1", "tidy", RunState.FAILED, AT, "cron", "tev_1", {"name": "tidy"}, "exit_1", Stage.EXECUTION, "broke",
    Lease(3, "own_1", AT), 1, "run_0", ("other",), AT, AT, AT, AT, 1, "tail", "sum", "ses_1", "cmp_1", "ann", AT, 0.5,
    "aut_1", "agent", "t", "web", "gc-1", "here", "gc-2", True, timedelta(seconds=1), "big", AT, 7,
    {"preset": "codex"}, AT, {"path": "/w"}, Grade.VERIFIED, 2, "cmp_2", {"text": "?"}, "run_2", "run_3", "20000+10",
    "ann", "bob", AT, timedelta(minutes=3), {"text": "Go on.", "by": "bob"}, "run:f",
)  # fmt: skip


def test_every_field_of_a_run_is_kept() -> None:
    fields_with_defaults = Run("run_1", "tidy", RunState.QUEUED, AT)
    for name, value in vars(RUN).items():
        if name not in {"id", "automation", "created_at"}:
            assert value != getattr(fields_with_defaults, name), f"{name} has its usual value here"
    assert RUNS.read(RUNS.writer()(RUN)) == RUN


def test_a_run_is_written_whole_by_what_is_made_and_what_moves() -> None:
    assert set(FIXED) | set(MOVING) == set(RUNS.names)
    assert set(made(RUN)) == set(MADE)
    assert set(moving(RUN)) == {"id", *MOVING}
    assert set(ended(RUN)) == {"id", *ENDED}
    later = replace(RUN, summary="other")
    assert {name for name, value in moving(later).items() if value != moving(RUN)[name]} == {"summary"}
