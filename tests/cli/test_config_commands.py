"""`lamp config`, `rig`, `suspend`, `resume`, `doctor`: what they print, and that they leave all other bytes alone."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamplighter.cli.main import run
from lamplighter.kit.errors import Unavailable

TEXT = """\
# The town's own file.  Two spaces stay.

[workspace]   # who we are
name = "town"

[daemon]
max_restarts = 7      # lucky

[[rigs]]
name = "shop"
path = "rigs/shop"
"""

Lamp = Callable[..., tuple[int, str, str]]


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    (root / "rigs" / "shop").mkdir(parents=True)
    (root / "city.toml").write_text(TEXT)
    assert run(["init", str(root)]) == 0
    return root


@pytest.fixture
def lamp(town: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lamp]:
    capsys.readouterr()

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["--city", str(town), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_a_misspelt_variable_is_told_by_check_and_doctor(lamp: Lamp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_API_PROT", "0")
    for command in (("config", "check"), ("doctor",)):
        code, out, _ = lamp(*command)
        assert code == 0
        assert "LAMP_API_PROT" in out
        assert "`LAMP_API_PORT`" in out
    assert lamp("config", "check", "--strict")[0] == 2


def test_init_keeps_the_file_it_finds(town: Path) -> None:
    assert (town / "city.toml").read_text() == TEXT


def test_check_says_that_all_is_right(lamp: Lamp) -> None:
    code, out, _ = lamp("config", "check", "--json")
    assert code == 0
    assert json.loads(out)["valid"] is True


def test_check_tells_every_problem_at_once_with_file_key_and_line(lamp: Lamp, town: Path) -> None:
    (town / "city.toml").write_text(TEXT.replace("max_restarts = 7", 'max_restart = 7\npatrol_interval = "soon"'))
    code, _, err = lamp("config", "check")
    assert code == 2
    assert "city.toml: daemon.max_restart: is not a setting; did you mean `max_restarts`? (line 7)" in err
    assert "city.toml: daemon.patrol_interval: `soon` is not a duration" in err


def test_explain_names_layer_file_and_line(lamp: Lamp) -> None:
    code, out, _ = lamp("config", "explain", "daemon.max_restarts", "--json")
    assert code == 0
    assert json.loads(out) == [
        {"key": "daemon.max_restarts", "value": "7", "layer": "city", "file": "city.toml", "line": 7}
    ]


def test_explain_of_an_unknown_key_gives_the_nearest_and_exits_3(lamp: Lamp) -> None:
    code, _, err = lamp("config", "explain", "daemon.max_restart")
    assert code == 3
    assert "did you mean `max_restarts`?" in err


def test_show_is_a_file_that_loads_to_the_same(lamp: Lamp, town: Path) -> None:
    _, shown, _ = lamp("config", "show")
    (town / "city.toml").write_text(shown)
    assert lamp("config", "show")[1] == shown


def test_suspend_and_resume_leave_every_other_byte(lamp: Lamp, town: Path) -> None:
    assert lamp("suspend")[0] == 0
    suspended = (town / "city.toml").read_text()
    assert suspended == TEXT.replace('name = "town"\n', 'name = "town"\nsuspended = true\n')
    code, out, _ = lamp("resume")
    assert (code, out.strip()) == (0, "Lifted: suspension.")
    assert (town / "city.toml").read_text() == suspended.replace("suspended = true", "suspended = false")


def test_rig_suspend_leaves_every_other_byte_and_says_so_only_once(lamp: Lamp, town: Path) -> None:
    assert lamp("rig", "suspend", "shop")[1].strip() == "Rig shop is suspended now."
    assert (town / "city.toml").read_text() == TEXT.rstrip("\n") + "\nsuspended = true\n"
    assert lamp("rig", "suspend", "shop")[1].strip() == "Rig shop was suspended already."


def test_rig_add_appends_a_rig_and_nothing_else(lamp: Lamp, town: Path) -> None:
    (town / "rigs" / "docs").mkdir()
    code, out, _ = lamp("rig", "add", str(town / "rigs" / "docs"), "--json")
    assert code == 0
    assert json.loads(out) == {"name": "docs", "path": "rigs/docs", "prefix": "do"}
    assert (town / "city.toml").read_text().startswith(TEXT)


@pytest.mark.parametrize(
    "line", ["suspend", "rig suspend shop", "rig add DOCS", "agent resume mayor"], ids=lambda line: line.split()[0:2]
)
def test_a_file_is_put_back_when_its_event_cannot_be_recorded(
    lamp: Lamp, town: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    docs = town / "rigs" / "docs"
    docs.mkdir()
    with (town / "city.toml").open("a") as file:
        file.write('\n[[agents]]\nname = "mayor"\nstart_command = "true"\nsuspended = true\n')
    before = (town / "city.toml").read_text()

    def away(*_: object) -> None:
        raise Unavailable("The database is away.")

    with monkeypatch.context() as patch:
        patch.setattr("lamplighter.store.events.Events.append", away)
        code, _, err = lamp(*line.replace("DOCS", str(docs)).split())
    assert (code != 0, "The database is away." in err) == (True, True)
    assert (town / "city.toml").read_text() == before
    assert lamp(*line.replace("DOCS", str(docs)).split())[0] == 0
    assert (town / "city.toml").read_text() != before


def test_two_rigs_in_one_directory_are_told_and_a_second_one_is_not_added(lamp: Lamp, town: Path) -> None:
    (town / "again").symlink_to(town / "rigs" / "shop")
    code, _, err = lamp("rig", "add", str(town / "again"), "--name", "again")
    assert (code, "the directory of rig `shop` already" in err) == (4, True), err
    with (town / "city.toml").open("a") as file:
        file.write('\n[[rigs]]\nname = "other"\npath = "rigs/../rigs/shop"\n')
    code, out, _ = lamp("config", "check")
    assert (code, "rigs[1].path: is the directory of rig `shop` too" in out) == (0, True), out
    assert "is the directory of rig `shop` too" in lamp("doctor")[1]


def test_a_rig_that_would_make_the_file_wrong_is_not_added(lamp: Lamp, town: Path) -> None:
    (town / "rigs" / "other").mkdir()
    code, _, err = lamp("rig", "add", str(town / "rigs" / "other"), "--prefix", "sh")
    assert code == 2, err
    assert (town / "city.toml").read_text() == TEXT


def test_doctor_finds_what_a_dead_controller_left_and_mends_it(lamp: Lamp, town: Path) -> None:
    (town / ".gc" / "daemon.pid").write_text("1\n")
    code, out, _ = lamp("doctor")
    assert code == 1
    assert "daemon.pid was left by a dead controller" in out
    assert lamp("doctor", "--fix")[0] == 0
    assert not (town / ".gc" / "daemon.pid").exists()


def test_doctor_tells_a_directory_that_cannot_be_written(lamp: Lamp, town: Path) -> None:
    (town / ".gc" / "commands").touch()
    code, out, _ = lamp("doctor")
    assert code == 1
    assert "commands cannot be written: Not a directory" in out


def test_doctor_tells_a_broken_formula_with_its_file(lamp: Lamp, town: Path) -> None:
    (town / ".gc" / "formulas" / "bad.formula.toml").write_text('formula = "bad"\n')
    code, out, _ = lamp("doctor")
    assert code == 1
    assert "bad.formula.toml: steps: a formula needs at least one step" in out


def test_doctor_tells_a_broken_automation_with_its_file(lamp: Lamp, town: Path) -> None:
    file = town / ".gc" / "formulas" / "automations" / "bad" / "automation.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[automation]\nexec = "true"\ngate = "never"\n')
    lamp("automation", "list")
    code, out, _ = lamp("doctor")
    assert code == 1
    assert "automations bad" in out
    assert "automation.toml" in out


def test_doctor_tells_a_missing_rig(lamp: Lamp, town: Path) -> None:
    (town / "rigs" / "shop").rmdir()
    code, out, _ = lamp("doctor", "--json")
    assert code == 1
    assert any(row["check"] == "rigs" and row["level"] == "problem" for row in json.loads(out))


def test_a_git_rig_is_fine(lamp: Lamp, town: Path) -> None:
    subprocess.run(["git", "init", "-q", str(town / "rigs" / "shop")], check=True)
    code, out, _ = lamp("doctor")
    assert code == 0
    assert "Rig shop is at" in out


def test_doctor_tells_a_fetched_topology_that_was_altered(lamp: Lamp, town: Path) -> None:
    kept = town / ".gc" / "topologies" / "shared"
    kept.mkdir(parents=True)
    (kept / "topology.toml").write_text('[topology]\nname = "shared"\nschema = 1\n')
    pin = 'source = "https://example.org/t.git"\nref = "v1"\ncommit = "c"\nsha256 = "0"\n'
    (town / "topology.lock").write_text(f"[topologies.shared]\n{pin}")
    code, out, _ = lamp("doctor")
    assert code == 1
    assert "Topology shared is no longer what topology.lock recorded" in out
