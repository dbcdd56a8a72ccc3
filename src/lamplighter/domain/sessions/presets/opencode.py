"""The preset of opencode."""

import json

from lamplighter.domain.sessions.model import Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.model import Invocation, Mode, Preset, Request, Stopping, by_mode, flag

_QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _headless(request: Request) -> Invocation:
    argv = ("opencode", "run", "--format", "json", *_common(request), "--", request.prompt)
    return Invocation(argv, _env(request))


def _interactive(request: Request) -> Invocation:
    argv = ("opencode", *_common(request), *flag("--prompt", request.prompt))
    return Invocation(argv, _env(request), takes_input=True)


def _common(request: Request) -> tuple[str, ...]:
    mode = by_mode(request, (), ("--agent", "plan"), ("--auto",))
    return (*mode, *flag("--model", request.model), *flag("--session", request.resume), *request.args)


def _env(request: Request) -> dict[str, str]:
    """Settings in a variable override those in files, and two sessions do not share them as they would a file."""
    settings: dict[str, object] = {"autoupdate": False}
    if request.mode is Mode.APPROVAL:
        settings["permission"] = {"edit": "ask", "bash": "ask"}
    if request.mcp is not None:
        headers = {"Authorization": f"Bearer {request.mcp.token}"}
        server = {"type": "remote", "url": request.mcp.url, "enabled": True, "headers": headers}
        settings["mcp"] = {request.mcp.name: server}
    return _QUIET | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}


OPENCODE = Preset(
    name="opencode",
    title="opencode",
    program="opencode",
    interactive=_interactive,
    headless=_headless,
    parse=streams.opencode,
    keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_CONFIG"),
    process_names=("opencode", "node", "bun"),
    readiness=Readiness(mark="Ask anything"),
    stopping=Stopping(note="Its shells run in groups of their own and outlive a SIGTERM to its group."),
)
