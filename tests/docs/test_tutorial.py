"""The tutorial's commands are run in order in a scratch home, against a real daemon; its output lines are compared."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-hour.md"
MARK = "\x1e"
WITHIN = 540  # only against a hang; on an idle machine it takes about twenty seconds
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_MASKS = (
    (re.compile(r"[a-z]+_[0-9a-z]{26}"), "ID"),
    (re.compile(r"\b(run|watch|answer) (?!answer)[0-9a-z]{6}\b", re.IGNORECASE), r"\1 ID"),
    (re.compile(r"^\s*[0-9a-hjkmnp-tv-z]{6}(?=  )"), "ID"),
    (re.compile(r"Etc/GMT[+-]\d+|Etc/GMT|(?<=\d )[+-]\d\d\b"), "UTC"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?(?: UTC| GMT)?"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"process \d+"), "process N"),
    (re.compile(r"\b[\d.]+ (?:ms|s|min|h|d)(?: \d+ (?:s|min|h))?\b"), "SPAN"),
    (re.compile(r"\b(?:now|in SPAN|SPAN ago)\b"), "WHEN"),
    (re.compile(r"\s+"), " "),
)
"""What differs from one time to the next, in what is expected as in what is said."""


class Step(NamedTuple):
    command: str
    expected: list[str]


def steps(text: str) -> list[Step]:
    """`$ ` begins a command, `> ` goes on with it, everything else is what it prints."""
    found: list[Step] = []
    for block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            elif re.match(r">( |$)", line):
                found[-1] = Step(f"{found[-1].command}\n{line[2:]}", [])
            else:
                found[-1].expected.append(line)
    return found


@pytest.mark.timeout(WITHIN + 60)
def test_every_step_of_the_tutorial_prints_what_the_page_says(tmp_path: Path) -> None:
    told = steps(PAGE.read_text())
    said = _carried_out([one.command for one in told], tmp_path)
    wrong = [
        f"$ {step.command}\n  the page says: {line}\n  it printed:\n{printed}"
        for step, printed in zip(told, said, strict=True)
        for line in _missing(step.expected, printed, tmp_path)
    ]
    assert not wrong, "\n".join(wrong)


def _carried_out(commands: list[str], home: Path) -> list[str]:
    """What each command printed, on both streams."""
    script = ["exec 2>&1"]
    for command in commands:
        script += [f"printf '{MARK}'", command]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("LAMP_", "GC_", "GIT_"))}
    env |= {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "NO_COLOR": "1", "TZ": _noon()}
    env["LAMP_API_PORT"] = "0"  # another city of this machine may have the usual one
    try:
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)], cwd=home, env=env, capture_output=True, text=True, timeout=WITHIN,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    finally:
        subprocess.run(["lamp", "--city", "town", "stop"], cwd=home, env=env, capture_output=True, check=False)
    return done.stdout.split(MARK)[1:]


def _noon() -> str:
    """A time zone in which it is about noon: nothing that the tutorial schedules fires while it is run."""
    ahead = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"  # POSIX counts the other way round


def _missing(expected: list[str], printed: str, home: Path) -> list[str]:
    """Expected lines that were not printed, in their order; `…` stands for anything."""
    lines = iter([_masked(line.replace(str(home), "~")) for line in printed.splitlines()])
    missing = []
    for line in expected:
        pattern = ".*".join(re.escape(part.strip()) for part in _masked(line).split("…"))
        if not any(re.match(pattern, found) for found in lines):
            missing.append(line)
    return missing


def _masked(line: str) -> str:
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    return line.strip()
