from pathlib import Path

from lamplighter.adapters.files.automations import LARGEST_FILE, LayerDirectory, scan

GOOD = '[automation]\nexec = "make"\ngate = "cooldown"\ninterval = "5m"\n'


def test_layers_are_read_low_to_high_and_the_winners_path_is_told(tmp_path: Path) -> None:
    low, high = tmp_path / "low", tmp_path / "high"
    write(low, "sweep", GOOD)
    write(low, "tidy", GOOD)
    winner = write(high, "sweep", GOOD.replace("make", "make high"))
    found = scan([LayerDirectory(low), LayerDirectory(high), LayerDirectory(tmp_path / "absent")])
    assert [one.automation.name for one in found.defined] == ["sweep", "tidy"]
    assert found.defined[0].automation.path == str(winner)
    assert not found.problems


def test_rigs_are_stamped(tmp_path: Path) -> None:
    write(tmp_path, "db-health", GOOD)
    found = scan([LayerDirectory(tmp_path, "a"), LayerDirectory(tmp_path, "b")])
    assert [one.automation.scoped_name for one in found.defined] == ["db-health:rig:a", "db-health:rig:b"]


def test_unreadable_files_are_told_one_by_one_and_the_others_live(tmp_path: Path) -> None:
    write(tmp_path, "good", GOOD)
    write(tmp_path, "torn", "[automation\nexec = ")
    write(tmp_path, "huge", "#" * (LARGEST_FILE + 1))
    write(tmp_path, "deep", "a = " + "[" * 5000)
    write(tmp_path, "binary", "").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "automations" / "folder" / "automation.toml").mkdir(parents=True)
    (tmp_path / "automations" / "empty").mkdir()
    (tmp_path / "automations" / "note.txt").write_text("not a directory")
    found = scan([LayerDirectory(tmp_path)])
    assert [one.automation.name for one in found.defined] == ["good"]
    told = {Path(one.path).parent.name: one.message for one in found.problems}
    assert set(told) == {"torn", "huge", "deep", "binary", "folder"}
    assert "line 1" in told["torn"]
    assert "larger than" in told["huge"]
    assert "not UTF-8" in told["binary"]
    assert "not a file" in told["folder"]


def test_a_file_where_the_folder_should_be_is_an_empty_layer(tmp_path: Path) -> None:
    (tmp_path / "automations").write_text("")
    assert scan([LayerDirectory(tmp_path)]).defined == ()


def write(layer: Path, name: str, text: str) -> Path:
    path = layer / "automations" / name / "automation.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path
