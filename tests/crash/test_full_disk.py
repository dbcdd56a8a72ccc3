"""The disk for outputs fills up for real: those it concerns are told of, and the other agents do not notice.

The sessions of the city are on a file system of a few pages, which the daemon alone sees: it is mounted in a namespace
of its own, for which no privilege is needed where the kernel gives user namespaces. Where it gives none, and root may
not mount either, no disk can be filled without harm to others, and these tests are left out.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamplighter.testing.processes import Child, Children

Lamp = Callable[..., object]
ON_A_SMALL_DISK = 'mount -t tmpfs -o size=256k none "$1/.gc/sessions" && exec "$2" -m lamplighter up --city "$1"'
NOTES = "echo $$ >>starts/{name}; "
RESTS = "while :; do sleep 1000 & wait; done"
CITY = f"""
[workspace]
name = "town"
[session]
provider = "subprocess"
[daemon]
max_restarts = 0
[[agents]]
name = "calm"
start_command = '''{NOTES.format(name="calm")}{RESTS}'''
[[agents]]
name = "fallen"
start_command = '''{NOTES.format(name="fallen")}{RESTS}'''
[[agents]]
name = "chatty"
start_command = '''
{NOTES.format(name="chatty")}
trap ': >.gc/sessions/gc-town-chatty/output' USR2
trap 'head -c 1000000 /dev/zero; touch filled' USR1
{RESTS}
'''
"""


def namespace() -> list[str]:
    """How a mount of one's own is had here."""
    for words in (["unshare", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        tried = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True)
        if tried.returncode == 0:
            return words
    pytest.skip("this machine allows no mounts in a namespace")


@pytest.fixture
def town(city: Path, lamp: Lamp, processes: Children, environment: dict[str, str]) -> Iterator[Path]:
    (city / "starts").mkdir()
    (city / ".gc/sessions").mkdir(exist_ok=True)
    (city / "city.toml").write_text(CITY)
    daemon = processes.start(
        *namespace(), "sh", "-c", ON_A_SMALL_DISK, "sh", str(city), sys.executable,
        env=environment,
    )  # fmt: skip
    await_lamps(daemon)
    yield city
    assert lamp("stop").returncode == 0


def await_lamps(daemon: Child) -> None:
    line = daemon.line()
    while line and not line.startswith("The lamps are lit"):
        line = daemon.line()
    assert line, "it did not come up"


def starts(city: Path, name: str) -> list[int]:
    path = city / "starts" / name
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def problems(lamp: Lamp) -> dict[str, str]:
    return json.loads(lamp("status", "--json").stdout)["controller"]["problems"]


def states(lamp: Lamp) -> dict[str, str]:
    return {row["name"]: row["state"] for row in json.loads(lamp("agent", "list", "--json").stdout)}


def test_an_agent_that_cannot_start_on_a_full_disk_says_so_and_the_others_live_on(town: Path, lamp: Lamp) -> None:
    names = ("calm", "fallen", "chatty")
    wait_for(lambda: set(states(lamp).values()) == {"running"}, "not all were started")
    pids = {name: starts(town, name)[0] for name in names}
    os.kill(pids["chatty"], signal.SIGUSR1)
    wait_for((town / "filled").exists, "the disk was not filled")

    os.kill(pids["fallen"], signal.SIGKILL)
    wait_for(lambda: "agent fallen" in problems(lamp), "nothing was told")
    said = lamp("status").stdout
    assert "fallen" in said
    assert "/.gc/sessions cannot be written: No space left on device" in said
    assert list(problems(lamp)) == ["agent fallen"]
    assert {name: states(lamp)[name] for name in ("calm", "chatty")} == {"calm": "running", "chatty": "running"}
    assert [starts(town, name) for name in ("calm", "chatty")] == [[pids["calm"]], [pids["chatty"]]]

    os.kill(pids["chatty"], signal.SIGUSR2)  # it empties its output
    wait_for(lambda: len(starts(town, "fallen")) == 2, "it was not started again when there was room")
    wait_for(lambda: problems(lamp) == {}, "what is over is still told")
    assert states(lamp) == dict.fromkeys(names, "running")


TO_A_SMALL_DISK = """
mount -t tmpfs -o size=300k none "$1" || exit 9
"$2" -m lamplighter --city "$3" backup "$1/b.tar.gz" && exit 8
ls -A "$1"
echo --
"$2" -m lamplighter --city "$3" backup "$4" || exit 7
"$2" -m lamplighter restore "$4" "$1/back" && exit 6
ls -A "$1"
echo --
mount -o remount,size=60m none "$1" || exit 5
"$2" -m lamplighter restore "$4" "$1/back" || exit 4
"""


def test_a_backup_and_a_restore_that_find_no_room_name_their_place_and_leave_nothing(
    city: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    places = (str(small), sys.executable, str(city), str(tmp_path / "kept"))
    done = subprocess.run(
        [*namespace(), "sh", "-c", TO_A_SMALL_DISK, "sh", *places],
        env=environment, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done
    first, second, _ = done.stdout.split("--\n")
    assert (first, second.splitlines()[2:]) == ("", [])
    told = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert [f"{small}/b.tar.gz cannot be written" in told[0], f"{small}/back cannot be made" in told[1]] == [True] * 2
    assert "database" not in told[0]
