"""What a terminal shows while things happen: `lamp up` and `lamp status --watch`, each on a real pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here

from lamplighter.app.daemon_log import calm, log_beside_a_view
from lamplighter.app.settings import Settings
from lamplighter.cli.narrator import Line, Narrator
from lamplighter.domain.events import Event

WITHIN_S = 120
RUN = f"run_{'0' * 20}b7my82"
AT = datetime(2026, 11, 17, 12, tzinfo=UTC)


class Terminal:
    """A program on a terminal of 100 columns."""

    def __init__(self, *arguments: str) -> None:
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=ENVIRONMENT | {"TERM": "xterm"},
            start_new_session=True,
        )
        os.close(follower)
        self.seen = ""

    def until(self, pattern: str) -> str:
        """What was shown until the pattern came."""
        deadline = time.monotonic() + WITHIN_S
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, f"{pattern} is not shown: {self.seen}"
            if select.select([self.leader], [], [], 1)[0]:
                try:
                    data = os.read(self.leader, 65536)
                except OSError:
                    data = b""
                assert data, f"it ended without {pattern}: {self.seen}"
                self.seen += data.decode(errors="replace")
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown

    def press(self, keys: str) -> None:
        os.write(self.leader, keys.encode())

    def ended(self) -> int:
        """The exit code; what it still says is read."""
        deadline = time.monotonic() + WITHIN_S
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.leader], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.leader, 65536).decode(errors="replace")
                except OSError:
                    break
        code = self.process.wait(timeout=WITHIN_S)
        with suppress(OSError):  # the kernel says so at the end
            while select.select([self.leader], [], [], 0.1)[0] and (last := os.read(self.leader, 65536)):
                self.seen += last.decode(errors="replace")
        return code


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    shown = Terminal(*arguments)
    try:
        yield shown
    finally:
        shown.process.kill()
        shown.process.wait()
        os.close(shown.leader)


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(
        '[workspace]\nname = "town"\n[api]\nport = 0\n[session]\nprovider = "subprocess"\n[daemon]\n'
        'patrol_interval = "200ms"\n[[agents]]\nname = "lamp"\n'
        "start_command = 'if [ -e once ]; then exec sleep 600; fi; touch once; echo out; sleep 1; exit 3'\n"
    )
    return root


def test_up_tells_what_happens_and_logs_to_its_file(town: Path) -> None:
    assert here("automation", "create", "hello", "--exec", "true", "--manual", "--city", str(town)).code == 0
    with terminal("--city", str(town), "up") as shown:
        shown.until("The lamps are lit")
        shown.until(r"✗.{0,10} lamp +crashed \(exit status 3\)")
        shown.until(r"●.{0,10} lamp +started again")
        assert here("automation", "run", "hello", "--city", str(town)).code == 0
        shown.until(r"✓.{0,10} hello +succeeded after")
        assert here("stop", "--city", str(town)).code == 0
        assert shown.ended() == 0
        assert "City stopped." in shown.seen
        assert "[info" not in shown.seen
    assert "agent.started" in "\n".join(here("daemon", "logs", "--json", "--city", str(town)).json["lines"])


def test_a_quiet_up_logs_on_the_terminal(town: Path) -> None:
    with terminal("--city", str(town), "up", "--quiet") as shown:
        shown.until(r"agent\.started")
        assert here("stop", "--city", str(town)).code == 0
        assert shown.ended() == 0


def test_the_watched_status_is_drawn_in_place_and_q_ends_it(town: Path) -> None:
    (town / "once").touch()
    with terminal("--city", str(town), "status", "--watch", "--every", "0.2") as shown:
        first = shown.until("q quits")
        assert "\x1b[?1049h" in first
        assert "\x1b]2;lamp status\x07" in first
        assert "is stopped" in first
        shown.press("\x1b[B")
        assert "lamp" in shown.until("\x1b\\[7m[^\x1b]*lamp[^\x1b]*")
        shown.press("\r")
        assert "Nothing has happened to it yet" in shown.until("any key goes back")
        shown.press("x")
        shown.until("q quits")
        shown.press("q")
        assert shown.ended() == 0
        assert "\x1b[?1049l" in shown.seen, "the screen before is back"


def plain(line: Line) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line.head + line.body)


def event(event_type: str, subject: str, seconds: float = 0, message: str | None = None, **payload: object) -> Event:
    return Event(1, event_type, AT + timedelta(seconds=seconds), "controller", subject, message, payload, None)


def test_what_repeats_itself_is_told_briefly() -> None:
    narrator = Narrator()
    story = [
        event("automation.fired", "tidy", 0, "run by hand", run="run_1"),
        event("automation.completed", "tidy", 0.1, "succeeded", run="run_1", state="succeeded", reason="succeeded"),
        event("automation.fired", "tidy", 5, "again", run="run_2"),
        event("automation.failed", "tidy", 9, "no oil", run="run_2", state="failed", reason="exit_3"),
        event("automation.completed", "tidy", 12, run="run_3", state="succeeded"),
        event("automation.fired", "tidy", 20, "again", run="run_4"),
        event("bead.created", "sf-1", 21),
    ]
    told = [plain(lines[0])[10:] if (lines := narrator.lines(one)) else None for one in story]
    assert told == [
        "→ tidy            fired: run by hand",
        "✓ tidy            succeeded after 100 ms",
        None,
        "✗ tidy            failed after 4 s: exit 3 (run run_2)",
        "✓ tidy            succeeded on another try",
        "→ tidy            fired: again",
        None,
    ]


def test_the_writer_of_an_event_does_not_steer_the_terminal() -> None:
    (found,) = Narrator().lines(event("automation.fired", "a\x1b[2J", 0, "x\x1b]2;evil\x07\ny"))
    line = found.head + found.body
    assert "evil" in line
    assert "\x1b[2J" not in line
    assert "\x07" not in line
    assert "\n" not in line


def test_a_run_that_needs_you_tells_its_question_and_below_it_the_command() -> None:
    def told(reason: str, **payload: object) -> list[str]:
        narrator = Narrator()
        narrator.lamp = "lamp --city demo"
        ended = event("automation.needs_human", "wick", 3, run=RUN, state="needs_human", reason=reason, **payload)
        return [plain(line)[10:].strip() for line in narrator.lines(ended)]

    which = {"text": "Which first?", "choices": ["lamp", "watchman"]}
    assert told("question", question=which) == [
        "! wick            asks: Which first? (lamp or watchman)", "lamp --city demo run answer b7my82 TEXT",
    ]  # fmt: skip
    assert told("plan", question={"text": "First this."}) == [
        "! wick            has a plan that waits for you: First this.", "lamp --city demo run approve b7my82",
    ]  # fmt: skip
    assert told("needs_human") == ["! wick            needs you", "lamp --city demo inbox"]


def test_a_warning_of_the_log_is_one_line_of_the_view() -> None:
    logged = "2026-11-18T05:00:00.1Z [warning  ] store.slow               error='a disk' took=3\nTraceback\n"
    assert calm(logged, 100) == "! store.slow error='a disk' took=3 (lamp daemon logs)"
    cut = calm(logged.replace("a disk", "a disk " * 30), 80)
    assert len(cut) == 80
    assert cut.endswith("… (lamp daemon logs)")


def test_a_refused_request_of_another_terminal_does_not_break_into_the_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".gc").mkdir()
    (tmp_path / "city.toml").write_text('[workspace]\nname = "town"\n')
    stream = log_beside_a_view(Settings(cwd=tmp_path, city=tmp_path, actor="human", run=None, env={}))
    stream.write("2026-11-18T05:00:00.1Z [warning  ] control.refused          error=no verb=do\n")
    stream.write("2026-11-18T05:00:00.1Z [warning  ] store.slow               took=3\n")
    stream.flush()
    assert capsys.readouterr().err == "! store.slow took=3 (lamp daemon logs)\n"
    assert "control.refused" in (tmp_path / ".gc" / "daemon.log").read_text()
