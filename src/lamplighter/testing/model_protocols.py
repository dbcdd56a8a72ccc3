"""Four HTTP protocols of models, as far as agent programs need them for a turn."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
_RISK = "security_risk"
_USED = {"input_tokens": 11, "output_tokens": 7}


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class CallTool:
    """`name` is the end of the tool's name: agent programs add prefixes of their own."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """What the model says, independent of the protocol. `tool` is the full name as the program offered it."""

    number: int
    text: str = ""
    tool: str = ""
    arguments: str = "{}"

    @property
    def call_id(self) -> str:
        return f"call_{self.number}"


@dataclass(frozen=True)
class Protocol:
    """`streams` says whether a request for this path with this body wants its answer streamed."""

    name: str
    path: str
    tools: Callable[[Json], tuple[str, ...]]
    results: Callable[[Json], int]
    stream: Callable[[Turn], bytes]
    whole: Callable[[Turn], Json]
    streams: Callable[[str, Json], bool] = lambda _path, body: bool(body.get("stream"))


def by_path(path: str) -> Protocol | None:
    return next((one for one in PROTOCOLS if path.endswith(one.path)), None)


def pieces(text: str) -> list[str]:
    """The text as a model streams it: word by word."""
    return re.findall(r"\S+\s*|\s+", text) or [""]


def matching(name: str, tools: Iterable[str]) -> str | None:
    """The offered tool whose name ends in `name`; dashes and underscores count as equal."""
    wanted = name.replace("-", "_")
    return next((tool for tool in tools if tool.replace("-", "_").endswith(wanted)), None)


def with_required(step: Say | CallTool, body: Json) -> Say | CallTool:
    """The step in the form that the request insists on.

    Gemini has its model rate every message by a schema, and asks for more than a minute again if it is answered in
    words; what is typed meanwhile stands in its queue. OpenHands adds a parameter of its own to every tool and refuses
    calls without it.
    """
    schema = (body.get("generationConfig") or {}).get("responseJsonSchema")
    if schema:
        return Say(json.dumps(_fitting(schema)))
    if isinstance(step, CallTool) and _RISK in json.dumps(body.get("tools") or []):
        return CallTool(step.name, {**step.arguments, _RISK: "LOW"})
    return step


