"""A log whose reader left, or whose disk is full, stops nobody."""

import io
import os

import pytest
import structlog

from lamplighter.kit import log


class Disk(io.StringIO):
    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.fixture(autouse=True)
def _as_it_was() -> object:
    yield
    structlog.reset_defaults()


def test_a_full_disk_loses_the_line_and_nothing_else() -> None:
    disk = Disk()
    log.set_up(disk)
    log.get().info("lost", n=1)
    disk.full = False
    log.get().info("kept", n=2)
    assert "lost" not in disk.getvalue()
    assert "kept" in disk.getvalue()


def test_a_reader_that_left_loses_the_line_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        log.set_up(stream)
        log.get().info("lost", n=1)
        reading, again = os.pipe()
        os.dup2(again, writing)  # somebody reads again
        os.close(again)
        log.get().info("kept", n=2)
    with os.fdopen(reading) as reader:
        assert "kept" in reader.read()


def test_secrets_are_masked_in_what_is_written() -> None:
    out = io.StringIO()
    log.set_up(out)
    log.get().info("opened", url="postgresql://me:hush@host/db", api_key="hush")
    assert "opened" in out.getvalue()
    assert "host/db" in out.getvalue()
    assert "hush" not in out.getvalue()


def test_what_others_say_stays_one_line_and_steers_no_terminal() -> None:
    out = io.StringIO()
    log.set_up(out)
    log.get().info("control.refused", name="a\0b\x1b[2J\n2026-01-01 [info] forged", verb="kill")
    log.get().info("a\0\nb", name="c\0\x1bd")
    log.get().error("broke", exc_info=ValueError("\x1b[2J\0"))
    first, second, *_ = out.getvalue().splitlines()
    assert "'a\\x00b\\x1b[2J\\n2026-01-01 [info] forged'" in first
    assert "a\\x00\\nb" in second
    assert "c\\x00\\x1bd" in second
    assert "ValueError: \\x1b[2J\\x00" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert "\0" not in out.getvalue()


@pytest.mark.parametrize("json", [True, False], ids=["json", "console"])
def test_a_traceback_tells_where_and_never_what_variables_held(*, json: bool) -> None:
    def fail(held: str) -> None:
        raise ValueError(len(held))

    out = io.StringIO()
    log.set_up(out, json=json)
    try:
        fail("s3cret" + "x")
    except ValueError as error:
        log.get().error("broke", exc_info=error)
    assert "ValueError" in out.getvalue()
    assert "in fail" in out.getvalue() or '"fail"' in out.getvalue()
    assert "s3cretx" not in out.getvalue()
