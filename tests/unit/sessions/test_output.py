"""Output files: their ends, their bounds."""

import os
from pathlib import Path

from lamplighter.adapters.sessions.local import output


def test_the_tail_reaches_into_the_rotated_file(tmp_path: Path) -> None:
    path = tmp_path / "output"
    output.older(path).write_text("one\ntwo\n")
    path.write_text("three\n")
    assert output.tail(path, 2) == "two\nthree"
    assert output.tail(path, 0) == "one\ntwo\nthree"


def test_a_long_file_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text("".join(f"line {number}\n" for number in range(50_000)))
    assert output.tail(path, 1) == "line 49999"
    assert len(output.tail(path, 20_000).splitlines()) == 20_000


def test_a_file_over_its_bound_is_copied_and_cut_under_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        os.utime(path, (1000, 1000))
        assert not output.rotate(path, 100)
        assert output.rotate(path, 99)
        assert output.last_written(path).timestamp() == 1000, "cutting is no activity"
        writer.write(b"after")
    assert path.read_bytes() == b"after"
    assert output.older(path).read_bytes() == b"x" * 100


def test_a_copy_that_fails_does_not_let_the_file_grow(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(b"x" * 100)
    output.older(path).mkdir()  # nothing can be copied there
    (output.older(path) / "in-the-way").touch()
    assert output.rotate(path, 10)
    assert path.stat().st_size == 0


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "output"
    assert (output.tail(path, 5), output.rotate(path), output.last_written(path)) == ("", False, None)
    output.clear(path)
