"""Parser for the output stream of Claude Code, which Qwen Code, Amp and Cursor also use."""

from lamplighter.domain.sessions.presets.lines import Json, detail, failure, items, json_line, table, text, usage
from lamplighter.domain.sessions.transcript import Failed, Parsed, SessionEvent, Text, ToolEnded, ToolStarted, TurnEnded


def parse(line: str) -> Parsed:
    found = json_line(line) or {}
    events: tuple[SessionEvent, ...] = ()
    match found.get("type"):
        case "assistant":
            events = _said(table(found.get("message")))
        case "user":
            events = _results(table(found.get("message")))
        case "result":
            events = _result(found)
        case "error":
            events = failure(found.get("error") or found.get("message"))
        case "tool_call":
            events = _cursor_call(found)
    return Parsed(events, text(found.get("session_id")))


def _said(message: Json) -> tuple[SessionEvent, ...]:
    events: list[SessionEvent] = []
    for block in items(message.get("content")):
        if block.get("type") == "text" and text(block.get("text")):
            events.append(Text(text(block["text"])))
        elif block.get("type") == "tool_use":
            events.append(ToolStarted(text(block.get("id")), text(block.get("name")), detail(block.get("input"))))
    return tuple(events)


def _results(message: Json) -> tuple[SessionEvent, ...]:
    return tuple(
        ToolEnded(text(block.get("tool_use_id")), not block.get("is_error"), detail(block.get("content")))
        for block in items(message.get("content"))
        if block.get("type") == "tool_result"
    )


def _result(found: Json) -> tuple[SessionEvent, ...]:
    """The end of a turn; `is_error` decides, because `subtype` is "success" even for errors of the service."""
    ok = not found.get("is_error")
    counted = usage(
        table(found.get("usage")), read="input_tokens", written="output_tokens", cached="cache_read_input_tokens",
        cost=found.get("total_cost_usd"),
    )  # fmt: skip
    denied = tuple(
        Failed(f"permission denied for {text(denial.get('tool_name')) or 'a tool'}")
        for denial in items(found.get("permission_denials"))
    )
    wrong = () if ok else failure(found.get("result") or found.get("error") or "the turn failed")
    reason = text(found.get("stop_reason")) or text(found.get("subtype"))
    return (*counted, *denied, *wrong, TurnEnded(ok, reason))


def _cursor_call(found: Json) -> tuple[SessionEvent, ...]:
    call_id = text(found.get("call_id"))
    for name, call in table(found.get("tool_call")).items():
        if found.get("subtype") == "started":
            return (ToolStarted(call_id, name.removesuffix("ToolCall"), detail(table(call).get("args"))),)
        result = table(table(call).get("result"))
        return (ToolEnded(call_id, "success" in result, detail(result.get("success") or result)),)
    return ()
