"""A daemon killed between each two steps of verifying, answering, approving, taking over and giving back."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drill_city import LAMP
from drill_city import environment as around
from test_answer_crashes import POINTS as ANSWERED
from test_answer_crashes import _answered
from test_trust_crashes import APPROVED, TAKEN, _approved, _taken
from test_verify_crashes import POINTS as VERIFIED
from test_verify_crashes import _furnish, _killed_and_checked

from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children

SESSION = (
    (CrashPoint.RUN_BEFORE_SESSION, 1),
    (CrashPoint.SESSION_BEFORE_LAUNCH, 1),
    (CrashPoint.SESSION_AFTER_LAUNCH, 1),
    (CrashPoint.RUN_AFTER_SESSION, 1),
    (CrashPoint.RUN_AFTER_PROMPT, 1),
)
"""The steps of the session that goes on: the second of its run, or that of the run that follows."""
STOPPED = ((CrashPoint.SESSION_BEFORE_STOP, 0),)
STARTED = ((CrashPoint.RUN_AFTER_START, 1),)
REPORTED = ((CrashPoint.COMPLETE_AFTER_COMMIT, 1),)

Flow = Callable[..., None]


def _verified(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    del lamp  # nobody does anything by hand
    _furnish(city)
    _killed_and_checked(point, passes, city, environment, processes)


FLOWS: dict[str, tuple[Flow, tuple[tuple[CrashPoint, int], ...]]] = {
    "verified": (_verified, (*VERIFIED, *SESSION, *STOPPED, *REPORTED)),
    "answered": (_answered, (*ANSWERED, *STARTED, *SESSION, *STOPPED, *REPORTED)),
    "approved": (_approved, (*APPROVED, *STARTED, *SESSION, *STOPPED, *REPORTED)),
    "taken": (_taken, (*TAKEN, *STARTED, *SESSION, *STOPPED)),
}
CASES = [(flow, *case) for flow, (_, points) in FLOWS.items() for case in dict.fromkeys(points)]


@pytest.fixture
def environment() -> dict[str, str]:
    return around()


@pytest.mark.parametrize("database", ["postgres", "sqlite"])
@pytest.mark.parametrize(("flow", "point", "passes"), CASES)
def test_each_step(  # noqa: PLR0917  its case and its fixtures
    flow: str, point: CrashPoint, passes: int, database: str, city: Path, environment: dict[str, str],
    processes: Children, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    def lamp(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [*LAMP, *arguments, "--city", str(city)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)

    if database == "postgres":
        with (city / "city.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[store]\nurl = "{request.getfixturevalue("postgres_url")}"\n')
        assert lamp("init").returncode == 0
    carried_out, _ = FLOWS[flow]
    carried_out(point, passes, city, environment, processes, lamp)
