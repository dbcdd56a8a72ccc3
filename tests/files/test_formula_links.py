"""Formulas are linked to where `bd` looks for them."""

from pathlib import Path

import pytest

from lamplighter.adapters.beads.health import trouble
from lamplighter.adapters.files.formula_links import link_formulas
from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.model import City

FORMULA = 'formula = "{name}"\n[[steps]]\nid = "a"\ntitle = "A"\n'


def _city(root: Path, text: str = "") -> City:
    (root / "city.toml").write_text('[workspace]\nname = "town"\n' + text)
    return load_city(root, env={}).city


def _formula(layer: Path, name: str) -> Path:
    layer.mkdir(parents=True, exist_ok=True)
    path = layer / f"{name}.formula.toml"
    path.write_text(FORMULA.format(name=name))
    return path


BD = """[beads]
provider = "bd"
[formulas]
dir = "own"
[[rigs]]
name = "shop"
path = "shop"
formulas_dir = "shop-formulas"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    for place in (root / ".beads", root / "shop/.beads"):
        place.mkdir(parents=True)
    return root


def test_the_city_and_each_rig_get_the_formulas_that_are_in_force_there(root: Path) -> None:
    own, hidden = _formula(root / "own", "build"), _formula(root / "own", "ship")
    better = _formula(root / "shop-formulas", "ship")
    city = _city(root, BD)
    link_formulas(city)
    link_formulas(city)
    links = root / ".beads/formulas"
    assert {path.name: path.readlink() for path in links.iterdir()} == {own.name: own, hidden.name: hidden}
    assert (root / "shop/.beads/formulas/ship.formula.toml").readlink() == better


def test_links_follow_what_changes_and_files_and_links_of_others_are_left_alone(root: Path) -> None:
    first = _formula(root / "own", "build")
    city = _city(root, BD)
    link_formulas(city)
    links = root / ".beads/formulas"
    (links / "mine.formula.toml").write_text("mine")
    (links / "theirs.formula.toml").symlink_to(root / "city.toml")
    _formula(root / "own", "late")
    first.unlink()
    link_formulas(city)
    assert sorted(path.name for path in links.iterdir()) == [
        "late.formula.toml", "mine.formula.toml", "theirs.formula.toml"
    ]  # fmt: skip
    (root / "own/late.formula.toml").unlink()
    link_formulas(city)
    assert sorted(path.name for path in links.iterdir()) == ["mine.formula.toml", "theirs.formula.toml"]


def test_nothing_is_made_where_bd_has_no_store(root: Path) -> None:
    (root / "shop/.beads").rmdir()
    _formula(root / "own", "build")
    link_formulas(_city(root, BD))
    assert not (root / "shop/.beads").exists()


def test_a_beads_directory_without_the_setting_is_told_and_with_it_not(root: Path) -> None:
    (root / "city.toml").write_text('[workspace]\nname = "town"\n')
    (warning,) = load_city(root, env={}).warnings
    assert "there is a .beads directory, but [beads] is not set" in str(warning)
    assert load_city(root, env={}, strict=True).warnings == (warning,)
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[beads]\nprovider = "store"\n')
    assert load_city(root, env={}).warnings == ()


def test_what_stands_in_the_way_of_a_bead_store_is_named_with_its_mend(root: Path) -> None:
    city = _city(root, BD)
    (root / "shop/.beads").rmdir()
    missing, rig = trouble(city, "bd", "/nowhere")
    assert "`bd` is not on the PATH" in missing.detail
    assert "Rig shop has no .beads directory" in rig.detail
    assert f"Run `bd init` in {root / 'shop'}." == rig.advice
    (script,) = trouble(city, "exec:./none.sh", "/nowhere")
    assert "none.sh is not there" in script.detail
    assert list(trouble(city, "store", "/nowhere")) == []
