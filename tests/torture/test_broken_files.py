"""The files of a running city are broken and deleted in turns, for a minute: agents, automations and commands go on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60
AGENTS = 5
CITY = """\
include = ["more.toml"]
[workspace]
name = "town"
[api]
port = 0
[session]
provider = "subprocess"
[daemon]
patrol_interval = "1s"
shutdown_timeout = "2s"
max_restarts = 0
"""
AGENT = """
[[agents]]
name = "agent-{number}"
start_command = "sh -c 'echo $$ >> lives; exec sleep 600' --"
prompt_template = "prompts/agent.md.tmpl"
"""
BEAT = '[automation]\nexec = "echo beat >> beats"\ngate = "cooldown"\ninterval = "1s"\n'
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}

Break = Callable[[Path], object]


def lamp(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lamplighter", *arguments, "--city", str(root)],
        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def write(root: Path) -> None:
    file = root / "city.toml"
    if file.is_dir():
        file.rmdir()
    file.unlink(missing_ok=True)
    file.write_text(CITY + "".join(AGENT.format(number=number) for number in range(AGENTS)))
    (root / "more.toml").write_text('[automations]\nmax_timeout = "60s"\n')
    (root / "prompts").mkdir(exist_ok=True)
    (root / "prompts/agent.md.tmpl").write_text("You are {{.AgentName}}.")


def _directory(root: Path) -> None:
    (root / "city.toml").unlink()
    (root / "city.toml").mkdir()


def _unreadable(root: Path) -> None:
    (root / "city.toml").unlink()
    (root / "city.toml").symlink_to("/proc/self/mem")


BREAKS: dict[str, Break] = {
    "rubbish": lambda root: (root / "city.toml").write_bytes(b"[[x\xff\x00"),
    "half a file": lambda root: os.truncate(root / "city.toml", 100),
    "unknown key": lambda root: (root / "city.toml").write_text("promt = 1\n" + (root / "city.toml").read_text()),
    "gone": lambda root: (root / "city.toml").unlink(),
    "a directory": _directory,
    "unreadable": _unreadable,
    "include gone": lambda root: (root / "more.toml").unlink(),
    "everything gone": lambda root: [shutil.rmtree(root / "prompts"), (root / "more.toml").unlink(), _directory(root)],
}


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    assert lamp(tmp_path, "init", str(root)).returncode == 0
    write(root)
    beat = root / ".gc/formulas/automations/beat/automation.toml"
    beat.parent.mkdir(parents=True)
    beat.write_text(BEAT)
    try:
        done = lamp(root, "daemon", "start")
        assert done.returncode == 0, done.stderr
        yield root
    finally:
        write(root)
        done = lamp(root, "stop")
        assert done.returncode == 0, done.stderr


def test_files_broken_and_deleted_under_a_running_city(town: Path, counts: dict[str, object]) -> None:
    told: dict[str, Any] = {"turns": 0, "commands": 0, "failed": [], "killed": 0, "restarts": 0, "silent": 0}
    counts.update(told)
    turns, until = cycle(BREAKS.items()), time.monotonic() + SECONDS
    emitted = 0
    for turn in count(1):
        if time.monotonic() > until and turn > len(BREAKS):
            break
        how, harm = next(turns)
        write(town)
        harm(town)
        if turn % 4 == 0:  # the daemon itself dies while its file is broken, and is started from the last good one
            os.kill(int((town / ".gc/daemon.pid").read_text()), signal.SIGKILL)
            told["restarts"] += 1
            _run(town, told, how, "daemon", "start")
        _wait((town / ".gc/config.rejected").exists)
        beats = _lines(town / "beats")
        victim = _living(town)[turn % AGENTS]
        os.kill(victim, signal.SIGKILL)
        told["killed"] += 1
        for line in ("event emit torture.told", "bead create work", "status --json", "agent list", "pause", "resume"):
            _run(town, told, how, *line.split())
        emitted += 1
        _wait(lambda gone=victim: gone not in _living(town) and len(_living(town)) == AGENTS)
        _wait(lambda before=beats: _lines(town / "beats") > before)
        told["turns"] = turn
        counts.update(told)
    write(town)
    events = json.loads(lamp(town, "event", "list", "--type", "torture.told", "--json", "--limit", "1000").stdout)
    counts.update(told | {"beats": _lines(town / "beats"), "lives": _lines(town / "lives"), "events": len(events)})
    assert told["failed"] == []
    assert told["silent"] == 0
    assert len(events) == emitted
    assert _lines(town / "lives") >= AGENTS + told["killed"]


def _run(root: Path, told: dict[str, Any], how: str, *arguments: str) -> None:
    """Counts what failed, and what worked without naming the broken file."""
    done = lamp(root, *arguments)
    told["commands"] += 1
    if done.returncode:
        told["failed"].append([how, *arguments, done.stderr[-300:]])
    elif arguments[0] != "daemon" and "stays in force" not in done.stderr:
        told["silent"] += 1


def _living(root: Path) -> list[int]:
    """Agents by what they wrote themselves, and whether they live."""
    pids = [int(line) for line in (root / "lives").read_text().split()] if (root / "lives").exists() else []
    return [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        return "sleep" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def _wait(check: Callable[[], bool], within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)
