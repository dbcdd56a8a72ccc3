"""The presets of Gemini CLI and Qwen Code, which have a common origin."""

import json

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import claude_stream, streams
from lamplighter.domain.sessions.presets.model import (
    Invocation,
    McpServer,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    Writing,
    by_mode,
    flag,
)

_READY = Readiness(mark="Type your message")


def _servers(mcp: McpServer) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {mcp.token}"}
    return {"mcpServers": {mcp.name: {"httpUrl": mcp.url, "headers": headers, "trust": True}}}


def _approval(request: Request) -> tuple[str, ...]:
    return ("--approval-mode", *by_mode(request, ("default",), ("plan",), ("yolo",)))


def _common(request: Request) -> tuple[str, ...]:
    return (*flag("--model", request.model), *flag("--resume", request.resume), *_approval(request), *request.args)


def _gemini(request: Request, *words: str, takes_input: bool) -> Invocation:
    """Gemini reads servers only from settings, so the session's own file is given as the system settings.

    Gemini ignores such a file, with a warning, if other users may write to a directory above it.
    """
    argv = ("gemini", "--skip-trust", *_common(request), *words)
    if request.mcp is None:
        return Invocation(argv, {}, _gemini_home(request), takes_input=takes_input)
    settings = _servers(request.mcp) | {"privacy": {"usageStatisticsEnabled": False}}
    env = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": f"{request.files_dir}/gemini.json"}
    files = (SeedFile(Place.FILES, "gemini.json", json.dumps(settings)), *_gemini_home(request))
    return Invocation(argv, env, files, takes_input=takes_input)


def _gemini_home(request: Request) -> tuple[SeedFile, ...]:
    """In a new home Gemini asks how to sign in, even if a key is given; this setting answers it."""
    if "GEMINI_API_KEY" not in request.env:
        return ()
    content = json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
    return (SeedFile(Place.HOME, ".gemini/settings.json", content, Writing.MERGE_JSON),)


def _gemini_headless(request: Request) -> Invocation:
    return _gemini(request, "--output-format", "stream-json", f"--prompt={request.prompt}", takes_input=False)


def _gemini_interactive(request: Request) -> Invocation:
    prompt = (f"--prompt-interactive={request.prompt}",) if request.prompt else ()
    return _gemini(request, *prompt, takes_input=True)


def _qwen(request: Request, *words: str, takes_input: bool) -> Invocation:
    if request.mcp is None:
        return Invocation(("qwen", *_common(request), *words), takes_input=takes_input)
    mcp = ("--mcp-config", f"{request.files_dir}/mcp.json")
    files = (SeedFile(Place.FILES, "mcp.json", json.dumps(_servers(request.mcp))),)
    return Invocation(("qwen", *_common(request), *mcp, *words), {}, files, takes_input=takes_input)


def _qwen_headless(request: Request) -> Invocation:
    return _qwen(request, "--output-format", "stream-json", f"--prompt={request.prompt}", takes_input=False)


def _qwen_interactive(request: Request) -> Invocation:
    prompt = (f"--prompt-interactive={request.prompt}",) if request.prompt else ()
    return _qwen(request, *prompt, takes_input=True)


GEMINI = Preset(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    interactive=_gemini_interactive,
    headless=_gemini_headless,
    parse=streams.gemini,
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"),
    process_names=("gemini", "node"),
    readiness=_READY,
    dialogs=(Dialog("Do you trust the files in this folder", choose="Trust folder"),),
    stopping=Stopping(note="Its launcher swallows SIGTERM, it outlives a hang-up, and after SIGTERM it exits 0."),
)

QWEN = Preset(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    interactive=_qwen_interactive,
    headless=_qwen_headless,
    parse=claude_stream.parse,
    keys=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"),
    process_names=("qwen", "node"),
    readiness=_READY,
    stopping=Stopping(note="Its launcher dies alone of a SIGTERM to its pid and leaves the agent running."),
)
