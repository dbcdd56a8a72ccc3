"""Requests and answers as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, NewType

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as given_examples
from hypothesis import strategies as st

from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import LARGEST, from_json, given, schema_of, to_json


@dataclass(frozen=True, kw_only=True)
class Lamp:
    name: str
    more: Mapping[str, Any] = given("Its other keys.", whole=True)
    lit: bool = False


@dataclass(frozen=True)
class Street:
    lamps: Sequence[Lamp]
    length: float = given("In metres.", default=1.0, least=0, most=100)
    objects: Sequence[Mapping[str, Any]] = ()


def test_the_keys_of_a_whole_field_stand_beside_the_others_and_are_read_back() -> None:
    street = Street([Lamp(name="first", more={"oil": 3, "of": ["tin"]}, lit=True)], 2.5)
    written = to_json(street)
    assert written["lamps"] == [{"name": "first", "oil": 3, "of": ["tin"], "lit": True}]
    assert list(written["lamps"][0]) == ["name", "oil", "of", "lit"]
    assert to_json(from_json(Street, written)) == written


def test_the_schema_of_a_record_with_a_whole_field_allows_other_keys() -> None:
    assert schema_of(Lamp) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "lit": {"type": "boolean"}},
        "required": ["name"],
        "additionalProperties": True,
    }
    assert schema_of(Street)["properties"]["objects"] == {"type": "array", "items": {"type": "object"}}


@pytest.mark.parametrize("length", [-0.5, 100.5, 101])
def test_a_number_out_of_its_bounds_is_refused(length: float) -> None:
    with pytest.raises(UsageError, match="`length` must be a number from 0 to 100"):
        from_json(Street, {"lamps": [], "length": length})


# ── every kind of value ───────────────────────────────────────────────────────────────────────────────────────────

Name = NewType("Name", str)


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Wick:
    """`length` has a default that is not None, and may be None."""

    thread: str = given("What it is made of.")
    length: int | None = given("In millimetres.", default=5, least=1)


@dataclass(frozen=True)
class Lantern:
    name: Name
    height: float
    count: int
    lit: bool
    made_at: datetime
    burns: timedelta
    colour: Colour
    home: PurePosixPath
    wick: Wick
    maker: str | None
    labels: tuple[str, ...]
    spares: tuple[Wick, ...]
    texts: Mapping[str, str]
    parts: Mapping[str, Wick]
    told: Any
    sender: str | None = given("Who sent it.", key="from", default=None)
    either: Wick | str = given("A wick, or the name of one.", default="")


WICKS = st.builds(Wick, st.text(), st.none() | st.integers(1, 9))
LANTERNS = st.builds(
    Lantern,
    name=st.text().map(Name),
    height=st.floats(allow_nan=False, allow_infinity=False),
    count=st.integers(-LARGEST, LARGEST),
    lit=st.booleans(),
    made_at=st.datetimes(timezones=st.just(UTC)),
    burns=st.timedeltas(timedelta(0), timedelta(days=36_500)),
    colour=st.sampled_from(Colour),
    home=st.sampled_from([PurePosixPath("/srv"), PurePosixPath("a/b")]),
    wick=WICKS,
    maker=st.none() | st.text(),
    labels=st.lists(st.text(), max_size=3).map(tuple),
    spares=st.lists(WICKS, max_size=2).map(tuple),
    texts=st.dictionaries(st.text(), st.text(), max_size=2),
    parts=st.dictionaries(st.text(), WICKS, max_size=2),
    told=st.none()
    | st.integers()
    | st.lists(st.text(), max_size=2)
    | st.dictionaries(st.text(), st.none(), max_size=2),
    sender=st.none() | st.text(),
    either=WICKS | st.text(),
)
LANTERN = Lantern(
    Name("a"), 1.5, 2, True, datetime(2026, 3, 2, 9, tzinfo=UTC), timedelta(seconds=90), Colour.RED,
    PurePosixPath("/srv"), Wick("wool"), None, ("x",), (Wick("silk", None),), {"k": "v"}, {"p": Wick("tin", 3)}, [1],
    "ada", "spare",
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])  # many fields; a busy machine draws them slowly
@given_examples(LANTERNS)
def test_what_was_written_is_read_back_the_same(lantern: Lantern) -> None:
    assert from_json(Lantern, json.loads(json.dumps(to_json(lantern)))) == lantern


def test_each_kind_of_value_is_written_as_json_has_it() -> None:
    assert to_json(LANTERN) == {
        "name": "a", "height": 1.5, "count": 2, "lit": True, "made_at": "2026-03-02T09:00:00.000000Z", "burns": 90.0,
        "colour": "red", "home": "/srv", "wick": {"thread": "wool", "length": 5}, "maker": None, "labels": ["x"],
        "spares": [{"thread": "silk", "length": None}], "texts": {"k": "v"},
        "parts": {"p": {"thread": "tin", "length": 3}}, "told": [1], "from": "ada", "either": "spare",
    }  # fmt: skip
    assert to_json({"s": frozenset({"one"}), 2: (Colour.GREEN,)}) == {"s": ["one"], "2": ["green"]}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("name", 3, "`name` must be text"),
        ("height", "tall", "`height` must be a number"),
        ("height", True, "`height` must be a number"),
        ("height", 1e400, "`height` must be a number"),
        ("height", float("nan"), "`height` must be a number"),
        ("height", 10**400, "`height` must be a number"),
        ("count", 1.0, "`count` must be a whole number"),
        ("count", True, "`count` must be a whole number"),
        ("lit", 1, "`lit` must be true or false"),
        ("made_at", "yesterday", "`made_at` must be a time such as"),
        ("made_at", "2026-03-02T09:00:00", "`made_at` must be a time such as"),
        ("made_at", 5, "`made_at` must be a time such as"),
        ("burns", "5m", "`burns` must be a number of seconds"),
        ("burns", 1e400, "`burns` must be a number of seconds"),
        ("colour", "blue", "`colour` must be one of red, green"),
        ("colour", ["red"], "`colour` must be one of red, green"),
        ("home", 3, "`home` must be a PurePosixPath"),
        ("wick", "wool", "`wick` must be an object"),
        ("wick", {}, "`wick.thread` is missing"),
        ("wick", {"thread": "wool", "length": 0}, "`wick.length` must be a whole number of at least 1"),
        ("wick", {"thread": "wool", "wide": 1}, "`wide` is not known; known are thread, length"),
        ("maker", 3, "`maker` must be text"),
        ("labels", [1], "`labels` must be a list of texts"),
        ("labels", {"x": 1}, "`labels` must be a list of texts"),
        ("spares", "wool", "`spares` must be a list"),
        ("spares", [{"thread": "wool"}, {}], "`spares[1].thread` is missing"),
        ("texts", {"k": 1}, "`texts` must be an object of texts"),
        ("texts", ["k"], "`texts` must be an object"),
        ("parts", {"p": {}}, "`parts.p.thread` is missing"),
        ("either", 3, "`either` must be text"),
        ("nmae", "x", "`nmae` is not known; known are name,"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(key: str, value: Any, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_json(Lantern, to_json(LANTERN) | {key: value})
    assert told in refused.value.message


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        from_json(Street, {"lamps": [{"lit": 1}, {"name": 2}], "length": 200, "objects": 1})
    assert refused.value.message == (
        "Nothing was done: `lamps[0].name` is missing; `lamps[0].lit` must be true or false; `lamps[1].name` must be "
        "text; `length` must be a number from 0 to 100; `objects` must be a list."
    )
    for value in (None, [], "x"):
        with pytest.raises(UsageError, match="it must be an object"):
            from_json(Wick, value)


def test_unknown_keys_are_ignored_where_that_is_asked_for() -> None:
    assert from_json(Wick, {"thread": "wool", "wide": 1}, strict=False) == Wick("wool")


def test_an_empty_text_counts_as_missing_only_where_that_is_asked_for() -> None:
    assert from_json(Wick, {"thread": ""}) == Wick("")
    with pytest.raises(UsageError, match="`thread` is missing"):
        from_json(Wick, {"thread": ""}, filled=True)


def test_null_is_a_value_where_it_may_be_one_and_else_leaves_the_default() -> None:
    assert from_json(Wick, {"thread": "wool", "length": None}) == Wick("wool", None)
    assert from_json(Street, {"lamps": [], "length": None}).length == 1.0
    with pytest.raises(UsageError, match="`thread` must be text"):
        from_json(Wick, {"thread": None})


def test_a_single_text_counts_as_a_list_of_one() -> None:
    assert from_json(Lantern, to_json(LANTERN) | {"labels": "x"}) == LANTERN


def test_the_schema_names_types_choices_bounds_and_what_is_required() -> None:
    schema = schema_of(Lantern)
    wick = {
        "type": "object",
        "properties": {
            "thread": {"type": "string", "description": "What it is made of."},
            "length": {"type": "integer", "minimum": 1, "description": "In millimetres."},
        },
        "required": ["thread"],
    }
    assert schema["properties"] == {
        "name": {"type": "string"}, "height": {"type": "number"}, "count": {"type": "integer"},
        "lit": {"type": "boolean"}, "made_at": {"type": "string"}, "burns": {"type": "number"},
        "colour": {"type": "string", "enum": ["red", "green"]}, "home": {"type": "string"}, "wick": wick,
        "maker": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}},
        "spares": {"type": "array", "items": wick}, "texts": {"type": "object", "additionalProperties": True},
        "parts": {"type": "object", "additionalProperties": True}, "told": {},
        "from": {"type": "string", "description": "Who sent it."},
        "either": {"anyOf": [wick, {"type": "string"}], "description": "A wick, or the name of one."},
    }  # fmt: skip
    assert "from" not in schema["required"]
    assert schema["required"][:2] == ["name", "height"]


def test_a_day_is_written_and_read() -> None:
    @dataclass(frozen=True)
    class Bill:
        day: date

    bill = Bill(date(2026, 3, 2))
    assert to_json(bill) == {"day": "2026-03-02"}
    assert from_json(Bill, {"day": "2026-03-02"}) == bill
    with pytest.raises(UsageError, match="`day` must be a day such as 2026-03-02"):
        from_json(Bill, {"day": "soon"})


def test_a_whole_number_that_no_database_holds_is_refused() -> None:
    @dataclass(frozen=True)
    class Counted:
        count: int

    assert from_json(Counted, {"count": LARGEST}) == Counted(LARGEST)
    with pytest.raises(UsageError, match="not as large"):
        from_json(Counted, {"count": LARGEST + 1})
