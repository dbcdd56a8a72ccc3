import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from city_files import ENV, MakeCity
from city_with_every_key import FILES as EVERYTHING
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.topologies import Fetch
from lamplighter.domain.city.tree import ConfigInvalid, Problem

# Without the topology that lies in git, so that the unharmed city loads and every check behind it is reached.
FILES = {**EVERYTHING, "city.toml": EVERYTHING["city.toml"].replace('topology = "far"', 'topology = "packs/near"')}
FILES["packs/near/topology.toml"] = '[topology]\nname = "near"\nschema = 1\n[[agents]]\nname = "reviewer"\n'

WORDS = ["true", "-1", "0x10", '"7d"', "[]", "{}", "[[1]]", "2026-01-01", '""', '"{{.X"', "nan", '"a/b"', "'''x'''"]


def _drop_line(lines: list[str], at: int, _word: str) -> None:
    del lines[at]


def _double_line(lines: list[str], at: int, _word: str) -> None:
    lines.insert(at, lines[at])


def _other_value(lines: list[str], at: int, word: str) -> None:
    lines[at] = re.sub(r"=.*", f"= {word}", lines[at])


def _other_key(lines: list[str], at: int, word: str) -> None:
    lines[at] = re.sub(r"^\w+", lambda match: match[0][::-1] or word, lines[at])


def _cut(lines: list[str], at: int, word: str) -> None:
    lines[at] = lines[at][: len(word)]


def _header(lines: list[str], at: int, _word: str) -> None:
    lines[at] = lines[at].replace("[[", "[").replace("]]", "]")


def _swap(lines: list[str], at: int, word: str) -> None:
    other = len(word) % len(lines)
    lines[at], lines[other] = lines[other], lines[at]


MUTATIONS: list[Callable[[list[str], int, str], None]] = [
    _drop_line, _double_line, _other_value, _other_key, _cut, _header, _swap,
]  # fmt: skip


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rough")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def outcome(city: Path) -> list[Problem] | None:
    """What is wrong with a city, or None."""
    try:
        load_city(city, env=ENV, fetch=Fetch.NEVER)
    except ConfigInvalid as error:
        return error.problems
    return None


@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6), file=st.sampled_from(sorted(FILES)))
def test_a_mutated_file_loads_or_is_told_what_is_wrong(city: Path, seed: int, count: int, file: str) -> None:
    chance = random.Random(seed)
    lines = FILES[file].splitlines()
    for _ in range(count):
        if lines:
            chance.choice(MUTATIONS)(lines, chance.randrange(len(lines)), chance.choice(WORDS))
    (city / file).write_text("\n".join(lines))
    try:
        problems = outcome(city)
    finally:
        (city / file).write_text(FILES[file])
    assert problems is None or problems
    assert all("\n" not in str(problem) for problem in problems or ())


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300))
def test_rubbish_is_told_to_be_rubbish(city: Path, data: bytes) -> None:
    (city / "city.toml").write_bytes(data)
    try:
        problems = outcome(city)
    finally:
        (city / "city.toml").write_text(FILES["city.toml"])
    assert problems is None or len(problems) >= 1


@pytest.mark.timeout(20)
def test_a_pipe_among_the_files_of_a_city_keeps_nobody_waiting(make_city: MakeCity) -> None:
    root = make_city({"city.toml": '[formulas]\ndir = "formulas"\n', "formulas/tidy.formula.toml": ""})
    before = load_city(root, env=ENV).revision
    os.mkfifo(root / "formulas" / "pipe.toml")
    assert load_city(root, env=ENV).revision != before
