"""Values at the edge of what a key of automation.toml takes: refused by name, or all that follows can be worked out."""

from typing import Any

import pytest
from test_every_automation_key_counts import CASES, EXEC, effects

from lamplighter.domain.automations.decode import Invalid, Origin, decode_file
from lamplighter.domain.automations.model import Automation

EXTREMES: list[Any] = [
    "365000d", "4000000d", "1ns", "0s", 2**63 - 1, 2**63, 10**40, -(2**63), 1e308, float("inf"), float("nan"), "", " ",
    "a\0b", ["a\0b"], {"X": "a\0b"}, {"a\0b": "x"}, "a\nb", "../../..", "x" * 100_000, [], {}, [[]], "\udfff", True,
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00",
]  # fmt: skip


@pytest.mark.parametrize("key", sorted(CASES))
def test_an_extreme_value_is_refused_or_can_be_worked_with(key: str) -> None:
    case = CASES[key]
    base, given = (EXEC, {}) if isinstance(case, str) else case
    whole, _, part = key.rpartition(".")
    for value in EXTREMES:
        tree = {**base, **given}
        held = tree.get(whole)
        tree |= {whole: {**(held if isinstance(held, dict) else {}), part: value}} if whole else {part: value}
        found = decode_file({"automation": {one: it for one, it in tree.items() if it is not None}}, Origin("f", "job"))
        if isinstance(found, Invalid):
            assert all(one.message for one in found.problems), (key, value)
        else:
            assert isinstance(found, Automation)
            assert effects(found), (key, value)
