"""Files that others rely on: synced before they take their place, whole before they count, locked while changed."""

import fcntl
import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamplighter.adapters.files import lock as lock_file
from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.lock import ControllerLock, ControllerRunning
from lamplighter.adapters.sessions.local import shim
from lamplighter.adapters.sessions.records import Records
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.testing.processes import Children, children

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ALPHA = SessionName("alpha")
SPEC = SessionSpec(name=ALPHA, command=("true",), work_dir="/")
WITHIN = 120


def test_a_file_is_synced_before_it_takes_its_place_and_its_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    synced: list[tuple[bool, bytes, bytes]] = []
    sync = os.fsync

    def spy(fd: int) -> None:
        found = Path(f"/proc/self/fd/{fd}").readlink()
        synced.append((found == tmp_path, b"" if found == tmp_path else found.read_bytes(), path.read_bytes()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", spy)
    write_atomically(path, b"new")
    assert synced == [(False, b"new", b"old"), (True, b"", b"new")]
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("text", "status"), [("3\n", 3), ("0\n", 0), ("12", None), ("", None), ("\n", None), ("x\n", None), ("-1\n", None)]
)
def test_an_exit_status_counts_once_its_line_is_whole(tmp_path: Path, text: str, status: int | None) -> None:
    (tmp_path / "exit").write_text(text)
    assert shim.exit_status_of(tmp_path) == status


def test_the_sessions_of_another_city_under_the_same_directory_are_not_read(tmp_path: Path) -> None:
    ours, theirs = Records(tmp_path, "ours"), Records(tmp_path, "theirs")
    made = theirs.create(SPEC, "ses_1", NOW, lambda _home: None)
    assert theirs.read(ALPHA) == made
    assert ours.read(ALPHA) is None
    assert list(ours.all()) == []


def test_a_record_under_another_session_s_name_is_not_read(tmp_path: Path) -> None:
    records = Records(tmp_path, "ours")
    records.create(SPEC, "ses_1", NOW, lambda _home: None)
    records.home(ALPHA).rename(records.home(SessionName("beta")))
    assert list(records.all()) == []


def test_two_who_mark_a_session_at_the_same_time_lose_neither_mark(tmp_path: Path) -> None:
    Records(tmp_path, "ours").create(replace(SPEC, meta={"first": "0"}), "ses_1", NOW, lambda _home: None)
    changing, go = threading.Event(), threading.Event()

    def slowly(kept: dict[str, str]) -> None:
        kept["first"] = "1"
        changing.set()
        assert go.wait(WITHIN)

    one = threading.Thread(target=Records(tmp_path, "ours").change_meta, args=(ALPHA, slowly))
    other = threading.Thread(
        target=Records(tmp_path, "ours").change_meta, args=(ALPHA, lambda kept: kept.update(second="2"))
    )
    one.start()
    assert changing.wait(WITHIN)
    other.start()
    other.join(0.2)
    assert other.is_alive(), "it waits for the first"
    go.set()
    one.join(WITHIN)
    other.join(WITHIN)
    assert Records(tmp_path, "ours").meta(ALPHA) == {"first": "1", "second": "2"}


# ── the controller's lock ─────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_asks_for_the_controller_for_an_instant_keeps_nobody_from_becoming_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    asking = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(asking, fcntl.LOCK_SH)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        os.close(asking)

    monkeypatch.setattr(time, "sleep", sleep)
    lock = ControllerLock(path)
    lock.take()
    assert len(slept) == 1
    lock.release()


def test_beside_a_controller_that_lives_nothing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_file, "LET_GO_SECONDS", 1e6)
    first = ControllerLock(tmp_path / "lock")
    first.take()
    with pytest.raises(ControllerRunning, match=str(os.getpid())):
        ControllerLock(tmp_path / "lock").take()
    first.release()


def test_a_lock_that_outlives_its_dead_controller_for_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pid is that of a process that has ended; somebody else holds the lock and does not let go."""
    monkeypatch.setattr(lock_file, "LET_GO_SECONDS", 0.0)
    path = tmp_path / "lock"
    with children() as processes:
        dead = _dead(processes)
    path.write_text(f"{dead}\n")
    held = os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(ControllerRunning, match=str(dead)):
        ControllerLock(path).take()
    os.close(held)


def _dead(processes: Children) -> int:
    child = processes.start("true")
    child.process.wait(WITHIN)
    return child.process.pid
