"""Streams recorded from the real programs read into events."""

import json
from pathlib import Path

import pytest

from lamplighter.daemon.pipeline.transcripts import read_lines
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.transcript import (
    Failed,
    SessionEvent,
    Text,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    Usage,
)

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def read(preset: str, sample: str) -> tuple[list[SessionEvent], str]:
    events: list[SessionEvent] = []
    session_id = ""
    for line in (STREAMS / f"{sample}.jsonl").read_text(encoding="utf-8").splitlines():
        parsed = PRESETS[preset].parse(line)
        events += parsed.events
        session_id = parsed.session_id or session_id
    return events, session_id


ASKED = {"claude": "Bash", "codex": "shell", "gemini": "run_shell_command", "goose": "shell", "opencode": "bash",
         "qwen": "run_shell_command", "copilot": "bash"}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_recorded_turn_with_a_tool_reads_in_order(name: str) -> None:
    events, _ = read(name, name)
    (started,) = [event for event in events if isinstance(event, ToolStarted)]
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert started.name == ASKED[name]
    assert "echo hello" in started.detail
    assert (ended.tool_id, ended.ok) == (started.tool_id, True)
    assert "hello" in ended.detail
    assert events.index(started) < events.index(ended) < events.index(Text("All done."))
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].ok


SPENT = {"claude": (24, 14), "codex": (24, 14), "gemini": (36, 21), "goose": (24, 14), "opencode": (24, 14),
         "qwen": (24, 14), "cline": (12, 7)}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SPENT))
def test_usage_sums_to_what_the_turn_used(name: str) -> None:
    events, _ = read(name, name)
    used = [event for event in events if isinstance(event, Usage)]
    assert (sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)) == SPENT[name]


def test_the_cost_is_told_where_the_program_tells_it() -> None:
    events, _ = read("claude", "claude")
    assert [event.cost_usd for event in events if isinstance(event, Usage)] == [0.00047]


NAMED = {"claude", "codex", "gemini", "opencode", "qwen", "copilot"}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_programs_own_session_id_is_found(name: str) -> None:
    assert len(read(name, name)[1]) > 10


@pytest.mark.parametrize(("name", "ok"), [("claude", False), ("codex", False)])
def test_a_recorded_failure_is_told_as_one(name: str, *, ok: bool) -> None:
    events, _ = read(name, f"{name}_error")
    assert [event for event in events if isinstance(event, Failed)]
    assert events[-1].kind == "turn_ended"
    assert events[-1].ok is ok


def test_goose_calls_even_a_failed_turn_complete() -> None:
    events, _ = read("goose", "goose_error")
    assert [event.kind for event in events] == ["text", "turn_ended"]


def test_a_denied_tool_is_told() -> None:
    line = (
        '{"type":"result","is_error":false,"permission_denials":[{"tool_name":"mcp__automation__automation_complete"}]}'
    )
    assert PRESETS["claude"].parse(line).events[0] == Failed(
        "permission denied for mcp__automation__automation_complete"
    )


def test_tools_of_cursor_and_openhands_are_read() -> None:
    cursor = PRESETS["cursor-agent"].parse
    begun = cursor(
        '{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}'
    )
    over = cursor(
        '{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"result":{"success":{"stdout":"a"}}}}}'
    )
    assert begun.events == (ToolStarted("c1", "shell", "ls"),)
    assert over.events[0].ok
    hands = PRESETS["openhands"].parse
    assert hands(
        '{"kind":"ActionEvent","tool_call_id":"t","tool_name":"terminal","action":{"command":"ls"}}'
    ).events == (ToolStarted("t", "terminal", "ls"),)
    assert hands('{"kind":"ObservationEvent","tool_call_id":"t","observation":{"content":[{"text":"a"}]}}').events == (
        ToolEnded("t", ok=True, detail="a"),
    )
    assert hands('{"kind":"MessageEvent","source":"agent","llm_message":{"content":[{"text":"hi"}]}}').events == (
        Text("hi"), TurnEnded(),
    )  # fmt: skip
    assert hands('{"kind":"AgentErrorEvent","error":"broken"}').events == (Failed("broken"),)


def test_programs_that_print_text_are_read_line_by_line() -> None:
    assert PRESETS["aider"].parse("Applied edit\n").events == (Text("Applied edit"),)
    assert PRESETS["shell"].parse("   \n").events == ()


@pytest.mark.parametrize("line", ["{", '{"type": 1e999}', "[" * 5000, '{"a":' * 3000, "null", "\x1b[31mred\x1b[0m"])
def test_broken_lines_say_nothing(line: str) -> None:
    assert PRESETS["claude"].parse(line).events == ()


def piece(words: str) -> str:
    return json.dumps({"type": "message", "role": "assistant", "content": words, "delta": True}) + "\n"


TOOL = json.dumps({"type": "tool_use", "tool_id": "1", "tool_name": "look", "parameters": {}}) + "\n"


def test_pieces_of_what_a_program_says_become_one_text() -> None:
    lines = (piece("The lamps ") + "not JSON\n" + piece("burn.") + TOOL + piece("Done.")).encode()
    read = read_lines(lines, PRESETS["gemini"].parse, last=True)
    assert read.events == (Text("The lamps burn."), ToolStarted("1", "look"), Text("Done."))
    assert read.used == len(lines)


def test_pieces_at_the_end_are_left_unread_until_what_is_said_is_complete() -> None:
    first, second = (TOOL + piece("The ")).encode(), (piece("lamps ") + piece("burn.") + TOOL).encode()
    read = read_lines(first, PRESETS["gemini"].parse, last=False)
    assert (read.events, read.used) == ((ToolStarted("1", "look"),), len(TOOL))
    rest = first[read.used :] + second
    again = read_lines(rest, PRESETS["gemini"].parse, last=False)
    assert (again.events, again.used) == ((Text("The lamps burn."), ToolStarted("1", "look")), len(rest))


def test_so_much_that_it_cannot_be_held_back_is_read_in_parts() -> None:
    lines = (piece("x" * 1000) * 300).encode()
    assert read_lines(lines, PRESETS["gemini"].parse, last=False).used == len(lines)


def test_goose_says_an_answer_in_messages_of_a_piece_each() -> None:
    def message(words: str) -> str:
        content = [{"type": "text", "text": words}]
        return json.dumps({"type": "message", "message": {"role": "assistant", "content": content}}) + "\n"

    read = read_lines((message("All ") + message("is lit.")).encode(), PRESETS["goose"].parse, last=True)
    assert read.events == (Text("All is lit."),)


def test_a_tool_call_that_cline_refused_is_not_shown_as_done() -> None:
    def ended(output: object) -> str:
        event = {"type": "content_end", "contentType": "tool", "toolCallId": "1", "output": output}
        return json.dumps({"type": "agent_event", "event": event})

    said = {"isError": True, "content": [{"type": "text", "text": "You may not."}]}
    assert PRESETS["cline"].parse(ended(said)).events == (ToolEnded("1", ok=False, detail="You may not."),)
    assert PRESETS["cline"].parse(ended(said | {"isError": False})).events[0] == ToolEnded("1", True, "You may not.")


def test_colours_cursor_moves_and_titles_are_no_part_of_what_a_program_says() -> None:
    line = "\x1b]0;title\x07\x1b[1;31mred\x1b[0m and \x1b[2Kplain\x1b(B"
    assert PRESETS["shell"].parse(line).events == (Text("red and plain"),)
