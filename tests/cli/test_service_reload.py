"""What the service manager runs to reload: the daemon begins again as the same process, and its agents are kept."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here
from test_daemon_restart import CITY, mayor, until


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(CITY.format(port=0))
    yield root
    assert here("stop", "--city", str(root)).code == 0


def test_a_reload_of_the_unit_keeps_the_process_and_the_agents(town: Path) -> None:
    unit = here("daemon", "install", "--print", "--city", str(town)).out
    words = {line.partition("=")[0]: shlex.split(line.partition("=")[2]) for line in unit.splitlines() if "=" in line}
    starts = 'import os,sys; os.environ["SYSTEMD_EXEC_PID"]=str(os.getpid()); os.execv(sys.executable,sys.argv[1:])'
    daemon = subprocess.Popen(
        [sys.executable, "-c", starts, *words["ExecStart"]],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        agent = until(lambda: (town / ".gc" / "controller.sock").exists() and mayor(town))
        done = subprocess.run(words["ExecReload"], check=False, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done
        assert daemon.poll() is None, "the service manager goes on watching it"
        assert f"process {daemon.pid}" in done.stdout
        assert until(lambda: mayor(town)) == agent
        assert here("stop", "--city", str(town)).code == 0
        assert daemon.wait(60) == 0
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
