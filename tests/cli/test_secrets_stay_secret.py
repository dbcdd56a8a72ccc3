"""A secret that an agent prints is masked wherever that is kept: also when it crashes, and when it was replaced."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, until

OLD, NEW = "moonshine-of-mill-lane", "sunshine-of-mill-lane"
CITY = """[workspace]
name = "town"
[session]
provider = "subprocess"
[api]
port = 0
[daemon]
shutdown_timeout = "2s"
[[agents]]
name = "mayor"
start_command = "echo the key is $KEY; test -e gone || exec sleep 600; exit 3"
env = { KEY = "secret:door" }
"""
KEPT = ("event list --limit 200", "session list --all", "agent list", "agent show mayor", "inbox list", "status")


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    keep(root, OLD)
    (root / "city.toml").write_text(CITY)
    yield root
    lamp("stop", cwd=root)


def keep(root: Path, value: str) -> None:
    setting = [sys.executable, "-m", "lamplighter", "secret", "set", "door", "--city", str(root)]
    subprocess.run(setting, input=value, text=True, env=ENVIRONMENT, check=True, timeout=180, capture_output=True)


def ask(root: Path, line: str) -> str:
    return here(*line.split(), "--json", "--city", str(root)).out


def test_what_a_crashed_agent_printed_is_masked_wherever_it_is_kept(town: Path) -> None:
    assert lamp("daemon", "start", cwd=town).code == 0
    until(lambda: "the key is" in ask(town, "agent peek mayor"))
    keep(town, NEW)  # the agent that runs still has the old one
    (town / "gone").touch()
    pid = json.loads(ask(town, "agent show mayor"))["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True, timeout=180)
    until(lambda: "agent.crashed" in ask(town, "event list --limit 200"))
    until(lambda: ask(town, "event list --limit 200").count("the key is") >= 2)  # of the one with the new value too
    told = "".join(ask(town, line) for line in KEPT)
    assert "the key is" in told
    assert OLD not in told
    assert NEW not in told
    assert not [path for path in (town / ".gc").glob("*.jsonl") if OLD in path.read_text()]
