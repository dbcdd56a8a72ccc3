"""What commands say and refuse when a city's SQLite database is lost, with and without a daemon."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.lock import ControllerLock


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text('[workspace]\nname = "town"\n\n[api]\nport = 0\n')
    return root


def lose(root: Path) -> None:
    for file in (root / ".gc").glob("lamp.db*"):
        file.unlink()


def test_a_new_database_is_named_among_what_was_made(town: Path) -> None:
    lose(town)
    said = here("init", "--new-database", str(town))
    assert "Made: .gc/lamp.db" in said.out
    assert "nothing was changed" in here("init", "--new-database", str(town)).out


def test_no_new_database_is_made_under_a_running_controller(town: Path) -> None:
    lose(town)
    lock = ControllerLock(town / ".gc/controller.lock")
    lock.take()
    try:
        assert "already runs" in one_sentence(here("init", "--new-database", str(town)), 4)
    finally:
        lock.release()
    assert not (town / ".gc/lamp.db").exists()


def test_no_new_database_is_made_beside_what_was_saved_of_the_old_one(town: Path) -> None:
    lose(town)
    (town / ".gc/saved-lamp.db.20260101T000000Z").touch()
    assert "saved-lamp.db.20260101T000000Z" in one_sentence(here("init", "--new-database", str(town)), 5)
    assert not (town / ".gc/lamp.db").exists()


@contextlib.contextmanager
def running(root: Path) -> Iterator[int]:
    assert lamp("daemon", "start", cwd=root).code == 0
    try:
        yield ask(root / ".gc/controller.sock", "status")["pid"]
    finally:
        assert lamp("stop", cwd=root).code == 0


@pytest.mark.timeout(120)
def test_beside_a_daemon_that_lost_its_database_status_tells_it_and_a_restart_stops_nothing(town: Path) -> None:
    with running(town) as pid:
        lose(town)
        while "database" not in ask(town / ".gc/controller.sock", "status")["problems"]:
            pass  # it looks every second; the test's limit bounds this
        told = one_sentence(lamp("status", cwd=town), 5)
        assert "its database is lost" in told
        state = lamp("daemon", "status", "--json", cwd=town)
        assert (state.code, state.json["pid"]) == (0, pid)
        assert "lamp.db" in state.json["problems"]["database"]
        one_sentence(lamp("restart", cwd=town), 5)
        assert ask(town / ".gc/controller.sock", "status")["pid"] == pid
