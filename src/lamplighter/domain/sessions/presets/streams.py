"""Parsers for the output streams of the other programs, one function each."""

import re

from lamplighter.domain.sessions.presets.lines import (
    Json,
    detail,
    failure,
    items,
    json_line,
    plain,
    table,
    text,
    usage,
    without_escapes,
)
from lamplighter.domain.sessions.transcript import Failed, Parsed, SessionEvent, Text, ToolEnded, ToolStarted, TurnEnded


def codex(line: str) -> Parsed:
    found = json_line(line) or {}
    item = table(found.get("item"))
    events: tuple[SessionEvent, ...] = ()
    match found.get("type"):
        case "item.started":
            events = _codex_started(item)
        case "item.completed":
            events = _codex_completed(item)
        case "turn.completed":
            used = usage(
                table(found.get("usage")), read="input_tokens", written="output_tokens", cached="cached_input_tokens"
            )
            events = (*used, TurnEnded())
        case "turn.failed":
            wrong = failure(found.get("error")) or (Failed("the turn failed"),)
            events = (*wrong, TurnEnded(ok=False, reason="failed"))
        case "error":
            events = failure(found.get("message"))
    return Parsed(events, text(found.get("thread_id")))


_CODEX_TOOLS = {"command_execution": "shell", "mcp_tool_call": "", "file_change": "edit", "web_search": "web_search"}


def _codex_started(item: Json) -> tuple[SessionEvent, ...]:
    if item.get("type") not in _CODEX_TOOLS:
        return ()
    name = _CODEX_TOOLS[text(item["type"])] or text(item.get("tool"))
    asked = item.get("command") or item.get("arguments") or item.get("query") or item.get("changes")
    return (ToolStarted(text(item.get("id")), name, detail(asked)),)


def _codex_completed(item: Json) -> tuple[SessionEvent, ...]:
    if item.get("type") == "agent_message":
        return (Text(text(item.get("text"))),) if item.get("text") else ()
    if item.get("type") == "error":
        return failure(item.get("message"))
    if item.get("type") not in _CODEX_TOOLS:
        return ()
    ok = item.get("status") == "completed" and not item.get("error") and item.get("exit_code") in (None, 0)
    gave = item.get("aggregated_output") or table(item.get("result")).get("content") or item.get("error")
    return (ToolEnded(text(item.get("id")), ok, detail(gave)),)


def gemini(line: str) -> Parsed:
    found = json_line(line) or {}
    session_id = text(found.get("session_id"))
    match found.get("type"):
        case "message" if found.get("role") == "assistant" and found.get("content"):
            return Parsed((Text(text(found.get("content"))),), session_id, is_piece=bool(found.get("delta")))
        case "tool_use":
            started = ToolStarted(
                text(found.get("tool_id")), text(found.get("tool_name")), detail(found.get("parameters"))
            )
            return Parsed((started,), session_id)
        case "tool_result":
            ok = found.get("status") == "success"
            gave = found.get("output") or table(found.get("error")).get("message")
            return Parsed((ToolEnded(text(found.get("tool_id")), ok, detail(gave)),), session_id)
        case "error":
            return Parsed(failure(found.get("message") or found.get("error")), session_id)
        case "result":
            return Parsed(_gemini_result(found), session_id)
    return Parsed((), session_id)


def _gemini_result(found: Json) -> tuple[SessionEvent, ...]:
    ok = found.get("status") == "success"
    used = usage(table(found.get("stats")), read="input_tokens", written="output_tokens", cached="cached")
    wrong = () if ok else failure(found.get("error") or "the turn failed")
    return (*used, *wrong, TurnEnded(ok, text(found.get("status"))))


def opencode(line: str) -> Parsed:
    found = json_line(line) or {}
    session_id, part = text(found.get("sessionID")), table(found.get("part"))
    match found.get("type"):
        case "text" if part.get("text"):
            return Parsed((Text(text(part.get("text"))),), session_id)
        case "tool_use":
            return Parsed(_opencode_tool(part), session_id)
        case "step_finish":
            tokens = table(part.get("tokens"))
            counts = {**tokens, "cached": table(tokens.get("cache")).get("read")}
            used = usage(counts, read="input", written="output", cached="cached", cost=part.get("cost"))
            # After any other reason another step follows.
            ended = (TurnEnded(reason="stop"),) if part.get("reason") == "stop" else ()
            return Parsed((*used, *ended), session_id)
        case "error":
            wrong = table(found.get("error"))
            return Parsed(_opencode_error(wrong) or failure(found.get("message")), session_id)
    return Parsed((), session_id)


def _opencode_error(wrong: Json) -> tuple[SessionEvent, ...]:
    data = table(wrong.get("data"))
    status = f" (status {data['statusCode']})" if isinstance(data.get("statusCode"), int) else ""
    return tuple(
        Failed(event.message + status) for event in failure(data.get("message") or wrong) if isinstance(event, Failed)
    )


def _opencode_tool(part: Json) -> tuple[SessionEvent, ...]:
    """The stream reports a tool only when it has ended, so its start and end are reported together."""
    state, tool_id = table(part.get("state")), text(part.get("callID"))
    started = ToolStarted(tool_id, text(part.get("tool")), detail(state.get("input")))
    gave = state.get("output") or state.get("error")
    return (started, ToolEnded(tool_id, state.get("status") == "completed", detail(gave)))


