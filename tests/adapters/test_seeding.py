import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamplighter.adapters.files.seeding import SeedRefused, write_seeds
from lamplighter.domain.sessions.presets.model import Place, SeedFile, Writing


def places(root: Path) -> dict[Place, Path]:
    return {place: root / place for place in Place}


def test_a_file_is_written_for_its_owner_only_and_again(tmp_path: Path) -> None:
    for content in ("first", "second"):
        write_seeds([SeedFile(Place.FILES, "deep/mcp.json", content)], places(tmp_path))
        path = tmp_path / "files/deep/mcp.json"
        assert path.read_text() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_what_a_person_s_file_says_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    theirs = {"theme": "dark", "onboarded": False, "projects": {"/a": {"trust": False}}, "keys": ["x"]}
    (home / ".claude.json").write_text(json.dumps(theirs))
    ours = {"theme": "light", "onboarded": True, "projects": {"/b": {"trust": True}}, "keys": ["y", "x"], "new": 1}
    seed = SeedFile(Place.HOME, ".claude.json", json.dumps(ours), Writing.MERGE_JSON)
    for _ in range(2):
        write_seeds([seed], places(tmp_path))
    assert json.loads((home / ".claude.json").read_text()) == {
        "theme": "dark", "onboarded": False, "projects": {"/a": {"trust": False}, "/b": {"trust": True}},
        "keys": ["x", "y"], "new": 1,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_person_s_file_that_cannot_be_added_to_is_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/settings.json").write_text(text)
    with pytest.raises(SeedRefused):
        write_seeds([SeedFile(Place.HOME, "settings.json", "{}", Writing.MERGE_JSON)], places(tmp_path))
    assert (tmp_path / "home/settings.json").read_text() == text


@pytest.mark.parametrize("path", ["../x", "/etc/x", "link/x"])
def test_a_path_that_leads_out_of_its_place_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "files/link").symlink_to(tmp_path / "outside")
    with pytest.raises(SeedRefused):
        write_seeds([SeedFile(Place.FILES, path, "x")], places(tmp_path))
    assert list((tmp_path / "outside").iterdir()) == []


def test_an_agent_s_start_leaves_a_file_it_cannot_read_and_writes_the_others(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/settings.json").write_text("{ // a comment")
    seeds = [SeedFile(Place.HOME, name, '{"a": 1}', Writing.MERGE_JSON) for name in ("settings.json", "other.json")]
    write_seeds(seeds, places(tmp_path), keep_unreadable=True)
    assert (tmp_path / "home/settings.json").read_text() == "{ // a comment"
    assert json.loads((tmp_path / "home/other.json").read_text()) == {"a": 1}


def test_a_link_in_a_home_is_its_owner_s_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles/claude.json"
    kept.write_text('{"theme": "dark"}')
    (tmp_path / "home/.claude.json").symlink_to(kept)
    write_seeds([SeedFile(Place.HOME, ".claude.json", '{"new": 1}', Writing.MERGE_JSON)], places(tmp_path))
    assert (tmp_path / "home/.claude.json").is_symlink()
    assert json.loads(kept.read_text()) == {"theme": "dark", "new": 1}


@pytest.mark.parametrize("place", list(Place))
def test_no_place_is_left_by_dots(tmp_path: Path, place: Place) -> None:
    with pytest.raises(SeedRefused):
        write_seeds([SeedFile(place, "deep/../../x", "x")], places(tmp_path))
    assert not (tmp_path / "x").exists()


def test_a_file_that_nobody_can_read_is_refused_or_left(tmp_path: Path) -> None:
    (tmp_path / "home/settings.json").mkdir(parents=True)  # as unreadable to root as to others
    seed = SeedFile(Place.HOME, "settings.json", "{}", Writing.MERGE_JSON)
    with pytest.raises(SeedRefused, match="cannot be read"):
        write_seeds([seed], places(tmp_path))
    write_seeds([seed], places(tmp_path), keep_unreadable=True)
    assert (tmp_path / "home/settings.json").is_dir()


def test_programs_that_start_side_by_side_lose_nothing_of_each_other(tmp_path: Path) -> None:
    def add(number: int) -> None:
        content = json.dumps({"projects": {f"/{number}": {"trust": True}}})
        write_seeds([SeedFile(Place.HOME, ".claude.json", content, Writing.MERGE_JSON)], places(tmp_path))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(add, range(60)))
    assert len(json.loads((tmp_path / "home/.claude.json").read_text())["projects"]) == 60
    assert [path.name for path in (tmp_path / "home").iterdir()] == [".claude.json"]
