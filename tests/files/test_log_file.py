"""The log of a daemon in the background: put aside while it is written, followed across that, lost without harm."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.adapters.files import log_file
from lamplighter.adapters.files.log_file import Follower, LogFile, last_lines

LINE = "x" * 99 + "\n"


class Log:
    """A log file, and a stream on two descriptors that stand for standard output and error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = log_file.open_log(path)
        self.descriptors = (file, os.dup(file))
        self.stream = LogFile(path, self.descriptors, longest=1000, kept=2)

    def fill(self, word: str, count: int = 1) -> None:
        for number in range(count):
            self.stream.write(f"{word} {number}\n".rjust(100, "."))

    def numbered(self) -> list[str]:
        return sorted(one.name for one in self.path.parent.iterdir())

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "daemon.log")
    yield made
    made.close()


def test_a_long_log_goes_on_as_a_new_file_and_so_many_are_kept(log: Log) -> None:
    log.fill("line", 105)
    assert log.numbered() == ["daemon.log", "daemon.log.1", "daemon.log.2"]
    assert all(one.stat().st_size <= 1100 for one in log.path.parent.iterdir())
    assert (log.path.stat().st_mode & 0o777) == 0o600
    assert last_lines(log.path, 5)[-1].endswith("line 104")
    assert [line.rpartition(" ")[2] for line in last_lines(log.path, 12)] == [str(one) for one in range(93, 105)]


def test_whatever_else_is_written_to_its_descriptors_goes_to_the_new_file_too(log: Log) -> None:
    log.fill("line", 10)
    os.write(log.descriptors[0], b"a traceback\n")
    assert "a traceback" in log.path.read_text()
    assert log.numbered() == ["daemon.log", "daemon.log.1"]


def test_a_log_that_somebody_moved_or_removed_is_made_anew(log: Log) -> None:
    log.path.rename(log.path.with_name("elsewhere"))
    log.fill("line", 15)
    assert "line 14" in log.path.read_text()
    log.path.unlink()
    log.fill("more", 12)
    assert "more 11" in log.path.read_text()


def test_where_no_new_file_can_be_had_the_old_one_goes_on(log: Log) -> None:
    log.path.with_name("daemon.log.new").mkdir()
    log.fill("line", 30)
    assert len(log.path.read_text().splitlines()) == 30
    log.path.with_name("daemon.log.new").rmdir()
    log.fill("more", 10)
    assert log.path.with_name("daemon.log.1").exists()


def test_what_finds_no_room_is_lost_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    file = log_file.open_log(path)
    full = os.open("/dev/full", os.O_WRONLY)
    target = os.dup(full)
    stream = LogFile(path, (target,))
    assert stream.write(LINE * 3) == 300
    stream.write(LINE)
    os.dup2(file, target)
    stream.write("there is room again\n")
    stream.flush()
    assert path.read_text().splitlines() == ["log.lost lines=4: there was no room for them", "there is room again"]
    for descriptor in (file, full, target):
        os.close(descriptor)


def test_following_misses_no_line_when_the_log_is_put_aside(log: Log) -> None:
    log.fill("before", 3)
    follower = Follower(log.path)
    found: list[str] = []
    for number in range(60):
        log.stream.write(f"line {number}\n".rjust(100, "."))
        if number % 4 == 0:  # less often than it is put aside
            found += follower.new_lines()
    found += follower.new_lines()
    follower.close()
    assert [line.rpartition(" ")[2] for line in found] == [str(number) for number in range(60)]


def test_following_begins_with_a_log_that_is_not_there_yet_and_takes_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    follower = Follower(path)
    assert follower.new_lines() == []
    with path.open("a") as file:
        file.write("first\nsec")
        file.flush()
        assert follower.new_lines() == ["first"]
        file.write("ond\n")
        file.flush()
        assert follower.new_lines() == ["second"]
        file.truncate(0)
    with path.open("w") as file:
        file.write("cut\n")
    assert follower.new_lines() == ["cut"]
    follower.close()


def test_of_no_log_there_are_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "daemon.log", 5) == []
