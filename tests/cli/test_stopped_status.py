"""The status of a stopped city is told without loading its configuration, and never tells an old one."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lamp_program import ENVIRONMENT, here, lamp

from lamplighter.app.operations import DirectOperations
from lamplighter.app.settings import Settings
from lamplighter.app.stopped_status import stopped_status
from lamplighter.app.wiring import open_city
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.kit.shapes import to_json
from lamplighter.services.status import SHOW_STATUS, ShowStatus

CITY = """
include = ["more.toml"]

[workspace]
name = "town"
topology = "packs/base"

[api]
port = 0

[session]
provider = "subprocess"

[[agents]]
name = "mayor"
start_command = "sh -c 'sleep 300' --"
prompt_template = "prompts/mayor.md"

[[agents]]
name = "hands"
start_command = "sleep 300"
pool = { min = 0, max = 2 }
"""
TOPOLOGY = '[topology]\nname = "base"\nschema = 1\n[[agents]]\nname = "NAME"\nstart_command = "sleep 300"\n'


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    for folder in ("prompts/shared", "elsewhere/one", "elsewhere/two", "packs"):
        (root / folder).mkdir(parents=True)
    (root / "city.toml").write_text(CITY)
    (root / "more.toml").write_text('[[agents]]\nname = "smith"\nstart_command = "sleep 300"\n')
    (root / "prompts/mayor.md").write_text("You are {{.AgentName}}.\n")
    for name in ("one", "two"):
        (root / "elsewhere" / name / "topology.toml").write_text(TOPOLOGY.replace("NAME", name))
    (root / "packs/base").symlink_to(root / "elsewhere/one")
    assert here("init", str(root)).code == 0
    return root


def settings(root: Path, **variables: str) -> Settings:
    return Settings(cwd=root, city=None, actor="human", run=None, env=ENVIRONMENT | variables)


def whole(asked: Settings) -> dict[str, Any]:
    city = open_city(asked)
    try:
        found: dict[str, Any] = to_json(DirectOperations(city).do(SHOW_STATUS, ShowStatus(), here=True))
        return found
    finally:
        city.close()


def names(status: dict[str, Any] | None) -> list[str]:
    assert status is not None
    return [row["name"] for row in status["agents"]]


def test_the_first_status_keeps_what_the_next_one_needs(town: Path) -> None:
    assert stopped_status(settings(town)) is None
    told = whole(settings(town))
    assert names(told) == ["one", "mayor", "hands", "smith"]
    assert stopped_status(settings(town)) == told
    assert (town / ".gc/roster.json").stat().st_mode & 0o777 == 0o600


def same_size_and_time(town: Path) -> None:
    """As a careless tool does that sets a file's time back: only the content tells."""
    file, was = town / "city.toml", (town / "city.toml").stat()
    file.write_text(CITY.replace('"mayor"', '"major"', 1))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.stat().st_size == was.st_size


def another_topology(town: Path) -> None:
    (town / "packs/base").unlink()
    (town / "packs/base").symlink_to(town / "elsewhere/two")


def automation(town: Path, name: str, more: str = "") -> None:
    file = town / "automations" / name / "automation.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[automation]\nexec = "true"\ngate = "manual"\n{more}')


