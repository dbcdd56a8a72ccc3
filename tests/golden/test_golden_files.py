"""What the masks hide and what they leave to be seen; what a difference from the record looks like."""

from pathlib import Path
from typing import Any

import pytest
from golden_files import differences
from golden_masking import in_order, masked

TEXTS = {"/to-nine/town": "<city>", "/to-nine": "<directory>", "vm": "<host>"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("run_01m7jhbtwsxqn5h15h3vpkgzm9", "<run>"),
        ("run:run_01m7jhbtwsxqn5h15h3vpkgzm9:completion:v1", "run:<run>:completion:v1"),
        ("ses_01m7jhgjvmx27ge90zazpy9hcn", "<ses>"),
        ("run_created", "run_created"),
        ("2026-11-16T15:59:41.464367Z", "<time>"),
        ("next at 2026-11-17 03:30 CET, in 11h30m24s.", "next at <time>, in <duration>."),
        ("/to-nine/town/.gc/lamp.db", "<city>/.gc/lamp.db"),
        ("/to-nine/townhall", "<directory>/townhall"),
        ("vm:/to-nine/town", "<host>:<city>"),
        ("http://127.0.0.1:45123/mcp", "http://127.0.0.1:<port>/mcp"),
        ("Process 7433 runs the city (pid 7433).", "Process <pid> runs the city (pid <pid>)."),
        ("bead we-4k2 of gc-town-web--coder-1", "bead <bead> of gc-town-web--coder-1"),
        ("agent.started (11)", "agent.started (<seq>)"),
    ],
)
def test_texts_that_differ_each_time_are_masked_and_no_others(value: str, shown: str) -> None:
    assert masked(value, TEXTS) == shown


def test_null_stays_null_and_the_type_of_a_number_is_seen() -> None:
    value = {"pid": None, "duration_s": 0.1, "seq": 3, "exit_code": 3, "running": True}
    assert masked(value, TEXTS) == {
        "pid": None, "duration_s": "<seconds> float", "seq": "<seq> int", "exit_code": 3, "running": True,
    }  # fmt: skip


def test_keys_are_masked_like_values() -> None:
    assert masked({"run_01m7jhbtwsxqn5h15h3vpkgzm9": {"pid": 7}}, TEXTS) == {"<run>": {"pid": "<pid> int"}}


def test_artifacts_stand_behind_the_moves_of_a_run() -> None:
    def event(kind: str, name: str = "") -> dict[str, Any]:
        return {"type": kind, "data": {"artifact": name} if name else None}

    early, late, move = event("artifact_written", "b"), event("artifact_written", "a"), event("run_created")
    assert in_order([early, move, late]) == [move, late, early]


def test_a_renamed_key_a_dropped_event_and_a_file_too_many_are_differences(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{\n  "events": [\n    "fired",\n    "ended"\n  ],\n  "state": "done"\n}\n')
    same = {"state": "done", "events": ["fired", "ended"]}
    assert list(differences(tmp_path, {"run": same})) == []
    assert '-  "state": "done"' in list(
        differences(tmp_path, {"run": {"status": "done", "events": ["fired", "ended"]}})
    )
    assert '-    "fired",' in list(differences(tmp_path, {"run": same | {"events": ["ended"]}}))
    assert len(list(differences(tmp_path, {}))) == 1
    assert len(list(differences(tmp_path, {"run": same, "other": same}))) == 1
