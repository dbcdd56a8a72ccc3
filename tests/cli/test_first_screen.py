"""What `lamp up` says first: among it what fires next, and how soon."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, until

from lamplighter.cli.output import soon
from lamplighter.kit.clock import rfc3339
from lamplighter.testing.processes import children

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)


def test_how_soon_is_told_in_whole_units() -> None:
    away = {"late": -3.0, "now": 0.0, "blink": 0.2, "minutely": 36.5, "daily": 7500.0}
    firings = [{"scoped_name": name, "at": rfc3339(NOW + timedelta(seconds=seconds))} for name, seconds in away.items()]
    assert soon(firings, NOW) == "late now · now now · blink in 1 s · minutely in 37 s · daily in 2 h 5 min"
    assert soon([], NOW) == ""


@pytest.mark.parametrize("held", ["no", "paused", "suspended"])
def test_the_demo_says_when_its_schedule_comes(tmp_path: Path, held: str) -> None:
    root = tmp_path / "demo"
    assert lamp("init", str(root), "--demo", cwd=tmp_path).code == 0
    if held != "no":
        assert here({"paused": "pause", "suspended": "suspend"}[held], "--city", str(root)).code == 0
    with children() as started:
        daemon = started.start(sys.executable, "-m", "lamplighter", "up", "--city", str(root), env=ENVIRONMENT)
        while not (line := daemon.line()).startswith("Next:"):
            assert line, "it ended without a word about what comes"
        here("stop", "--city", str(root))
    if held == "no":
        assert re.search(r"minutely (in \d+ s|in 1 min|now)", line)
        assert "bell" not in line, "what waits for an event has no time"
    else:
        assert line == "Next:  nothing, until `lamp resume`"


def test_the_doctor_has_no_advice_about_what_the_demo_declares(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    assert here("init", str(root), "--demo").code == 0
    assert here("automation", "list", "--city", str(root)).code == 0, "which takes its files into the store"
    found = here("doctor", "--city", str(root), "--json").json
    about_the_machine = ("controller", "disk", "programs")
    assert [one for one in found if one["level"] != "ok" and one["check"] not in about_the_machine] == []


def test_the_demo_works_in_a_directory_with_a_space(tmp_path: Path) -> None:
    root = tmp_path / "a demo"
    assert here("init", str(root), "--demo").code == 0
    assert lamp("daemon", "start", cwd=root).code == 0
    try:
        said = until(lambda: here("agent", "logs", "lamp", "--city", str(root)).out)
        assert said.startswith("the lamp is lit")
    finally:
        assert lamp("stop", cwd=root).code == 0


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_without_utf_8_is_told_what_it_can_show(tmp_path: Path, encoding: str) -> None:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    made = here("automation", "create", "grüße", "--exec", "echo ☂", "--manual", "--city", str(root))
    assert made.code == 0, made
    for command in (["automation", "list"], ["doctor"], ["automation", "show", "grüße"]):
        line = [sys.executable, "-m", "lamplighter", *command, "--city", str(root)]
        told = subprocess.run(
            line, env=ENVIRONMENT | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}, capture_output=True, check=False,
            timeout=120,
        )  # fmt: skip
        assert (told.returncode, told.stderr) == (0, b""), command
