"""What a new user meets in the first hour: questions, hints that can be typed, a daemon that died, what is missing."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import here, lamp

ASKS = """
if [ -n "$LAMP_MESSAGE_FILE" ]; then
  exec {lamp} run complete --outcome succeeded --summary "told: $(tail -n 1 "$LAMP_MESSAGE_FILE")"
fi
exec {lamp} run ask --question "Which one?" --choice left --choice right --summary "Found two."
"""
CITY = """
[workspace]
name = "town"

[api]
port = 0

[runs]
isolation = "none"

[[notifications.destinations]]
name = "desk"
kind = "command"
command = "cat >> told.json"

[[notifications.destinations]]
name = "shut"
kind = "command"
command = "exit 7"
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    root.mkdir()
    (root / "city.toml").write_text(CITY)
    assert here("init", str(root)).code == 0
    yield root
    here("--city", str(root), "stop")


def asked(root: Path) -> None:
    """A run that asks, worked by the command itself."""
    import sys

    prompt = ASKS.format(lamp=f"{sys.executable} -m lamplighter")
    made = here(
        "--city", str(root), "automation", "create", "ask",
        "--prompt", prompt, "--preset", "shell", "--mode", "full_access", "--manual",
    )  # fmt: skip
    assert made.code == 0, made
    lamp("automation", "run", "ask", "--wait", cwd=root)


def test_a_question_is_listed_with_its_choices_and_answered_in_words_without_quotes(town: Path) -> None:
    asked(town)
    listed = lamp("inbox", cwd=town).out
    assert "ask asks: Which one? (left or right)" in listed
    run = lamp("run", "show", "ask", "--json", cwd=town).json["id"]
    assert f"lamp run answer {run[-6:]} TEXT" in listed
    assert here("--city", str(town), "inbox", "show", "ask", "--json").json["runs"] == [run]
    before = here("--city", str(town), "status", "--json").json
    assert (before["runs"], before["failures"]) == ({"needs_human": 1}, [])
    answered = here("--city", str(town), "run", "answer", run[-6:], "the", "left", "one", "--json")
    assert answered.code == 0, answered
    assert answered.json["continues"] == run
    assert "the left one" in here("--city", str(town), "run", "show", run, "--json").out
    assert "needs_human" not in here("--city", str(town), "status", "--json").json["runs"]
    assert here("--city", str(town), "run", "answer", run[-6:]).code == 2


def test_hints_can_be_typed_as_they_stand_where_the_city_was_named(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(town)
    monkeypatch.chdir(town.parent)
    named = ("--city", "town")
    assert "`lamp --city town up` starts it" in here(*named, "status").out
    assert "`lamp --city town inbox` lists it" in here(*named, "status").out
    assert "lamp --city town run answer" in here(*named, "inbox").out
    assert "`lamp --city town run list`" in here("run", "show", "nothing", "--city=town").err
    assert "`lamp --city town rig add PATH`" in here(*named, "rig", "list").out
    assert "--city" not in lamp("run", "show", "nothing", cwd=town).err
    assert "`lamp init`" in here("--city", ".", "status").err


def test_a_daemon_that_died_is_told_and_how_to_start_it(town: Path) -> None:
    def said(*words: str) -> str:
        return here("--city", str(town), *words).out

    assert here("--city", str(town), "daemon", "start", "--within", "60s").code == 0
    before = here("--city", str(town), "status", "--json").json["controller"]
    assert before["died_at"] is None
    os.kill(before["pid"], signal.SIGKILL)
    until = time.monotonic() + 60
    while said("daemon", "status").startswith("Daemon  running"):
        assert time.monotonic() < until
    status = said("status")
    assert status.startswith("town is down: its daemon died\n")
    assert f"`lamp --city {town} daemon start` starts it again" in status
    assert "died after its last sign of life, " in said("daemon", "status")
    assert "Its daemon died" in said("doctor")
    assert here("--city", str(town), "status", "--json").json["controller"]["died_at"] is not None
    said("stop")
    assert said("status").startswith(f"town is stopped; `lamp --city {town} up` starts it\n")


def test_a_program_that_is_missing_is_told_and_the_automation_made(town: Path) -> None:
    cases = {
        "gone": (["--exec", "no-such-program --now"], "`no-such-program` is not on the path."),
        "agent": (["--prompt", "Tidy.", "--preset", "amp", "--mode", "full_access"], "`amp` is not on the path."),
        "moved": (["--exec", "cd /tmp && no-such-program"], None),
        "there": (["--exec", "sleep 1"], None),
        "set": (["--exec", "X=1 no-such-program"], None),
    }
    for name, (action, told) in cases.items():
        made = here("--city", str(town), "automation", "create", name, *action, "--manual")
        assert made.code == 0, made
        assert made.err.split(" Runs of ")[0] == (f"note: {told}" if told else "")
    found = here("--city", str(town), "doctor").out
    for name, (_, told) in cases.items():
        assert (f"Runs of {name} fail here: {told}" in found) is (told is not None)


def test_a_trial_is_among_the_notices_whether_it_was_taken_or_not(town: Path) -> None:
    named = ("--city", str(town))
    assert here(*named, "notify", "test", "desk").out == "desk took the notice.\n"
    assert here(*named, "notify", "test", "shut").code != 0
    states = {one["name"]: one for one in here(*named, "notify", "list", "--json").json}
    assert (states["desk"]["state"], states["shut"]["state"]) == ("good", "failing")
    assert states["desk"]["last_sent_at"] is not None
    assert "ended with status 7" in states["shut"]["last_error"]
    kept = [(one["destination"], one["what"], one["state"]) for one in here(*named, "notify", "log", "--json").json]
    assert kept == [("shut", "test", "failed"), ("desk", "test", "sent")]


def test_imported_jobs_can_be_told_apart_in_the_list(town: Path) -> None:
    crontab = town / "crontab"
    crontab.write_text("PATH=/usr/bin\n0 3 * * * /opt/backup.sh --all\n0 4 * * * /opt/backup.sh --some\n")
    assert here("--city", str(town), "import", "cron", str(crontab)).code == 0
    listed = here("--city", str(town), "automation", "list").out
    assert "exec: /opt/backup.sh --all" in listed
    assert "exec: /opt/backup.sh --some" in listed
    assert "export" not in listed


def test_the_examples_in_a_new_city_s_file_work_as_they_stand(tmp_path: Path) -> None:
    assert here("init", str(tmp_path / "fresh")).code == 0
    file = tmp_path / "fresh" / "city.toml"
    first, rest = file.read_text().split("# An agent that is kept", 1)
    keys = re.sub(r"(?m)^# (?=\[\[|[a-z_]+ = )", "", rest)
    file.write_text(f"{first}# An agent that is kept{keys}")
    assert here("config", "check", "--city", str(file.parent)).code == 0
    at = ("--city", str(file.parent), "--json")
    assert [one["name"] for one in here("agent", "list", *at).json] == ["mayor"]
    assert [one["name"] for one in here("notify", "list", *at).json] == ["phone"]
