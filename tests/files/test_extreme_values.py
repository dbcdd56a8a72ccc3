"""Values at the edge of what a key takes: refused with the key, or all that follows from them can be worked out."""

import contextlib
import re
from pathlib import Path

import pytest
from city_files import ENV, MakeCity, city_maker
from key_effects import effects
from test_every_key_counts import CASES, FILES, Case

from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.kit.errors import UsageError

EXTREMES = {
    "longest": '"365000d"',
    "too_long": '"4000000d"',
    "shortest": '"1ns"',
    "none": '"0s"',
    "largest": "9223372036854775807",
    "beyond": "9" * 40,
    "trillion": "1000000000000",
    "smallest": "-9223372036854775808",
    "float": "1e308",
    "infinite": "inf",
    "empty": '""',
    "blank": '" "',
    "nul": '"a\\u0000b"',
    "nuls": '["a\\u0000b"]',
    "nul_in_table": '{ X = "a\\u0000b" }',
    "line": '"a\\nb"',
    "climbs": '"../../.."',
    "wide": '"' + "x" * 5000 + '"',
    "list_of_nothing": "[]",
}
OPENS = {("Store", "url"): (UsageError,)}
"""What is refused in a sentence by whatever opens it."""
PLAIN = sorted(key for key, case in CASES.items() if isinstance(case, Case))


@pytest.fixture
def make_deep(tmp_path: Path) -> MakeCity:
    """A city so far down that what climbs out of it stays in the directory of this test."""
    return city_maker(tmp_path / "a" / "b" / "c" / "bright-lights")


@pytest.mark.parametrize("key", PLAIN, ids=".".join)
def test_an_extreme_value_is_refused_or_can_be_worked_with(key: tuple[str, str], make_deep: MakeCity) -> None:
    case = CASES[key]
    assert isinstance(case, Case)
    line = re.compile(rf"^({re.escape(key[1])} = ).*$", re.MULTILINE)
    last = list(line.finditer(case.given))
    if not last:
        assert key[1] in case.given  # a list of tables
        return
    for name, value in EXTREMES.items():
        text = f"{case.given[: last[-1].start()]}{key[1]} = {value}{case.given[last[-1].end() :]}"
        root = make_deep({**FILES, "city.toml": case.city, case.file: text})
        with contextlib.suppress(ConfigInvalid, *OPENS.get(key, ())):
            assert effects(load_city(root, env=ENV)), name
