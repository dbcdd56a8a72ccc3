"""A file that outgrew its bound gives its blocks back and keeps its end."""

from pathlib import Path

from lamplighter.adapters.sessions.local.output import end_of, trim


def test_the_end_stays_and_the_disk_is_free(tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("ab") as writer:
        writer.write(b"x" * 8_000_000)
        writer.flush()
        assert trim(path, 1_000_000, 64 * 1024) is True
        writer.write(b"the end")
        writer.flush()
        assert end_of(path, 64 * 1024).endswith("xthe end")
        assert path.stat().st_blocks * 512 < 1_000_000
        assert trim(path, 1_000_000, 64 * 1024) is False


def test_a_small_or_missing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "output"
    assert trim(path, 10, 5) is False
    path.write_text("short")
    assert trim(path, 100_000, 5) is False
    assert end_of(path, 3) == "ort"
