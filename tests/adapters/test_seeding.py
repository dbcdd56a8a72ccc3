import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamplighter.adapters.files.seeding import SeedRefused, lay_mirrors, note_entries, take_out_entries, write_seeds
from lamplighter.domain.sessions.presets.model import Mirror, Place, SeedFile, Writing


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


def test_a_file_that_builds_on_a_person_s_has_both_and_leaves_theirs_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "home/.gemini/settings.json"
    theirs.parent.mkdir(parents=True)
    text = '{"theme": "dark", // as I like it: "//"\n "mcpServers": {"docs": {"url": "http://d"}, "automation": {}}}'
    theirs.write_text(text)
    ours = json.dumps({"mcpServers": {"automation": {"url": "http://a"}}})
    write_seeds([SeedFile(Place.FILES, "s.json", ours, base=".gemini/settings.json")], places(tmp_path))
    assert json.loads((tmp_path / "files/s.json").read_text()) == {
        "theme": "dark", "mcpServers": {"docs": {"url": "http://d"}, "automation": {"url": "http://a"}},
    }  # fmt: skip
    assert theirs.read_text() == text


def test_a_mirror_shares_all_that_is_in_a_folder_but_the_session_s_own_files(tmp_path: Path) -> None:
    theirs, files = tmp_path / "home/.gemini", tmp_path / "files"
    theirs.mkdir(parents=True)
    (theirs / "oauth.json").write_text("login")
    (theirs / "settings.json").write_text("{}")
    mirror = Mirror(".gemini", "g/.gemini", own=("settings.json",), shared=("tmp",))
    for _ in range(2):
        lay_mirrors([mirror], files, tmp_path / "home")
    write_seeds([SeedFile(Place.FILES, "g/.gemini/settings.json", '{"ours": 1}')], places(tmp_path))
    (files / "g/.gemini/oauth.json").write_text("renewed")
    (files / "g/.gemini/tmp/chat").write_text("kept")
    assert (theirs / "oauth.json").read_text() == "renewed"
    assert (theirs / "tmp/chat").read_text() == "kept"
    assert (theirs / "settings.json").read_text() == "{}"


def entry(token: str) -> SeedFile:
    content = json.dumps({"mcpServers": {"automation": {"token": token}}})
    return SeedFile(Place.WORK, ".cursor/mcp.json", content, Writing.ENTRY)


def put_in(seed: SeedFile, root: Path, notes: Path) -> None:
    note_entries([seed], places(root), notes)
    write_seeds([seed], places(root))


def test_an_entry_in_a_person_s_file_replaces_an_old_one_and_is_taken_out_again(tmp_path: Path) -> None:
    path = tmp_path / "work/.cursor/mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"docs": {}, "automation": {"token": "of a run that is over"}}}))
    put_in(entry("new"), tmp_path, tmp_path / "notes")
    assert json.loads(path.read_text())["mcpServers"]["automation"] == {"token": "new"}
    for _ in range(2):
        take_out_entries(tmp_path / "notes")
    assert json.loads(path.read_text()) == {"mcpServers": {"docs": {}}}


def test_an_entry_that_another_session_has_written_over_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "work/.cursor/mcp.json"
    put_in(entry("first"), tmp_path, tmp_path / "first")
    put_in(entry("second"), tmp_path, tmp_path / "second")
    take_out_entries(tmp_path / "first")
    assert json.loads(path.read_text())["mcpServers"]["automation"] == {"token": "second"}
    take_out_entries(tmp_path / "second")
    assert not path.parent.exists(), "it held nothing but our entry"
