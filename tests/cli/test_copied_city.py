"""A city that was copied, moved, restored or cloned; and starts that race."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, Said, here, lamp, one_sentence, until

from lamplighter.adapters.files.city_id import read_city_id

CITY = """\
[workspace]
name = "town"
[api]
port = 0
[session]
provider = "subprocess"
[daemon]
shutdown_timeout = "2s"
[[agents]]
name = "mayor"
start_command = "exec sleep 600"
"""
LONG = '[automation]\nexec = "touch began; exec sleep 600"\ngate = "manual"\n'

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes cities; whatever they run is stopped at the end."""
    made: list[Path] = []

    def city(name: str = "town", more: str = "") -> Path:
        root = tmp_path / name
        assert here("init", str(root)).code == 0
        (root / "city.toml").write_text(CITY + more)
        long = root / ".gc/formulas/automations/long/automation.toml"
        long.parent.mkdir(parents=True)
        long.write_text(LONG)
        made.append(root)
        return root

    yield city
    for root in made:
        if (root / ".gc/city-id").exists():
            assert at(root, "stop").code == 0


def at(root: Path, line: str, *more: str) -> Said:
    return here(*line.split(), *more, "--city", str(root))


def copy(root: Path, to: str) -> Path:
    target = root.with_name(to)
    for left in range(4, -1, -1):  # the city lives: a temporary file may be gone before it is copied
        done = subprocess.run(["cp", "-a", str(root), str(target)], check=left == 0)
        if done.returncode == 0:
            break
        shutil.rmtree(target)
    return target


def mayor(root: Path) -> dict[str, object]:
    [row] = at(root, "agent list", "--json").json
    found: dict[str, object] = row
    return found


def test_a_copy_of_a_running_city_harms_it_by_no_command(make: Make) -> None:
    original = make()
    assert at(original, "start").code == 0
    pid = mayor(original)["pid"]
    twin = copy(original, "twin")
    files = {path: path.read_bytes() for path in twin.rglob("*") if path.is_file() and "lamp.db" not in path.name}
    for line in ("stop", "start", "up", "daemon start", "restart", "agent kill mayor", "agent nudge mayor hi",
                 "agent drain mayor", "agent undrain mayor", "agent drain-ack mayor", "automation run long", "worker",
                 "event emit a.b", "pause", "resume", "suspend", "daemon install", "daemon uninstall",
                 "init"):  # fmt: skip
        told = one_sentence(here(*line.split(), "--city", str(twin)), 4)
        assert f"{twin} is a copy of the city in {original}" in told, line
        assert "lamp init --new-id" in told
    for line in ("status", "agent list", "run list", "event list", "automation list", "bead list", "session list",
                 "agent peek mayor"):  # fmt: skip
        said = at(twin, line)
        assert (said.code, said.err.count("\n"), "is a copy of" in said.err) == (0, 1, True), (line, said)
    assert at(twin, "doctor").out.count("is a copy of") == 1
    assert {path: path.read_bytes() for path in files} == files, "nothing in the copy was changed either"
    assert mayor(original)["pid"] == pid
    assert Path(f"/proc/{pid}").exists()


def test_a_copy_with_a_new_id_is_a_city_of_its_own(make: Make) -> None:
    original = make()
    assert lamp("daemon", "start", cwd=original).code == 0
    run = at(original, "automation run long", "--json").json["id"]
    until(lambda: (original / "began").exists() and mayor(original)["state"] == "running")
    token = (original / ".gc/owner.token").read_bytes()
    twin = copy(original, "twin")
    said = lamp("init", "--new-id", "--json", str(twin), cwd=twin)
    assert said.code == 0, said
    assert (said.json["runs_ended"], said.json["rows_kept"]) == (1, True)
    assert said.json["id"] == read_city_id(twin).id != read_city_id(original).id
    ended = at(twin, "run show", run, "--json").json
    assert (ended["state"], ended["reason"]) == ("failed", "interrupted")
    assert at(original, "run show", run, "--json").json["state"] == "running"
    assert [row["state"] for row in at(twin, "agent list", "--json").json] == ["stopped"]
    assert not (twin / ".gc/sessions").exists()
    assert (Path(said.json["aside"]) / "sessions").is_dir()
    assert at(twin, "start").code == 0
    assert mayor(twin)["pid"] != mayor(original)["pid"]
    assert (twin / ".gc/owner.token").read_bytes() != token == (original / ".gc/owner.token").read_bytes()
    assert at(twin, "stop").code == 0
    assert mayor(original)["state"] == "running"
    assert at(original, "run show", run, "--json").json["state"] == "running"


def test_what_fires_twice_after_a_new_id_is_told_and_can_be_paused(make: Make) -> None:
    original = make()
    for name, when in (("tidy", ("--daily", "03:30")), ("often", ("--every", "1h")), ("by-hand", ("--manual",))):
        assert at(original, f"automation create {name} --exec true", *when).code == 0
    assert at(original, "automation disable often").code == 0
    assert at(original, "automation create late --exec true --cron", "0 5 * * *").code == 0
    twin = copy(original, "twin")
    said = here("init", "--new-id", str(twin))
    assert "2 automations fire here and in the original: late, tidy." in said.out
    assert f"`lamp --city {twin} pause` before its start" in said.out
    assert at(twin, "pause").code == 0
    assert here("init", "--new-id", "--json", str(twin)).json["fires"] == ["late", "tidy"]
    shutil.rmtree(twin)


def test_a_city_of_its_own_keeps_its_id_while_its_agents_live(make: Make) -> None:
    root = make()
    assert at(root, "start").code == 0
    assert "still live" in one_sentence(here("init", "--new-id", str(root)), 4)


