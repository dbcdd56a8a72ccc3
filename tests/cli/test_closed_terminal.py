"""`lamp up` whose terminal or whose reader is gone still stops as it should."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_city_whose_reader_left_stops_on_a_signal_with_its_agents(tmp_path: Path, number: int) -> None:
    root = tmp_path / "town"
    assert here("init", str(root), "--demo").code == 0
    command = [sys.executable, "-m", "lamplighter", "--city", str(root), "up"]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert any("agent=watchman" in line for line in process.stdout)  # the last to start: it depends on another
        process.stdout.close()
        process.send_signal(number)
        process.wait(timeout=180)
    events = here("--city", str(root), "event", "list", "--type", "controller.stopped", "--json")
    assert events.json, events.err
    left = subprocess.run(["pgrep", "-f", f"{root}/agents/"], capture_output=True, check=False)
    assert left.stdout == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_standard_streams_are_closed_goes_on(tmp_path: Path, closed: str) -> None:
    root = tmp_path / "town"
    assert here("init", str(root), "--demo").code == 0
    script = f'"$0" -m lamplighter status --city "$1" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, str(root)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
