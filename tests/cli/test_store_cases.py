"""Cases 5, 6 and 7 of scheduled runs, as they are with one database and one controller a city."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here

HELLO = '[automation]\nexec = "echo $LAMP_RUN_ID >> ran"\ngate = "cooldown"\ninterval = "200ms"\n'


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    file = root / ".gc" / "formulas" / "automations" / "hello" / "automation.toml"
    file.parent.mkdir(parents=True)
    file.write_text(HELLO)
    return root


@contextmanager
def controller(town: Path) -> Iterator[subprocess.Popen[str]]:
    """`lamp up`, told to be lit; killed at the end if it still lives."""
    command = [sys.executable, "-m", "lamplighter", "--city", str(town), "up"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any(line.startswith("Stop:") for line in process.stdout)
            yield process
        finally:
            process.kill()


def test_case_5_without_its_state_a_city_opens_with_every_definition(town: Path) -> None:
    assert here("--city", str(town), "automation", "run", "hello").code == 0
    for file in (town / ".gc").glob("lamp.db*"):
        file.unlink()
    assert here("init", str(town)).code == 5
    assert here("init", str(town), "--new-database").code == 0
    (found,) = json.loads(here("--city", str(town), "automation", "list", "--json").out)
    assert (found["name"], found["triggers"][0]["last_fired_at"]) == ("hello", None)
    assert json.loads(here("--city", str(town), "run", "list", "--json").out) == []


def test_case_6_a_damaged_database_is_told_and_nothing_destroys_it(town: Path) -> None:
    assert here("--city", str(town), "automation", "create", "kept", "--exec", "true", "--manual").code == 0
    database = town / ".gc" / "lamp.db"
    whole = database.read_bytes()
    damaged = b"not a database at all" + whole[21:]
    database.write_bytes(damaged)
    for command in (["automation", "list"], ["automation", "create", "new", "--exec", "true", "--manual"], ["up"]):
        said = here("--city", str(town), *command)
        assert said.code == 5
        assert "is damaged or is not a database" in said.err
    assert database.read_bytes() == damaged
    database.write_bytes(whole)
    names = [one["name"] for one in json.loads(here("--city", str(town), "automation", "list", "--json").out)]
    assert names == ["hello", "kept"]


def test_case_7_a_second_controller_fires_nothing_and_takes_over_when_the_first_is_killed(town: Path) -> None:
    with controller(town) as first:
        refused = here("--city", str(town), "up")
        assert refused.code == 4
        assert f"pid {first.pid}" in refused.err
        first.send_signal(signal.SIGKILL)
        first.wait()
    with controller(town) as second:
        started = json.loads(here("--city", str(town), "event", "list", "--type", "owner.lost", "--json").out)
        assert [event["payload"]["pid"] for event in started] == [first.pid]
        assert here("--city", str(town), "stop").code == 0
        assert second.wait(timeout=180) == 0
