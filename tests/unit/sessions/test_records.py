"""Directories of sessions: whole or not there."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamplighter.adapters.processes.makers import mark_of
from lamplighter.adapters.sessions.records import Records
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.ports.sessions import ProviderUnavailable


def test_a_sweep_takes_what_a_dead_process_left_half_made_and_spares_what_a_living_one_makes(tmp_path: Path) -> None:
    mine = mark_of(os.getpid())
    dead = f"{os.getpid()}.{'0' * 12}"  # this pid, of a process before this one
    for name in (f".new-{dead}-left", f".old-{dead}-removed", ".new-left", f".new-{mine}-making"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text("{}")
    Records(tmp_path, "city").sweep()
    assert [path.name for path in tmp_path.iterdir()] == [f".new-{mine}-making"]


def test_a_session_that_starts_after_the_state_was_moved_away_does_not_make_the_directory_anew(tmp_path: Path) -> None:
    spec = SessionSpec(name=SessionName("run_1"), command=("true",), work_dir=str(tmp_path))
    with pytest.raises(ProviderUnavailable):
        Records(tmp_path / ".gc/commands", "city").create(spec, "ses_1", datetime.now(UTC), lambda _home: None)
    assert not (tmp_path / ".gc").exists()
