"""Directories of sessions: whole or not there."""

import os
from pathlib import Path

from lamplighter.adapters.sessions.records import Records, _mark


def test_a_sweep_takes_what_a_dead_process_left_half_made_and_spares_what_a_living_one_makes(tmp_path: Path) -> None:
    mine = _mark(os.getpid())
    dead = f"{os.getpid()}.{'0' * 12}"  # this pid, of a process before this one
    for name in (f".new-{dead}-left", f".old-{dead}-removed", ".new-left", f".new-{mine}-making"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text("{}")
    Records(tmp_path, "city").sweep()
    assert [path.name for path in tmp_path.iterdir()] == [f".new-{mine}-making"]
