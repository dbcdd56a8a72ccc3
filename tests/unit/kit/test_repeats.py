"""Lines that come by the thousand."""

from collections.abc import Callable
from typing import Any

import pytest

from lamplighter.kit.repeats import MOST_KINDS, Repeats


class Book:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.waiting: list[Callable[[], None]] = []
        self.repeats = Repeats(lambda _seconds, then: self.waiting.append(then), self.write)

    def write(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    def minute(self) -> None:
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then()


@pytest.fixture
def book() -> Book:
    return Book()


def test_the_first_is_written_at_once_and_the_rest_counted(book: Book) -> None:
    for _ in range(1000):
        book.repeats.tell("web.cut", reason="slow")
    assert book.lines == [("web.cut", {"reason": "slow"})]
    book.minute()
    assert book.lines[1:] == [("web.cut", {"reason": "slow", "again": 999, "within_s": 60.0})]


def test_one_that_came_alone_is_not_told_twice_and_its_next_is_new(book: Book) -> None:
    book.repeats.tell("web.cut")
    book.minute()
    book.repeats.tell("web.cut")
    assert book.lines == [("web.cut", {}), ("web.cut", {})]


def test_others_are_told_apart_until_there_are_too_many(book: Book) -> None:
    for number in range(MOST_KINDS + 50):
        book.repeats.tell("control.refused", name=number)
    assert len(book.lines) == MOST_KINDS + 1
    book.repeats.flush()
    assert book.lines[-1] == ("control.refused", {"again": 49, "within_s": 60.0})
