"""The preset of opencode."""

import json

from lamplighter.domain.sessions.model import Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.merging import joined
from lamplighter.domain.sessions.presets.model import (
    ConversationStore,
    Counts,
    Effort,
    Invocation,
    Login,
    Mode,
    Preset,
    Request,
    Stopping,
    by_mode,
    effort,
    flag,
)

_EFFORTS = {one: one.value for one in Effort}
_QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
_SETTINGS = "OPENCODE_CONFIG_CONTENT"


def _headless(request: Request) -> Invocation:
    argv = ("opencode", "run", "--format", "json", *_common(request), "--", request.prompt)
    return Invocation(argv, _QUIET, fixed=_settings(request))


def _interactive(request: Request) -> Invocation:
    """Together with a session to continue, opencode accepts a prompt and does not send it; there it is typed."""
    typed = request.prompt if request.resume else ""
    argv = ("opencode", *_common(request), *flag("--prompt", "" if typed else request.prompt))
    return Invocation(argv, _QUIET, fixed=_settings(request), takes_input=True, nudge=typed)


def _common(request: Request) -> tuple[str, ...]:
    mode = by_mode(request, (), ("--agent", "plan"), ("--auto",))
    wished = effort(request, _EFFORTS, "--variant", "{}")
    return (*mode, *flag("--model", request.model), *wished, *flag("--session", request.resume), *request.args)


def _settings(request: Request) -> dict[str, str]:
    """Settings in a variable override those in files, and two sessions do not share them as they would a file.

    Settings that the user put into the same variable are kept.
    """
    settings: dict[str, object] = {"autoupdate": False}
    if request.mode is Mode.APPROVAL:
        settings["permission"] = {"edit": "ask", "bash": "ask"}
    if request.mcp is not None:
        headers = {"Authorization": f"Bearer {request.mcp.token}"}
        server = {"type": "remote", "url": request.mcp.url, "enabled": True, "headers": headers}
        settings["mcp"] = {request.mcp.name: server}
    return {_SETTINGS: json.dumps(joined(_SETTINGS, request.env.get(_SETTINGS, ""), settings))}


OPENCODE = Preset(
    name="opencode",
    title="opencode",
    program="opencode",
    interactive=_interactive,
    headless=_headless,
    parse=streams.opencode,
    keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_CONFIG"),
    process_names=("opencode", "node", "bun"),
    readiness=Readiness(mark="╹▀▀▀"),  # the lower edge of its input, which both of its views have
    stopping=Stopping(note="Its shells run in groups of their own and outlive a SIGTERM to its group."),
    counts=Counts.COST,
    conversations=ConversationStore(
        "XDG_DATA_HOME",
        ".local/share",
        "opencode/opencode.db",
        query="SELECT session_id FROM part WHERE data LIKE :text ORDER BY time_created DESC LIMIT 1",
    ),
    login=Login(
        "Run `opencode auth login`, or set the key of its provider.",
        variable="XDG_DATA_HOME",
        root=".local/share",
        files=("opencode/auth.json",),
    ),
    efforts=_EFFORTS,
    merges=(_SETTINGS,),
)
