"""Three HTTP protocols of models, as far as agent programs need them for a turn."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
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
    name: str
    path: str
    tools: Callable[[Json], tuple[str, ...]]
    results: Callable[[Json], int]
    stream: Callable[[Turn], bytes]
    whole: Callable[[Turn], Json]


def by_path(path: str) -> Protocol | None:
    return next((one for one in PROTOCOLS if path.endswith(one.path)), None)


def matching(name: str, tools: Iterable[str]) -> str | None:
    """The offered tool whose name ends in `name`; dashes and underscores count as equal."""
    wanted = name.replace("-", "_")
    return next((tool for tool in tools if tool.replace("-", "_").endswith(wanted)), None)


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
        delta = {"type": "input_json_delta", "partial_json": turn.arguments}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return _events(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
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
    delta = _chat_message(turn)
    if turn.tool:
        delta["tool_calls"] = [{"index": 0, **delta["tool_calls"][0]}]
    kind = "chat.completion.chunk"
    ending = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if turn.tool else "stop"}
    chunks = [
        _chat(turn, kind, {"index": 0, "delta": delta, "finish_reason": None}),
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
    return _events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    )


def _events(*events: Json) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


MESSAGES = Protocol("messages", "/v1/messages", _messages_tools, _messages_results, _messages_stream, _messages_whole)
CHAT = Protocol("chat", "/chat/completions", _chat_tools, _chat_results, _chat_stream, _chat_whole)
RESPONSES = Protocol(
    "responses", "/responses", _responses_tools, _responses_results, _responses_stream, _responses_whole
)
PROTOCOLS = (MESSAGES, CHAT, RESPONSES)
