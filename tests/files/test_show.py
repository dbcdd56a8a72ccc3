from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from city_files import ENV, MakeCity
from city_with_every_key import CITY, FAR, FILES

from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City
from lamplighter.domain.city.show import explain, explain_agent, show
from lamplighter.kit.errors import NotFound

Load = Callable[..., LoadedCity]

PLAIN = {
    "city.toml": 'include = ["more.toml"]\n[workspace]\ntopology = "pack"\n[api]\nport = 1\n'
    '[[rigs]]\nname = "shop"\npath = "r"\n[[patches.agents]]\nname = "dog"\nnudge = "hi"\n',
    "more.toml": "[daemon]\nmax_restarts = 2\n",
    "pack/topology.toml": (
        '[topology]\nname = "pack"\nschema = 1\n[[agents]]\nname = "dog"\nenv = { API_TOKEN = "x" }\n'
    ),
}


def flat(city: City) -> City:
    """What a shown city can have in common with the one it was shown from."""
    rigs = tuple(replace(rig, topology="", topologies=(), overrides=()) for rig in city.rigs)
    workspace = replace(city.workspace, topology="", topologies=())
    return replace(city, include=(), rigs=rigs, workspace=workspace, topologies={})


def test_a_shown_city_loads_as_the_same_city(
    make_city: MakeCity, make_repository: Callable[..., str], tmp_path: Path
) -> None:
    root = make_city({**FILES, "city.toml": CITY.replace("FAR", make_repository("far", FAR))})
    loaded = load_city(root, env=ENV)
    other = tmp_path / "other"
    other.mkdir()
    for provenance in (False, True):
        (other / "city.toml").write_text(show(loaded, provenance=provenance))
        assert flat(load_city(other, env=ENV).city) == flat(loaded.city)


def test_provenance_names_file_and_line(load: Load) -> None:
    text = show(load(PLAIN, LAMP_API_HOST="::1"), provenance=True)
    assert "max_restarts = 2  # more.toml:2\n" in text
    assert 'name = "dog"  # pack/topology.toml:5\n' in text
    assert 'nudge = "hi"  # city.toml:11\n' in text
    assert 'host = "::1"  # LAMP_API_HOST\n' in text


def test_secrets_are_covered(load: Load) -> None:
    text = show(load(PLAIN, LAMP_STORE_URL="postgresql://me:hunter2@h/d"))
    assert "hunter2" not in text
    assert 'API_TOKEN = "•••"' in text


@pytest.mark.parametrize(
    ("key", "value", "layer", "file", "line"),
    [
        ("daemon.max_restarts", "2", "fragment", "more.toml", 2),
        ("daemon.patrol_interval", '"30s"', "default", "", None),
        ("api.port", "1", "city", "city.toml", 5),
        ("api.host", '"::1"', "environment", "LAMP_API_HOST", None),
        ("agents.dog.nudge", '"hi"', "city", "city.toml", 11),
        ("agents.dog.name", '"dog"', "topology", "pack/topology.toml", 5),
        ("rigs.shop.prefix", '"sh"', "derived", "", None),
        ("workspace.name", '"bright-lights"', "derived", "", None),
        ("session.k8s.namespace", '"gc"', "default", "", None),
    ],
)
def test_a_value_is_explained_by_layer_file_and_line(
    load: Load, key: str, value: str, layer: str, file: str, line: int | None
) -> None:
    (found,) = explain(load(PLAIN, LAMP_API_HOST="::1"), key)
    assert (found.key, found.value, found.layer, found.file, found.line) == (key, value, layer, file, line)


def test_sections_agents_and_lists_are_explained_whole(load: Load) -> None:
    loaded = load(PLAIN)
    assert {found.key for found in explain(loaded, "api")} == {"api.host", "api.port", "api.public_url"}
    assert "agents.dog.nudge" in {found.key for found in explain_agent(loaded, "dog")}
    assert {found.key for found in explain(loaded, "rigs")} >= {"rigs.shop.path"}
    assert explain(loaded, "configurations") == []


def test_rows_that_share_a_name_are_both_explained(load: Load) -> None:
    rigs = "".join(f'[[rigs]]\nname = "{name}"\npath = "{name}"\n' for name in ("xa", "yb"))
    rows = "".join(f'[[automations.overrides]]\nname = "db"\nrig = "{name}"\n' for name in ("xa", "yb"))
    found = explain(load({"city.toml": rigs + rows}), "automations.overrides.db.rig")
    assert [(one.value, one.line) for one in found] == [('"xa"', 9), ('"yb"', 12)]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("deamon.max_restarts", "did you mean `daemon`?"),
        ("daemon.max_restart", "`daemon.max_restart` is not a setting; did you mean `max_restarts`?"),
        ("agents.dgo", "There is no `dgo` in `agents`; did you mean `dog`?"),
        ("", "No key was given"),
    ],
)
def test_a_key_that_is_none_is_told(load: Load, key: str, said: str) -> None:
    with pytest.raises(NotFound) as raised:
        explain(load(PLAIN), key)
    assert said in raised.value.message


def test_bug_fingerprints_stay_through_a_new_load_comments_order_and_path(load: Load) -> None:
    one = '[[agents]]\nname = "a"\nnudge = "n"\nenv = { A = "1", B = "2" }\nprompt_template = "p.md"\n'
    two = '# note\n[[agents]]\nenv = { B = "2", A = "1" }\nprompt_template = "p.md" # x\nnudge = "n"\nname = "a"\n'
    first = load({"city.toml": one, "p.md": "hello"})
    second = load({"city.toml": two, "p.md": "hello"}, PATH="/other/bin", GC_DRAIN="1")
    third = load({"city.toml": two, "p.md": "hello!"})
    assert first.fingerprint(first.city.agents[0]) == second.fingerprint(second.city.agents[0])
    assert first.fingerprint(first.city.agents[0]) != third.fingerprint(third.city.agents[0])