def goose(line: str) -> Parsed:
    found = json_line(line) or {}
    match found.get("type"):
        case "message":
            message = table(found.get("message"))
            events = tuple(event for block in items(message.get("content")) for event in _goose(message, block))
            # It prints an answer piece by piece as it arrives, each piece as a message of its own.
            return Parsed(events, is_piece=bool(events) and all(isinstance(event, Text) for event in events))
        case "error":
            return Parsed(failure(found.get("error") or found.get("message")))
        case "complete":
            used = usage(found, read="input_tokens", written="output_tokens", cached="cache_read_input_tokens")
            return Parsed((*used, TurnEnded()))  # `complete` also comes after errors
    return Parsed()


_GOOSE_FAILED = "Ran into this error: "  # a failure of the service, which it tells as if the model had said it


def _goose(message: Json, block: Json) -> tuple[SessionEvent, ...]:
    tool_id = text(block.get("id"))
    match block.get("type"):
        case "text" if message.get("role") == "assistant" and text(block.get("text")).startswith(_GOOSE_FAILED):
            return (Failed(text(block.get("text"))),)
        case "text" if message.get("role") == "assistant" and block.get("text"):
            return (Text(text(block.get("text"))),)
        case "error":
            return failure(block.get("message"))
        case "toolRequest":
            call = table(table(block.get("toolCall")).get("value"))
            return (ToolStarted(tool_id, text(call.get("name")), detail(call.get("arguments"))),)
        case "toolResponse":
            result = table(block.get("toolResult"))
            value = table(result.get("value"))
            ok = result.get("status") == "success" and not value.get("isError")
            return (ToolEnded(tool_id, ok, detail(value.get("content") or result.get("error"))),)
    return ()


def copilot(line: str) -> Parsed:
    found = json_line(line) or {}
    data = table(found.get("data"))
    match found.get("type"):
        case "assistant.message" if data.get("content"):
            return Parsed((Text(text(data.get("content"))),))
        case "tool.execution_start":
            return Parsed(
                (ToolStarted(text(data.get("toolCallId")), text(data.get("toolName")), detail(data.get("arguments"))),)
            )
        case "tool.execution_complete":
            gave = table(data.get("result")).get("content") or table(data.get("error")).get("message")
            return Parsed((ToolEnded(text(data.get("toolCallId")), bool(data.get("success")), detail(gave)),))
        case "session.error" | "error":
            return Parsed(failure(data or found.get("message")))
        case "result":
            ok = found.get("exitCode") == 0
            return Parsed((TurnEnded(ok, f"exit code {found.get('exitCode')}"),), text(found.get("sessionId")))
    return Parsed()


def cline(line: str) -> Parsed:
    found = json_line(line) or {}
    event = table(found.get("event"))
    events: tuple[SessionEvent, ...] = ()
    match (found.get("type"), event.get("type"), event.get("contentType")):
        case ("agent_event", "content_end", "text") if event.get("text"):
            events = (Text(text(event.get("text"))),)
        case ("agent_event", "content_start", "tool"):
            events = (ToolStarted(_cline_id(event), text(event.get("toolName")), detail(event.get("input"))),)
        case ("agent_event", "content_end", "tool"):
            output = table(event.get("output"))
            gave = event.get("error") or output.get("content") or event.get("output")
            ok = not event.get("error") and not output.get("isError")
            events = (ToolEnded(_cline_id(event), ok, detail(gave)),)
        case ("agent_event", "error", _):
            events = failure(event.get("error") or event.get("message"))
        case ("error", _, _):
            events = failure(found.get("error") or found.get("message"))
        case ("run_result", _, _):
            events = _cline_result(found)
    return Parsed(events, text(found.get("sessionId")))


def _cline_id(event: Json) -> str:
    return text(event.get("toolCallId")) or text(event.get("id"))


def _cline_result(found: Json) -> tuple[SessionEvent, ...]:
    counts = table(found.get("usage"))
    used = usage(
        counts, read="inputTokens", written="outputTokens", cached="cacheReadTokens", cost=counts.get("totalCost")
    )
    reason = text(found.get("finishReason"))
    return (*used, TurnEnded(reason == "completed", reason))


_CONVERSATION = re.compile(r"^Conversation ID:\s+([0-9a-f-]{32,36})\s*$")


def openhands(line: str) -> Parsed:
    """One JSON object per line, between lines of coloured text, of which one names the conversation at the end."""
    found = json_line(line) or {}
    if named := _CONVERSATION.search(without_escapes(line)):
        return Parsed(session_id=named[1])
    call_id = text(found.get("tool_call_id"))
    match found.get("kind"):
        case "MessageEvent" if found.get("source") == "agent":
            said = detail(table(found.get("llm_message")).get("content"))
            return Parsed((Text(said), TurnEnded()) if said else (TurnEnded(),))
        case "ActionEvent":
            return Parsed((ToolStarted(call_id, text(found.get("tool_name")), detail(found.get("action"))),))
        case "ObservationEvent":
            seen = table(found.get("observation"))
            ok = not seen.get("is_error") and not seen.get("error")
            return Parsed((ToolEnded(call_id, ok, detail(seen.get("content") or seen.get("output"))),))
        case "AgentErrorEvent" | "ConversationErrorEvent":
            return Parsed(failure(found.get("error") or found.get("detail")))
    return Parsed()


aider = plain
shell = plain
