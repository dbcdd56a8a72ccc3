"""`lamp` as a person calls it: the real program in a process, or its `run` in this one where speed matters."""

import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lamplighter.cli.main import run

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}

WITHIN_S = 120
R = TypeVar("R")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, str]:
        """The error that `--json` puts on standard error."""
        problem: dict[str, str] = json.loads(self.err)
        assert list(problem) == ["type", "title", "detail", "hint"]
        return problem


def lamp(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, user: int | None = None) -> Said:
    """The real program, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "lamplighter", *arguments],
        cwd=cwd, env=ENVIRONMENT | dict(env or {}), user=user, group=user, extra_groups=None if user is None else [],
        check=False, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def here(*arguments: str) -> Said:
    """The same command within this process; it must be told its city."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return Said(code, out.getvalue(), err.getvalue())


def until(holds: Callable[[], R], told: Callable[[], object] = lambda: "it does not come to pass") -> R:
    """The first true answer; `told` says how things are if none comes. What is waited for, another process does."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := holds()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.02)
    return found


def told_its_name(database: Path, run: str) -> bool:
    """Whether the program's own name for its conversation is on record; no command shows it of a living session."""
    with contextlib.closing(sqlite3.connect(database, timeout=WITHIN_S)) as reading:
        named = "SELECT 1 FROM sessions WHERE run_id = ? AND program_session IS NOT NULL"
        return reading.execute(named, (run,)).fetchone() is not None


def one_sentence(said: Said, code: int) -> str:
    """What a failed command must look like: its code, one error and perhaps a hint, and no traceback."""
    assert said.code == code, said
    lines = said.err.strip().splitlines()
    assert lines[0].startswith("error: "), said.err
    assert len(lines) <= 2, said.err
    assert "Traceback" not in said.err
    return said.err
