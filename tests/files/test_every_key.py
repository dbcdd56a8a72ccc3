import tomllib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from city_files import ENV, MakeCity
from city_with_every_key import CITY, FAR, FILES, FIRST, MORE

from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.keys import Shape, keys_of
from lamplighter.domain.city.model import City, TopologyFile


def test_a_city_that_uses_every_key_loads(make_city: MakeCity, make_repository: Callable[..., str]) -> None:
    root = make_city({**FILES, "city.toml": CITY.replace("FAR", make_repository("far", FAR))})
    loaded = load_city(root, env=ENV)
    assert {problem.message for problem in loaded.warnings} == {"is accepted and not used"}
    mayor = loaded.city.agent("mayor")
    assert mayor is not None
    assert (mayor.suspended, mayor.provider, dict(mayor.env)) == (True, "codex", {"X": "y"})
    assert loaded.city.daemon.wisp_ttl == timedelta(days=7)
    assert loaded.city.rigs[0].prefix == "so"
    assert loaded.city.providers["bot"].process_names == ()


def test_every_key_of_the_model_stands_in_that_city() -> None:
    given = {*_paths(City, tomllib.loads(CITY)), *_paths(City, tomllib.loads(MORE))}
    given |= _paths(TopologyFile, tomllib.loads(FIRST))
    assert _known(City) | _known(TopologyFile) == given


def _known(section: type) -> set[tuple[str, str]]:
    found = set()
    for key in keys_of(section).values():
        found.add((section.__name__, key.name))
        if key.holds is not None:
            found |= _known(key.holds)
    return found


def _paths(section: type, tree: dict[str, Any]) -> set[tuple[str, str]]:
    found = set()
    for name, value in tree.items():
        key = keys_of(section)[name]
        found.add((section.__name__, name))
        if key.holds is not None:
            for row in _rows(key.shape, value):
                found |= _paths(key.holds, row)
    return found


def _rows(shape: Shape, value: Any) -> Iterator[dict[str, Any]]:
    match shape:
        case Shape.ROWS:
            yield from value
        case Shape.NAMED:
            yield from value.values()
        case _:
            yield value
