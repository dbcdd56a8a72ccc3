"""The MCP server: the same tools over standard input and output, and over stateless streamable HTTP."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from lamplighter import __version__
from lamplighter.domain.access import Actor
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.json_text import TooDeep, is_too_deep
from lamplighter.mcp.tools import Tool, find, offered
from lamplighter.services.city_operations import CityOperations

NAME = "lamplighter"
LARGEST_BODY = 1 << 20

Scope = Any
CallerOf = Callable[[ServerRequestContext[Any, Any]], Actor]


def build(city: CityOperations, caller_of: CallerOf) -> Server[Any]:
    async def list_tools(
        context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in offered(caller_of(context))])

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller = caller_of(context)
        if is_too_deep(params.arguments):
            return _refusal(UsageError(f"The arguments cannot be taken: {TooDeep()}.", hint="Give them fewer levels."))
        try:
            tool = find(params.name, caller)
            return _answer(await tool.call(city, caller, params.arguments or {}))
        except LampError as error:
            return _refusal(error)

    return Server(NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(city: CityOperations, caller: Actor) -> None:
    """Serve until the client closes standard input."""
    server = build(city, lambda _context: caller)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class HttpEndpoint:
    """An ASGI application for `/mcp`. It keeps no state between requests, so clients do not notice a daemon restart.

    The server that mounts it has already checked the caller's token, which also keeps web pages out; `caller_in` finds
    the caller in the request's scope.
    """

    def __init__(self, city: CityOperations, caller_in: Callable[[Mapping[str, Any]], Actor]) -> None:
        server = build(city, lambda context: caller_in(_request(context).scope))
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=LARGEST_BODY
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve POST only: the server never pushes messages, so the stream of a GET would only hold a connection."""
        if scope["method"] == "POST":
            body = await _whole_body(Request(scope, receive))
            await self._manager.handle_request(scope, _body_first(body, receive), send)
        else:
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)


async def _whole_body(request: Request) -> bytes:
    """Read the body before calling the library, which would log a client that hangs up as an error with traceback.

    Raises ClientDisconnect; HTTPException for a body that is too large.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise HTTPException(413, f"a body has at most {LARGEST_BODY} bytes")
    return bytes(body)


def _body_first(body: bytes, receive: Receive) -> Receive:
    parts = [body]

    async def received() -> Message:
        return {"type": "http.request", "body": parts.pop(), "more_body": False} if parts else await receive()

    return received


def _request(context: ServerRequestContext[Any, Any]) -> Any:
    if context.request is None:
        raise RuntimeError("an HTTP transport carries its request")
    return context.request


def _described(tool: Tool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.description, input_schema=dict(tool.schema))


def _answer(value: Any) -> types.CallToolResult:
    text = json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=value)


def _refusal(error: LampError) -> types.CallToolResult:
    said = f"{error.message} {error.hint}".strip()
    return types.CallToolResult(content=[types.TextContent(text=said)], is_error=True)
