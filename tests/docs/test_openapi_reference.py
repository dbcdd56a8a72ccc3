"""The committed description of the API is that of the code, whole and consistent in itself."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

from lamplighter.services import table
from lamplighter.web.description import page, written
from lamplighter.web.openapi import description

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"


def test_the_committed_description_is_that_of_the_code() -> None:
    assert COMMITTED.read_text() == written(), "run `python docs/write_openapi.py`"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_every_reference_leads_somewhere_and_every_shape_is_used() -> None:
    found = description()
    named = set(references(found))
    there = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in found["components"][kind]}
    assert named == there


def test_every_shape_is_a_schema() -> None:
    for schema in description()["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_operation_with_a_route_is_described_once() -> None:
    told = [one["operationId"] for methods in description()["paths"].values() for one in methods.values()]
    assert sorted(told) == sorted(one.name for one in table.every() if one.http is not None)


def test_the_page_for_people_has_every_operation_and_loads_nothing() -> None:
    shown = page()
    for methods in json.loads(written())["paths"].values():
        for one in methods.values():
            assert f'id="{one["operationId"]}"' in shown
    assert "<script" not in shown
    assert re.findall(r"(?:src|href)=\"(?!#|/api/)[^\"]*", shown) == []
