"""A process killed at each named point, then the next one: nothing acknowledged is lost, nothing is done twice."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import lamplighter
from lamplighter.kit.crash import CrashPoint

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]

SOURCE = Path(lamplighter.__file__).parent


def reached() -> set[CrashPoint]:
    """The points that code passes; one only named, for what is still to be built, has nothing to be killed in."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return {point for point in CrashPoint if re.search(rf"CrashPoint\.{point.name}\b", text)}


def subjects(lamp: Lamp) -> list[str]:
    done = lamp("event", "list", "--type", "test.said", "--json")
    assert done.returncode == 0, done.stderr
    return [event["subject"] for event in json.loads(done.stdout)]


def emit(lamp: Lamp, subject: str, *, crash_at: str = "") -> None:
    done = lamp("event", "emit", "test.said", "--subject", subject, crash_at=crash_at)
    assert done.returncode == (-signal.SIGKILL if crash_at else 0), done.stderr


def before_commit(lamp: Lamp, _city: Path) -> None:
    emit(lamp, "lost", crash_at=CrashPoint.STORE_BEFORE_COMMIT)
    emit(lamp, "kept")
    assert subjects(lamp) == ["kept"]


def after_commit(lamp: Lamp, _city: Path) -> None:
    emit(lamp, "kept", crash_at=CrashPoint.STORE_AFTER_COMMIT)
    emit(lamp, "next")
    assert subjects(lamp) == ["kept", "next"]


def before_numbering(lamp: Lamp, _city: Path) -> None:
    emit(lamp, "kept", crash_at=CrashPoint.STORE_BEFORE_NUMBERING)
    emit(lamp, "next")
    assert subjects(lamp) == ["kept", "next"]


def after_export(lamp: Lamp, city: Path) -> None:
    for number in range(3):
        emit(lamp, str(number))
    assert lamp("start", crash_at=CrashPoint.EXPORT_AFTER_WRITE).returncode == -signal.SIGKILL
    emit(lamp, "3")
    assert lamp("start").returncode == 0
    lines = [json.loads(line) for line in (city / ".gc" / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["subject"] for line in lines if line["type"] == "test.said"] == ["0", "1", "2", "3"]
    assert len({line["seq"] for line in lines}) == len(lines)


SCENARIOS = {
    CrashPoint.STORE_BEFORE_COMMIT: before_commit,
    CrashPoint.STORE_AFTER_COMMIT: after_commit,
    CrashPoint.STORE_BEFORE_NUMBERING: before_numbering,
    CrashPoint.EXPORT_AFTER_WRITE: after_export,
}
ON_POSTGRES = {CrashPoint.STORE_BEFORE_NUMBERING, CrashPoint.STORE_BEFORE_COMMIT, CrashPoint.STORE_AFTER_COMMIT}


def test_every_point_that_is_passed_has_its_scenario() -> None:
    # in test_automation_crashes.py, test_agent_crashes.py, test_verify_crashes.py, test_stuck_crashes.py,
    # test_trust_crashes.py, test_notice_crashes.py, test_slack_crashes.py, test_bulk_crashes.py and
    # test_traces_crashes.py
    automations = (
        "fire.", "item.", "run.", "command.", "cook.", "session.", "complete.", "artifact.", "verify.", "setup.",
        "notice.", "stuck.", "take.", "bulk.", "turn.", "traces.", "stream.",
    )  # fmt: skip
    elsewhere = {point for point in CrashPoint if point.startswith(automations)}
    assert reached() - elsewhere == set(SCENARIOS)


@pytest.mark.parametrize("point", [point for point in SCENARIOS if point is not CrashPoint.STORE_BEFORE_NUMBERING])
def test_on_sqlite_the_next_process_goes_on(point: CrashPoint, lamp: Lamp, city: Path) -> None:
    _configure(city, "[events]\nexport = true\n")
    SCENARIOS[point](lamp, city)


@pytest.mark.parametrize("point", sorted(ON_POSTGRES))
def test_on_postgres_the_next_process_goes_on(point: CrashPoint, lamp: Lamp, city: Path, postgres_url: str) -> None:
    _configure(city, f'[store]\nurl = "{postgres_url}"\n')
    assert lamp("init").returncode == 0
    SCENARIOS[point](lamp, city)


def _configure(city: Path, text: str) -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + text)
