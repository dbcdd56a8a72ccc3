"""Whether a start goes on with the conversation that the agent had."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.files import conversations
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.resuming import Conversed, may_go_on

START = datetime(2026, 11, 17, tzinfo=UTC)
MARK = "2026-11-17T00:00:00.000001Z"


def at(*seconds: float) -> tuple[datetime, ...]:
    return tuple(START + timedelta(seconds=second) for second in seconds)


def had(program: str = "claude", *, chosen: str = "c0ffee", starts: tuple[datetime, ...] = ()) -> Conversed:
    return Conversed(program, chosen, MARK, "/w", starts)


@pytest.mark.parametrize(
    ("starts", "now", "goes_on"),
    [
        ((0,), 5, True), ((0, 5), 10, False), ((0, 5), 100, True), ((0, 100), 110, True), ((0, 100, 110), 120, False),
        ((), 0, True),
    ],
)  # fmt: skip
def test_after_two_quick_deaths_in_a_row_a_program_begins_anew(
    starts: tuple[float, ...], now: float, *, goes_on: bool
) -> None:
    before = had(starts=at(*starts))
    assert may_go_on(before, program="claude", work_dir="/w", now=at(now)[0]) == goes_on


def test_a_conversation_belongs_to_one_program_in_one_place() -> None:
    assert not may_go_on(had(), program="codex", work_dir="/w", now=START)
    assert not may_go_on(had(), program="claude", work_dir="/elsewhere", now=START)


def test_the_note_on_a_conversation_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert conversations.kept(tmp_path) is None
    conversations.keep(tmp_path, had().started(START))
    assert conversations.kept(tmp_path) == had(starts=at(0))
    (tmp_path / conversations.NOTE).write_text("{}")
    assert conversations.kept(tmp_path) is None


def found(conversed: Conversed, env: dict[str, str]) -> str:
    store = PRESETS[conversed.program].conversations
    assert store is not None
    return conversations.find(store, conversed, env)


def test_claude_has_kept_the_conversation_once_its_file_is_there(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert found(had(), home) == ""
    (tmp_path / ".claude/projects/-w").mkdir(parents=True)
    (tmp_path / ".claude/projects/-w/c0ffee.jsonl").write_text("{}")
    assert found(had(), home) == "c0ffee"
    assert found(had(), home | {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}) == ""


def test_the_conversation_of_codex_is_the_one_that_began_with_the_agent_s_prompt(tmp_path: Path) -> None:
    day = tmp_path / ".codex/sessions/2026/11/17"
    day.mkdir(parents=True)
    ids = [f"01a1e75d-35cb-7311-8b29-949e00a64c0{number}" for number in range(3)]
    for number, name in enumerate(ids):
        text = MARK if number == 1 else "another agent"
        (day / f"rollout-2026-11-17T02-36-4{number}-{name}.jsonl").write_text(f'{{"text": "[town] mayor {text}"}}')
    assert found(had("codex"), {"HOME": str(tmp_path)}) == ids[1]


def test_the_conversations_of_opencode_and_goose_are_asked_of_their_databases(tmp_path: Path) -> None:
    def database(path: str, *statements: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True)
        with closing(sqlite3.connect(tmp_path / path)) as made, made:
            for statement in statements:
                made.execute(statement)

    home = {"HOME": str(tmp_path)}
    assert found(had("opencode"), home) == ""
    database(
        ".local/share/opencode/opencode.db", "CREATE TABLE part (session_id, time_created, data)",
        f"INSERT INTO part VALUES ('ses_1', 1, '[town] mayor {MARK}'), ('ses_2', 2, 'another')",
    )  # fmt: skip
    database(
        ".local/share/goose/sessions/sessions.db", "CREATE TABLE sessions (name)", "INSERT INTO sessions VALUES ('me')"
    )
    assert found(had("opencode"), home) == "ses_1"
    assert found(had("goose", chosen="me"), home) == "me"
    assert found(had("goose", chosen="you"), home) == ""


def test_a_database_that_cannot_be_asked_means_a_new_conversation(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_text("no database")
    assert found(had("opencode"), {"HOME": str(tmp_path)}) == ""