def _fitting(schema: Json) -> object:
    """A value that fits the schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    match str(schema.get("type", "")).lower():
        case "object":
            return {name: _fitting(one) for name, one in (schema.get("properties") or {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return "Plain."


def turn_of(step: Say | CallTool, tools: tuple[str, ...], number: int) -> Turn:
    if isinstance(step, Say):
        return Turn(number, text=step.text)
    return Turn(number, tool=matching(step.name, tools) or step.name, arguments=json.dumps(step.arguments))


# ── Anthropic Messages ────────────────────────────────────────────────────────────────────────────────────────────


def _messages_tools(body: Json) -> tuple[str, ...]:
    return tuple(str(tool.get("name", "")) for tool in body.get("tools") or [])


def _messages_results(body: Json) -> int:
    blocks = [message.get("content") for message in body.get("messages") or []]
    return sum(
        block.get("type") == "tool_result" for content in blocks if isinstance(content, list) for block in content
    )


def _messages_block(turn: Turn) -> dict[str, Any]:
    if turn.tool:
        return {"type": "tool_use", "id": turn.call_id, "name": turn.tool, "input": json.loads(turn.arguments)}
    return {"type": "text", "text": turn.text}


def _messages_whole(turn: Turn) -> Json:
    return {
        "id": f"msg_{turn.number}", "type": "message", "role": "assistant", "model": "scripted-model",
        "content": [_messages_block(turn)], "stop_reason": "tool_use" if turn.tool else "end_turn",
        "stop_sequence": None, "usage": _USED,
    }  # fmt: skip


def _messages_stream(turn: Turn) -> bytes:
    whole = dict(_messages_whole(turn))
    start = {**whole, "content": [], "stop_reason": None}
    if turn.tool:
        block = {**_messages_block(turn), "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": turn.arguments}]
    else:
        block = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(turn.text)]
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return _events(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": _USED},
        {"type": "message_stop"},
    )


# ── OpenAI Chat Completions ───────────────────────────────────────────────────────────────────────────────────────


def _chat_tools(body: Json) -> tuple[str, ...]:
    return tuple(str((tool.get("function") or {}).get("name", "")) for tool in body.get("tools") or [])


def _chat_results(body: Json) -> int:
    return sum(message.get("role") == "tool" for message in body.get("messages") or [])


def _chat_message(turn: Turn) -> dict[str, Any]:
    if not turn.tool:
        return {"role": "assistant", "content": turn.text}
    call = {"id": turn.call_id, "type": "function", "function": {"name": turn.tool, "arguments": turn.arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _chat(turn: Turn, kind: str, choice: Json) -> dict[str, Any]:
    return {"id": f"chat_{turn.number}", "object": kind, "created": 1, "model": "scripted-model", "choices": [choice]}


_CHAT_USED = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _chat_whole(turn: Turn) -> Json:
    choice = {"index": 0, "message": _chat_message(turn), "finish_reason": "tool_calls" if turn.tool else "stop"}
    return _chat(turn, "chat.completion", choice) | {"usage": _CHAT_USED}


def _chat_stream(turn: Turn) -> bytes:
    message = _chat_message(turn)
    if turn.tool:
        deltas = [{**message, "tool_calls": [{"index": 0, **message["tool_calls"][0]}]}]
    else:
        deltas = [{"role": "assistant", "content": piece} for piece in pieces(turn.text)]
    kind = "chat.completion.chunk"
    ending = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if turn.tool else "stop"}
    chunks = [
        *(_chat(turn, kind, {"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas),
        _chat(turn, kind, ending) | {"usage": _CHAT_USED},
    ]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


# ── OpenAI Responses ──────────────────────────────────────────────────────────────────────────────────────────────

_NAMESPACE = "\N{INFORMATION SEPARATOR ONE}"  # separates namespace and tool name within one text


def _responses_tools(body: Json) -> tuple[str, ...]:
    """The names of functions, also of those inside a namespace, which some programs use for the tools of a server."""
    found: list[str] = []
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            found += [f"{tool.get('name')}{_NAMESPACE}{inner.get('name')}" for inner in tool.get("tools") or []]
        else:
            found.append(str(tool.get("name", "")))
    return tuple(found)


def _responses_results(body: Json) -> int:
    items = body.get("input")
    return sum(str(item.get("type", "")).endswith("_output") for item in items) if isinstance(items, list) else 0


def _responses_item(turn: Turn) -> dict[str, Any]:
    if not turn.tool:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        return {"type": "message", "id": f"msg_{turn.number}", "role": "assistant", "status": "completed",
                "content": content}  # fmt: skip
    namespace, _, name = turn.tool.rpartition(_NAMESPACE)
    call = {"type": "function_call", "id": f"fc_{turn.number}", "call_id": turn.call_id, "name": name,
            "arguments": turn.arguments, "status": "completed"}  # fmt: skip
    return call | ({"namespace": namespace} if namespace else {})


def _responses_whole(turn: Turn) -> Json:
    used = _USED | {"total_tokens": 18, "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": f"resp_{turn.number}", "object": "response", "created_at": 1, "status": "completed",
            "model": "scripted-model", "output": [_responses_item(turn)], "usage": used}  # fmt: skip


def _responses_stream(turn: Turn) -> bytes:
    whole, item = _responses_whole(turn), _responses_item(turn)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    said = [] if turn.tool else pieces(turn.text)
    return _events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        *({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
           "delta": piece} for piece in said),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    )  # fmt: skip


def _events(*events: Json) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


# ── Gemini ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gemini_tools(body: Json) -> tuple[str, ...]:
    return tuple(
        str(one.get("name", "")) for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []
    )


def _gemini_results(body: Json) -> int:
    parts = [part for content in body.get("contents") or [] for part in content.get("parts") or []]
    return sum("functionResponse" in part for part in parts)


_GEMINI_USED = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}


def _gemini_answer(part: Json, *, last: bool) -> Json:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if not last:
        return {"candidates": [candidate]}
    return {"candidates": [candidate | {"finishReason": "STOP"}], "usageMetadata": _GEMINI_USED}


def _gemini_parts(turn: Turn) -> list[Json]:
    if turn.tool:
        return [{"functionCall": {"id": turn.call_id, "name": turn.tool, "args": json.loads(turn.arguments)}}]
    return [{"text": piece} for piece in pieces(turn.text)]


def _gemini_stream(turn: Turn) -> bytes:
    parts = _gemini_parts(turn)
    answers = [_gemini_answer(part, last=part is parts[-1]) for part in parts]
    return b"".join(f"data: {json.dumps(answer)}\r\n\r\n".encode() for answer in answers)


def _gemini_whole(turn: Turn) -> Json:
    """Also asked for which model to use: any JSON will do, for the program falls back to its default."""
    return _gemini_answer(_gemini_parts(turn)[0] if turn.tool else {"text": turn.text}, last=True)


MESSAGES = Protocol("messages", "/v1/messages", _messages_tools, _messages_results, _messages_stream, _messages_whole)
CHAT = Protocol("chat", "/chat/completions", _chat_tools, _chat_results, _chat_stream, _chat_whole)
RESPONSES = Protocol(
    "responses", "/responses", _responses_tools, _responses_results, _responses_stream, _responses_whole
)
GEMINI = Protocol(
    "gemini", "enerateContent", _gemini_tools, _gemini_results, _gemini_stream, _gemini_whole,
    streams=lambda path, _body: "streamGenerateContent" in path,
)  # fmt: skip
PROTOCOLS = (MESSAGES, CHAT, RESPONSES, GEMINI)
