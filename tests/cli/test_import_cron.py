"""A crontab is taken over once, disabled, and what is not carried is told."""

import os
from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

TAB = "MAILTO=me@example.com\n30 8 * * 1-5 /opt/bin/triage.sh --all\n@reboot start-it\n@daily tidy\n"


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (tmp_path / "tab").write_text(TAB)
    return root


def states(root: Path) -> dict[str, bool]:
    return {one["name"]: one["enabled"] for one in here("automation", "list", "--json", "--city", str(root)).json}


def test_lines_become_disabled_automations_once(town: Path, tmp_path: Path) -> None:
    first = here("import", "cron", str(tmp_path / "tab"), "--city", str(town))
    assert first.code == 0
    assert "line 2: 30 8 * * 1-5 → automation `triage`, taken over" in first.out
    assert "line 1: not carried over: MAILTO=me@example.com" in first.out
    assert "line 3: not carried over: @reboot start-it" in first.out
    assert states(town) == {"triage": False, "tidy": False}
    again = here("import", "cron", str(tmp_path / "tab"), "--json", "--city", str(town)).json
    assert [one["new"] for one in again["taken"]] == [False, False]
    assert states(town) == {"triage": False, "tidy": False}
    assert (tmp_path / "tab").read_text() == TAB


def test_enabled_when_asked_and_beside_an_automation_of_that_name(town: Path, tmp_path: Path) -> None:
    at = ("--city", str(town))
    assert here("automation", "create", "tidy", "--exec", "true", "--manual", *at).code == 0
    done = here("import", "cron", str(tmp_path / "tab"), "--enable", "--json", *at).json
    assert [one["name"] for one in done["taken"]] == ["triage", "tidy-2"]
    assert states(town) == {"triage": True, "tidy": True, "tidy-2": True}


def test_without_a_file_it_is_the_users_own(town: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "crontab").write_text('#!/bin/sh\n[ "$*" = "-l" ] && echo "1 2 * * * sweep"\n')
    (programs / "crontab").chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    assert lamp("import", "cron", "--json", cwd=town, env=env).json["taken"][0]["name"] == "sweep"
    (programs / "crontab").write_text("#!/bin/sh\nexit 1\n")
    assert "no crontab" in one_sentence(lamp("import", "cron", cwd=town, env=env), 3)


def test_rubbish_is_told(town: Path, tmp_path: Path) -> None:
    one_sentence(here("import", "cron", str(tmp_path / "none"), "--city", str(town)), 3)
    (tmp_path / "rubbish").write_bytes(b"\xff\xfe")
    one_sentence(here("import", "cron", str(tmp_path / "rubbish"), "--city", str(town)), 2)