def test_a_new_id_that_was_cut_off_is_finished_by_a_second_try(make: Make) -> None:
    root = make()
    at(root, "event emit kept.here")
    (root / ".gc/city-id.next").write_text("cty_chosen\n")
    assert here("init", "--new-id", str(root)).code == 0
    assert read_city_id(root).id == "cty_chosen"
    assert [event["type"] for event in at(root, "event list", "--json").json] == ["kept.here", "city.new_id"]


def test_a_city_that_was_moved_is_the_city_and_its_new_place_is_recorded(make: Make) -> None:
    root = make("before")
    moved = root.rename(root.with_name("town"))
    assert at(moved, "start").code == 0
    home = read_city_id(moved).home
    assert home is not None
    assert home.path == moved
    assert at(moved, "stop").code == 0
    moved.rename(root)


def test_a_city_restored_from_a_copy_is_the_city(make: Make) -> None:
    root = make()
    backup = copy(root, "backup")
    shutil.rmtree(root)
    assert at(backup, "status").err == "", "its recorded place holds it no more"
    shutil.copytree(backup, root)
    assert at(root, "start").code == 0, "it is where it was recorded"
    assert "is a copy of" in at(backup, "event list").err


def test_an_id_of_an_earlier_version_is_completed_by_the_next_start(make: Make) -> None:
    root = make()
    known = read_city_id(root)
    (root / ".gc/city-id").write_text(known.id + "\n")
    assert at(root, "status").code == 0
    assert read_city_id(root).home is None
    assert at(root, "start").code == 0
    assert read_city_id(root) == known


def test_a_copy_that_shares_a_database_with_its_original_writes_nothing_there(make: Make, postgres_url: str) -> None:
    original = make(more=f'[store]\nurl = "{postgres_url}"\n')
    assert at(original, "start").code == 0
    twin = copy(original, "twin")
    before = at(original, "event list", "--json").json
    for line in ("event emit a.b", "stop", "start", "worker", "pause"):
        assert "is a copy of" in one_sentence(at(twin, line), 4)
    assert at(original, "event list", "--json").json == before
    said = lamp("init", "--new-id", "--json", str(twin), cwd=twin)
    assert (said.code, said.json["rows_kept"]) == (0, False)
    assert at(original, "event list", "--json").json == before
    assert [event["type"] for event in at(twin, "event list", "--json").json] == ["city.new_id"]
    assert mayor(original)["state"] == "running"


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A city's files as git brings them: a city.toml, and of `.gc` what is kept under version control."""
    root = tmp_path / "clone"
    root.mkdir()
    (root / "city.toml").write_text(CITY)
    yield root
    if (root / ".gc/city-id").exists():
        assert at(root, "stop").code == 0


def test_commands_in_a_clone_say_how_to_begin_and_leave_nothing_behind(clone: Path) -> None:
    for line in (
        "status",
        "stop",
        "event list",
        "bead list",
        "automation run x",
        "doctor",
        "pause",
        "worker",
        "resume",
    ):
        told = one_sentence(here(*line.split(), "--city", str(clone)), 3)
        assert "was never started" in told, line
        assert " up`" in told
    assert at(clone, "config check").code == 0
    assert [path.name for path in clone.iterdir()] == ["city.toml"]
    (clone / "city.toml").write_text("[broken")
    assert at(clone, "start").code == 2
    assert [path.name for path in clone.iterdir()] == ["city.toml"]


@pytest.mark.parametrize("kept", [False, True])
def test_a_start_in_a_clone_makes_what_is_missing_and_goes_on(clone: Path, kept: bool) -> None:  # noqa: FBT001
    if kept:
        (clone / ".gc/formulas").mkdir(parents=True, mode=0o755)
    assert (
        lamp("start", cwd=clone).out
        == "Started agent `mayor` (initial start).\nCity started: started 1; 1 agent runs.\n"
    )
    assert mayor(clone)["state"] == "running"
    assert (clone / ".gc").stat().st_mode & 0o777 == 0o700


def test_a_city_that_lost_its_id_is_not_taken_for_a_new_one(make: Make) -> None:
    root = make()
    text = (root / ".gc/city-id").read_text()
    (root / ".gc/city-id").unlink()
    before = sorted(path.name for path in (root / ".gc").iterdir())
    for line in ("start", "daemon start", "status"):
        assert "restore the file" in one_sentence(at(root, line), 3)
    assert sorted(path.name for path in (root / ".gc").iterdir()) == before
    (root / ".gc/city-id").write_text(text)


def test_of_four_starts_at_once_one_says_that_it_started_the_city(clone: Path) -> None:
    def start(_number: int) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "lamplighter", "daemon", "start", "--json"]
        return subprocess.run(
            command, cwd=clone, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120
        )

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(start, range(4)))
    assert sorted(one.returncode for one in done) == [0, 4, 4, 4], done
    [first] = [json.loads(one.stdout)["pid"] for one in done if one.returncode == 0]
    assert at(clone, "daemon status", "--json").json["pid"] == first
    for one in done:
        if one.returncode:
            assert json.loads(one.stderr)["detail"] == f"A controller already runs this city (pid {first})."


def test_the_plain_word_stop_on_the_control_socket_ends_the_city(clone: Path) -> None:
    assert lamp("daemon", "start", cwd=clone).code == 0
    pid = int((clone / ".gc/daemon.pid").read_text())
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(clone / ".gc/controller.sock"))
        client.sendall(b"stop\n")
        assert client.recv(100) == b"ok\n"
    until(lambda: not _lives(pid))
    assert [row["state"] for row in at(clone, "agent list", "--json").json] == ["stopped"]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
