"""What of a session's output is recorded at once, what waits until it is complete, and how people read it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.pipeline import transcripts
from lamplighter.daemon.pipeline.transcripts import LinesRead, Transcript, read_lines
from lamplighter.domain.runs.budget import Spent
from lamplighter.domain.sessions.model import SessionName
from lamplighter.domain.sessions.presets.lines import plain
from lamplighter.domain.sessions.transcript import Parsed, Text
from lamplighter.kit.clock import SystemClock
from lamplighter.ports.sessions import Output, SessionProvider
from lamplighter.services.runs.transcripts import Batch, told
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Store


class Kept:
    """The output of a session as a provider keeps it, and the batches that were recorded of it."""

    def __init__(self, data: bytes = b"", most: int = 1 << 20) -> None:
        self.data, self.most = data, most
        self.batches: list[Batch] = []

    async def read(self, _name: SessionName, position: int) -> Output:
        return Output(self.data[position : position + self.most], position)

    async def transact(self, _record: Callable[..., Any], batch: Batch, _now: object) -> Spent:
        self.batches.append(batch)
        return Spent()

    def transcript(self) -> Transcript:
        store, provider = cast("Store", self), cast("SessionProvider", self)
        return Transcript(store, SystemClock(), provider, plain, "run_1", "ses_1", SessionName("run_1"))

    @property
    def said(self) -> list[str]:
        return [event.text for batch in self.batches for event in batch.events if isinstance(event, Text)]


async def test_a_line_without_its_end_waits_for_it_or_for_the_end_of_the_session() -> None:
    kept = Kept(b"one\ntw")
    reading = kept.transcript()
    await reading.read()
    assert (kept.said, reading.position) == (["one"], 4)
    await reading.read()
    assert len(kept.batches) == 1, "nothing is recorded twice, and nothing before it is whole"
    kept.data += b"o\nthree"
    await reading.read()
    assert kept.said == ["one", "two"]
    await reading.read(to_the_end=True)
    assert (kept.said, reading.position) == (["one", "two", "three"], len(kept.data))
    assert [(batch.before, batch.after) for batch in kept.batches] == [(0, 4), (4, 8), (8, 13)]


async def test_a_line_that_is_longer_than_any_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "LONGEST_LINE", 5)
    kept = Kept(b"1234")
    reading = kept.transcript()
    await reading.read()
    assert kept.said == []
    kept.data += b"5"
    await reading.read()
    assert kept.said == ["12345"]


async def test_what_a_part_of_the_output_ends_in_is_joined_with_the_next_part() -> None:
    kept = Kept(b"one\ntwo\nthree\nfour", most=7)
    reading = kept.transcript()
    await reading.read()
    assert (kept.said, reading.position) == (["one"], 4), "one part at a time while the session lives"
    await reading.read(to_the_end=True)
    assert kept.said == ["one", "two", "three", "four"]
    assert [(batch.before, batch.after) for batch in kept.batches] == [(0, 4), (4, 8), (8, 14), (14, 18)]
    await reading.read(to_the_end=True)
    assert len(kept.batches) == 4


async def test_a_part_as_long_as_the_longest_line_is_cut_where_a_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "LONGEST_LINE", 6)
    kept = Kept(b"one\ntwo\n3456789", most=6)
    reading = kept.transcript()
    for _ in range(4):
        await reading.read()
    assert kept.said == ["one", "two", "345678"]
    await reading.read(to_the_end=True)
    assert kept.said == ["one", "two", "345678", "9"]


async def test_where_output_cannot_be_read_on_it_is_read_whole_once_at_the_end() -> None:
    kept = Kept(b"one\ntwo")

    async def peek(_name: SessionName, lines: int) -> str:
        assert lines == 0
        return kept.data.decode()

    reading = kept.transcript()
    reading.provider = cast("SessionProvider", SimpleNamespace(peek=peek))
    await reading.read()
    assert kept.batches == []
    for _ in range(2):
        await reading.read(to_the_end=True)
    assert (kept.said, reading.position) == (["one", "two"], 7)


def pieces(line: str) -> Parsed:
    """`+x` is a piece of a sentence, `.x` a whole one, `#x` the program's own name of the session."""
    if line.startswith("#"):
        return Parsed((), session_id=line[1:])
    return Parsed((Text(line[1:]),) if line else (), is_piece=line.startswith("+"))


@pytest.mark.parametrize(
    ("data", "last", "said", "used"),
    [
        (b".a\n.b\n", False, ["a", "b"], 6),
        (b".a\n+b\n+c\n", False, ["a"], 3),
        (b".a\n+b\n+c\n", True, ["a", "bc"], 9),
        (b"+a\n+b\n.c\n", False, ["ab", "c"], 9),
        (b"+a\n.b\n+c\n", False, ["a", "b"], 6),
        (b"+a\n\n+b\n", True, ["ab"], 7),
        (b"\n", False, [], 1),
    ],
)
def test_pieces_are_joined_once_what_is_said_is_complete(
    data: bytes, *, last: bool, said: list[str], used: int
) -> None:
    read = read_lines(data, pieces, last=last)
    assert ([event.text for event in read.events if isinstance(event, Text)], read.used) == (said, used)


def test_pieces_are_not_held_back_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b".a\n+bc\n"  # what is held begins at 3 and, with the end that follows, has 5 bytes
    monkeypatch.setattr(transcripts, "MOST_HELD", 5)
    assert read_lines(data, pieces, last=False).used == 3
    monkeypatch.setattr(transcripts, "MOST_HELD", 4)
    assert read_lines(data, pieces, last=False).used == len(data)


def test_the_last_name_that_the_program_gives_its_session_counts() -> None:
    assert read_lines(b"#one\n.a\n#two\n.b\n", pieces, last=False) == LinesRead((Text("a"), Text("b")), "two", 16)


@pytest.mark.parametrize(
    ("kind", "body", "line"),
    [
        ("tool_started", {"name": "Bash", "detail": "make\n  test"}, "> Bash make test"),
        ("tool_started", {"name": "mcp__automation__automation_complete", "detail": '{"run_id": "r"}'},
         "> automation_complete"),
        ("tool_started", {"name": "automation_automation_ask", "detail": "{}"}, "> automation_ask"),
        ("tool_started", {"name": "automation_complete", "detail": "{}"}, "> automation_complete"),
        ("tool_started", {"name": "mcp__automation__bead_create", "detail": "{}"}, "> bead_create {}"),
        ("tool_ended", {"ok": True, "detail": "a" * 500}, f"< ok {'a' * 195}…"),
        ("tool_ended", {"ok": False, "detail": "no such\nfile"}, "< failed no such file"),
        ("text", {"text": "one\ntwo"}, "one\ntwo"),
    ],
)  # fmt: skip
def test_a_call_of_a_tool_is_one_line_and_the_citys_own_have_their_names(
    kind: str, body: dict[str, Any], line: str
) -> None:
    assert told(TranscriptEvent(1, SystemClock().now(), kind, body)) == line
