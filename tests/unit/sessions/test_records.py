"""Directories of sessions: whole or not there."""

import os
from datetime import UTC, datetime
from pathlib import Path

from lamplighter.adapters.sessions.records import HALF_MADE, Records

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def test_a_sweep_takes_what_was_left_half_made_and_spares_what_is_in_the_making(tmp_path: Path) -> None:
    left, removed, making = (tmp_path / name for name in (".new-left", ".old-removed", ".new-making"))
    for path in (left, removed, making):
        path.mkdir()
        (path / "record.json").write_text("{}")
    for path in (left, removed):
        long_ago = NOW.timestamp() - HALF_MADE.total_seconds() - 1
        os.utime(path, (long_ago, long_ago))
    os.utime(making, (NOW.timestamp(), NOW.timestamp()))
    Records(tmp_path, "city").sweep(NOW)
    assert [path.name for path in tmp_path.iterdir()] == [".new-making"]
    assert (making / "record.json").exists()