CHANGES: dict[str, Callable[[Path], object]] = {
    "city.toml, with the size and time it had": same_size_and_time,
    "an included file": lambda town: (town / "more.toml").write_text('[[agents]]\nname = "x"\nstart_command = "ls"\n'),
    "an included file that is gone": lambda town: (town / "more.toml").unlink(),
    "a prompt": lambda town: (town / "prompts/mayor.md").write_text("{{if}}"),
    "a partial that is new": lambda town: (town / "prompts/shared/new.md.tmpl").write_text("{{if}}"),
    "a file of a topology": lambda town: (town / "elsewhere/one/topology.toml").write_text(
        TOPOLOGY.replace("NAME", "three")
    ),
    "a link to another topology": another_topology,
    "a broken city.toml": lambda town: (town / "city.toml").write_text("[[x"),
    "a lock of fetched topologies": lambda town: (town / "topology.lock").write_text(""),
    "an automation that is new": lambda town: automation(town, "new"),
    "an automation that is changed": lambda town: automation(town, "old", "# changed\n"),
    "a damaged roster": lambda town: (town / ".gc/roster.json").write_text('{"format": 1'),
    "a roster of another program": lambda town: (town / ".gc/roster.json").write_text(
        (town / ".gc/roster.json").read_text().replace('"program": "', '"program": "9.')
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_under_a_stopped_city_is_noticed(town: Path, change: Callable[[Path], object]) -> None:
    whole(settings(town))
    assert stopped_status(settings(town)) is not None
    change(town)
    assert stopped_status(settings(town)) is None


def test_after_a_change_the_status_is_told_by_the_changed_files_and_kept_again(town: Path) -> None:
    whole(settings(town))
    same_size_and_time(town)
    told = whole(settings(town))
    assert names(told) == ["one", "major", "hands", "smith"]
    assert stopped_status(settings(town)) == told


def test_a_broken_file_is_told_each_time_and_nothing_is_kept_of_it(town: Path) -> None:
    whole(settings(town))
    (town / "city.toml").write_text("[[x")
    for _ in range(2):
        with pytest.raises(ConfigInvalid, match=r"city\.toml"):
            whole(settings(town))
        assert stopped_status(settings(town)) is None


def test_variables_that_set_keys_count_and_others_do_not(town: Path) -> None:
    whole(settings(town))
    assert stopped_status(settings(town, LAMP_WORKSPACE_SUSPENDED="true")) is None
    told = whole(settings(town, LAMP_WORKSPACE_SUSPENDED="true"))
    assert told["suspended"] is True
    assert stopped_status(settings(town, LAMP_WORKSPACE_SUSPENDED="true")) == told
    assert stopped_status(settings(town)) is None
    whole(settings(town))
    assert stopped_status(settings(town, LAMP_ACTOR="somebody")) is not None


def test_a_moved_city_and_a_copied_one_are_loaded_anew(town: Path) -> None:
    whole(settings(town))
    copy = shutil.copytree(town, town.parent / "copy", symlinks=True)
    assert stopped_status(settings(copy)) is None
    whole(settings(copy))
    assert stopped_status(settings(copy)) is None, "a copy is never told quickly: it has to be said that it is one"
    moved = town.rename(town.parent / "moved")
    assert stopped_status(settings(moved)) is None


def test_a_city_without_its_database_is_left_to_the_one_who_explains(town: Path) -> None:
    whole(settings(town))
    (town / ".gc/lamp.db").rename(town / "aside.db")
    assert stopped_status(settings(town)) is None


def test_records_are_read_each_time(town: Path) -> None:
    whole(settings(town))
    assert here("--city", str(town), "bead", "create", "Sweep").code == 0
    assert here("--city", str(town), "pause").code == 0
    quick = stopped_status(settings(town))
    assert quick is not None
    assert (quick["beads"], quick["paused"]) == ({"open": 1}, True)
    assert quick == whole(settings(town))


@pytest.fixture
def lit(town: Path) -> Iterator[Path]:
    assert lamp("daemon", "start", cwd=town).code == 0
    yield town
    lamp("stop", cwd=town)


def test_a_daemon_keeps_it_so_that_the_first_status_after_its_stop_is_quick(lit: Path) -> None:
    assert stopped_status(settings(lit)) is None, "a controller runs"
    assert lamp("stop", cwd=lit).code == 0
    quick = stopped_status(settings(lit))
    assert quick == whole(settings(lit))
    assert quick is not None
    assert [row["starts_in_window"] for row in quick["agents"]] == [1, 1, 0, 1]
    assert quick["nodes"][0]["state"] == "stopped"


def test_agents_that_run_without_a_controller_are_shown_as_running(town: Path) -> None:
    whole(settings(town))
    assert lamp("start", cwd=town).code == 0
    try:
        assert stopped_status(settings(town)) is None
        told = lamp("status", "--json", cwd=town).json
    finally:
        assert lamp("stop", cwd=town).code == 0
    assert [row["state"] for row in told["agents"]] == ["running", "running", "stopped", "running"]


def test_a_quarantine_is_told_with_its_end(town: Path) -> None:
    text = CITY.replace("sh -c 'sleep 300' --", "false")
    (town / "city.toml").write_text(text + "\n[daemon]\nmax_restarts = 1\n")
    assert lamp("start", cwd=town).code in {0, 1}
    assert lamp("stop", cwd=town).code == 0
    told = {row["name"]: row for row in lamp("status", "--json", cwd=town).json["agents"]}
    assert told["mayor"]["state"] == "quarantined"
    assert told["mayor"]["quarantined_until"]


@pytest.mark.parametrize("provider", ["tmux", ""])
def test_a_living_tmux_server_of_the_city_is_asked(town: Path, provider: str) -> None:
    (town / "city.toml").write_text(CITY.replace('"subprocess"', f'"{provider}"'))
    whole(settings(town))
    assert stopped_status(settings(town)) is not None
    assert lamp("start", cwd=town).code == 0
    try:
        assert stopped_status(settings(town)) is None
        told = lamp("status", "--json", cwd=town).json
        assert [row["state"] for row in told["agents"]] == ["running", "running", "stopped", "running"]
    finally:
        assert lamp("stop", cwd=town).code == 0
    assert stopped_status(settings(town)) == whole(settings(town))


@pytest.mark.parametrize("provider", ["fake", "exec:./sessions.sh"])
def test_a_provider_that_cannot_be_asked_cheaply_is_asked_properly(town: Path, provider: str) -> None:
    (town / "city.toml").write_text(CITY.replace('"subprocess"', f'"{provider}"'))
    whole(settings(town))
    assert stopped_status(settings(town)) is None


def test_a_city_on_another_database_than_sqlite_is_told_by_the_whole_program(town: Path) -> None:
    file = town / ".gc/roster.json"
    whole(settings(town))
    file.write_text(file.read_text().replace(f'"sqlite": "{town}/.gc/lamp.db"', '"sqlite": null'))
    assert stopped_status(settings(town)) is None


def test_a_broken_file_of_an_automation_is_told_by_a_stopped_city_too(town: Path) -> None:
    automation(town, "old", 'gaet = "cron"\n')
    first = whole(settings(town))
    [(where, told)] = first["controller"]["problems"].items()
    assert where == "automations"
    assert "old/automation.toml: automation.gaet: is not a setting" in told
    assert stopped_status(settings(town)) == first
    assert "Problem in automations" in here("status", "--city", str(town)).out
    automation(town, "old")
    assert whole(settings(town))["controller"]["problems"] == {}
