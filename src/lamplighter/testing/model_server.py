"""A scripted model server on loopback: Anthropic Messages, OpenAI Chat Completions and Responses, Gemini.

With it, real agent programs can be driven without an account or a network.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from lamplighter.testing import model_protocols as protocols
from lamplighter.testing.model_protocols import CallTool, Say

HANG_AT_MOST_S = 300.0
_SEARCH = {"tool_search", "tool_call"}
_POLL_S = 0.02  # how often its thread checks whether to end


@dataclass(frozen=True)
class Refuse:
    """Answer with this HTTP status, body and headers."""

    status: int = 500
    body: Mapping[str, Any] = field(default_factory=lambda: {"error": {"type": "api_error", "message": "scripted"}})
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Accept the request and never answer it."""


@dataclass(frozen=True)
class Raw:
    """Answer with these bytes, whatever they are."""

    body: bytes
    content_type: str = "application/json"


Step = Say | CallTool | Refuse | Hang | Raw


@dataclass(frozen=True)
class Asked:
    """One request: its protocol, the offered tools, the number of tool results so far, body and headers."""

    protocol: str
    tools: tuple[str, ...]
    results: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @cached_property
    def whole(self) -> str:
        """The body as text, with every letter as it is; written once, for a test may search it over and over."""
        return json.dumps(self.body, ensure_ascii=False)


class ModelServer:
    """A context manager that serves from a thread of its own.

    The number of tool results in a request selects the step of the script, so programs may repeat requests or ask for
    titles as they like; after the last step the model says that it is done.
    """

    def __init__(self, *script: Step) -> None:
        self.script = script
        self.by_text: dict[str, tuple[Step, ...]] = {}  # scripts for requests that hold a text, before `script`
        self.asked: list[Asked] = []
        self.first = threading.Event()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="model")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def step(self, asked: Asked) -> Step:
        """The step for a request; plain text if it calls a tool that the request, say for a title, does not offer.

        A program that offers tools to search for is asked for the tool first, and then to call it by its name.
        """
        searches = set(asked.tools) >= _SEARCH
        at = max(asked.results - 1, 0) if searches else asked.results
        script = self._script(asked)
        at_hand = script[at] if at < len(script) else Say("Done.")
        if not isinstance(at_hand, CallTool) or protocols.matching(at_hand.name, asked.tools) is not None:
            return at_hand
        if not searches:
            return Say("There is no such tool.")
        if asked.results == 0:
            return CallTool("tool_search", {"query": at_hand.name})
        named = re.findall(rf"[\w-]*{re.escape(at_hand.name)}\w*", json.dumps(asked.body.get("messages")))
        called = next((name for name in reversed(named) if name != at_hand.name), at_hand.name)
        return CallTool("tool_call", {"name": called, "arguments": at_hand.arguments})

    def _script(self, asked: Asked) -> tuple[Step, ...]:
        return next((script for text, script in self.by_text.items() if text in asked.whole), self.script)

    def heard(self, asked: Asked) -> None:
        self.asked.append(asked)
        self.first.set()

    def hang(self) -> None:
        self._closing.wait(HANG_AT_MOST_S)

    def with_tool(self, name: str) -> Sequence[Asked]:
        return [one for one in self.asked if protocols.matching(name, one.tools) is not None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: tests end programs in the middle of an answer on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            self._whole({"object": "list", "data": [{"id": "scripted-model", "object": "model"}]})
        else:
            self._whole({"error": {"message": f"no {self.path}"}}, status=404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        protocol = protocols.by_path(self.path.split("?")[0])
        if protocol is None:
            self._whole({"error": {"type": "not_found_error", "message": f"no {self.path}"}}, status=404)
            return
        tools, results = protocol.tools(body), protocol.results(body)
        asked = Asked(protocol.name, tools, results, body, {key.lower(): value for key, value in self.headers.items()})
        model = self.server.model
        model.heard(asked)
        self._follow(protocol, asked, model.step(asked))

    def _follow(self, protocol: protocols.Protocol, asked: Asked, step: Step) -> None:
        match step:
            case Hang():
                self.server.model.hang()
                self.close_connection = True
            case Refuse(status, body, headers):
                self._whole(dict(body), status=status, headers=headers)
            case Raw(data, content_type):
                self._send(200, content_type, data)
            case Say() | CallTool():
                step = protocols.with_required(step, asked.body)
                turn = protocols.turn_of(step, asked.tools, asked.results)
                if protocol.streams(self.path, asked.body):
                    self._send(200, "text/event-stream", protocol.stream(turn))
                else:
                    self._whole(protocol.whole(turn))

    def _whole(self, body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(body).encode(), headers)

    def _send(self, status: int, content_type: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Silent: requests are kept in `asked`."""
