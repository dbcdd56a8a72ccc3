"""What a process without free descriptors makes of sessions: nothing leaks, and nothing is taken for gone."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamplighter.adapters.processes.table import all_processes, identity_of, is_alive
from lamplighter.adapters.sessions.local import shim
from lamplighter.adapters.sessions.records import Records
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit import descriptors
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.testing.few_descriptors import only

NAME = SessionName("alpha")


def test_a_launch_that_fails_for_want_of_descriptors_leaves_none_open(tmp_path: Path) -> None:
    shim.furnish(tmp_path, takes_input=True)
    before = descriptors.count_open()
    for free in range(4):
        with only(free), pytest.raises(OutOfDescriptors):
            shim.launch(tmp_path, ("true",), {}, str(tmp_path))
        assert descriptors.count_open() == before


def test_a_launch_leaves_the_reserve_alone(tmp_path: Path) -> None:
    shim.furnish(tmp_path, takes_input=False)
    before = descriptors.count_open()
    with only(6), pytest.raises(OutOfDescriptors, match="too few free file descriptors"):
        shim.launch(tmp_path, ("true",), {}, str(tmp_path))
    assert descriptors.count_open() == before


def test_a_process_that_cannot_be_looked_at_is_not_called_dead() -> None:
    me = identity_of(os.getpid())
    assert me is not None
    with only(0):
        with pytest.raises(OutOfDescriptors):
            is_alive(me)
        with pytest.raises(OutOfDescriptors):
            all_processes()


def test_a_record_that_cannot_be_read_now_is_not_called_missing(tmp_path: Path) -> None:
    spec = SessionSpec(name=NAME, command=("true",), work_dir=str(tmp_path))
    Records(tmp_path / "state", "cty").create(spec, "ses_1", datetime.now(UTC), lambda _home: None)
    later = Records(tmp_path / "state", "cty")
    with only(0):
        with pytest.raises(OutOfDescriptors):
            later.read(NAME)
        with pytest.raises(OutOfDescriptors):
            list(later.all())
        with pytest.raises(OutOfDescriptors):
            later.create(spec, "ses_2", datetime.now(UTC), lambda _home: None)
    found = later.read(NAME)
    assert found is not None
    assert found.session_id == "ses_1"


LAUNCH = """
import os, sys
from pathlib import Path
from lamplighter.adapters.sessions.local import shim
from lamplighter.kit import descriptors
descriptors.raise_limit()
home = Path(sys.argv[1])
shim.furnish(home, takes_input=False)
os.waitpid(shim.launch(home, ("/bin/sh", "-c", "ulimit -S -n; ulimit -H -n"), {}, str(home)).shim, 0)
print(descriptors.limit())
"""


def test_a_program_has_the_limit_that_its_daemon_was_started_with(tmp_path: Path) -> None:
    script = 'ulimit -Sn 200; ulimit -Hn 400; exec "$0" -c "$1" "$2"'
    daemon = ["/bin/sh", "-c", script, sys.executable, LAUNCH, str(tmp_path)]
    assert subprocess.run(daemon, check=True, capture_output=True, text=True).stdout == "400\n"
    assert (tmp_path / shim.OUTPUT).read_text() == "200\n400\n"
