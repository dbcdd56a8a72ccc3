from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.keys import Shape, keys_of
from lamplighter.domain.city.model import City, TopologyFile
from lamplighter.domain.city.tree import Findings, Origin, Place

ROOT = Place(Origin("city", "city.toml"))


def found_in(tree: dict[str, Any], section: type = City) -> list[str]:
    found = Findings()
    build(read(section, tree, ROOT, found), found)
    return [str(problem) for problem in found.problems]


def every_key(section: type, wrap: Any = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each key of the model, and how a file looks that has only that key, misspelled."""
    wrap = wrap or (lambda tree: tree)
    for key in keys_of(section).values():
        wrong = key.name + key.name[-1]
        yield f"{section.__name__}.{key.name}", key.name, wrap({wrong: 1})
        if key.holds is not None:
            yield from every_key(key.holds, _wrapper(wrap, key.name, key.shape))


def _wrapper(wrap: Any, name: str, shape: Shape) -> Any:
    match shape:
        case Shape.ROWS:
            return lambda tree: wrap({name: [tree]})
        case Shape.NAMED:
            return lambda tree: wrap({name: {"some": tree}})
        case _:
            return lambda tree: wrap({name: tree})


@pytest.mark.parametrize(
    ("section", "key", "tree"),
    [
        pytest.param(section, key, tree, id=f"{section.__name__}:{name}")
        for section in (City, TopologyFile)
        for name, key, tree in every_key(section)
    ],
)
def test_every_key_misspelled_once_brings_its_name(section: type, key: str, tree: dict[str, Any]) -> None:
    assert any(f"is not a setting; did you mean `{key}`?" in line for line in found_in(tree, section))


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"session": {"proivder": "x"}}, "city.toml: session.proivder: is not a setting; did you mean `provider`?"),
        ({"daemon": {"wisp_ttl": "7 days"}}, "daemon.wisp_ttl: `7 days` is not a duration"),
        ({"daemon": {"patrol_interval": 30}}, "must be a duration such as `90s`, `1h30m` or `7d`, not the number 30"),
        ({"daemon": {"patrol_interval": "0s"}}, "must be longer than zero"),
        ({"daemon": {"max_restarts": True}}, "must be a whole number, not `true`"),
        ({"daemon": {"max_restarts": -2}}, "is -2; it must be -1 or more"),
        ({"daemon": {"max_restarts": 1 << 900}}, "not a number too large to keep"),
        ({"workspace": {"suspended": "yes"}}, 'must be `true` or `false`, not the text "yes"'),
        ({"workspace": {"name": date(2026, 1, 1)}}, "must be a text, not the date or time 2026-01-01"),
        ({"workspace": "x"}, "workspace: must be a table"),
        ({"agents": {"name": "x"}}, "agents: must be a list of tables, written `[[agents]]`, not a table"),
        ({"agents": [{}]}, "agents[0].name: is missing; it must be set"),
        ({"agents": [{"name": "a b"}]}, "agents[0].name: `a b` is not a name"),
        ({"agents": [{"name": "a/b"}]}, "`a/b` is not a name"),
        ({"agents": [{"name": "a", "env": {"X": 1}}]}, "agents[0].env.X: must be a text, not the number 1"),
        ({"agents": [{"name": "a", "env": {"A B": "1"}}]}, "is not a name of an environment variable"),
        ({"agents": [{"name": "a", "env": {"A": "x\0"}}]}, "holds a NUL"),
        ({"agents": [{"name": "a", "args": "x"}]}, "must be a list of texts"),
        ({"agents": [{"name": "a", "args": ["x", 1.5]}]}, "one item is the number 1.5"),
        ({"agents": [{"name": "a", "install_agent_hooks": ["codex"]}]}, "`codex` has no way to install hooks"),
        ({"agents": [{"name": "a", "install_agent_hooks": ["cluade"]}]}, "did you mean `claude`?"),
        ({"agents": [{"name": "a", "prompt_mode": "args"}]}, "`args` is not one of `arg`, `flag` or `none`"),
        ({"session": {"provider": "tmuxx"}}, "did you mean `tmux`?"),
        ({"session": {"provider": "exec:"}}, "`exec:` names no script"),
        ({"api": {"port": 70000}}, "70000 is not a port"),
        ({"providers": {"x": 1}}, "providers.x: must be a table"),
        ({"providers": {"x": {}}}, "providers.x.command: is missing"),
        ({"store": {"url": "postgresql://u:pw@h/d"}}, "holds a password"),
        ({"store": {"url": "http://[bad"}}, "is not a URL"),
        ({"notifications": {"bot_token": "x"}}, "secrets come from the environment"),
        ({"max_restarts": 3}, "it belongs in `[daemon]`"),
        ({"rigs": [{"name": "a", "path": " "}]}, "rigs[0].path: is empty"),
        ({"rigs": [{"name": "a", "path": "x", "prefix": "a-b"}]}, "`a-b` is not a bead prefix"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_its_key_and_what_is_wrong(tree: dict[str, Any], said: str) -> None:
    assert said in "\n".join(found_in(tree))


def test_all_problems_come_at_once() -> None:
    tree = {"nope": 1, "daemon": {"wisp_ttl": "x", "wat": 2}, "agents": [{}, {"name": 3}]}
    assert len(found_in(tree)) == 5


def test_keys_that_are_not_needed_are_noted_and_kept() -> None:
    found = Findings()
    city = build(read(City, {"dolt": {"port": 1}, "workspace": {"isolation": "x"}}, ROOT, found), found)
    assert not found.problems
    assert [remark.key for remark in found.remarks] == ["dolt", "workspace.isolation"]
    assert city.dolt.port == 1


def test_an_empty_file_is_a_city_of_defaults() -> None:
    found = Findings()
    assert build(read(City, {}, ROOT, found), found) == City()
    assert not found.problems
