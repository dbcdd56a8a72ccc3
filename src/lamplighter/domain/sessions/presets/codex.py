"""The preset of Codex."""

import json
from datetime import timedelta

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.model import (
    TOKEN_VARIABLE,
    Invocation,
    Preset,
    Request,
    Stopping,
    by_mode,
    flag,
)


def _headless(request: Request) -> Invocation:
    """`resume` is a subcommand; the options must come before it."""
    resume = ("resume", request.resume) if request.resume else ()
    argv = (
        "codex", "exec", "--skip-git-repo-check", "--json",
        *_sandbox(request), *_common(request), *resume, "--", request.prompt,
    )  # fmt: skip
    return Invocation(argv, _env(request))


def _interactive(request: Request) -> Invocation:
    resume = ("resume", request.resume) if request.resume else ()
    prompt = ("--", request.prompt) if request.prompt else ()
    asks = by_mode(request, ("--ask-for-approval", "on-request"), ("--ask-for-approval", "on-request"), ())
    # Without this its app server would outlive every session and copy itself into each home.
    argv = (
        "codex", "--disable", "daemon_auto_start",
        *_sandbox(request), *asks, *_common(request), *resume, *prompt,
    )  # fmt: skip
    # The composer is drawn at once, but it ignores Enter until the footer names the model.
    ready = Readiness(mark=request.model) if request.model else None
    return Invocation(argv, _env(request), takes_input=True, readiness=ready)


def _sandbox(request: Request) -> tuple[str, ...]:
    return by_mode(
        request,
        ("--sandbox", "workspace-write"),
        ("--sandbox", "read-only"),
        ("--dangerously-bypass-approvals-and-sandbox",),
    )


def _common(request: Request) -> tuple[str, ...]:
    return (*flag("--model", request.model), *request.args, *_mcp(request))


def _mcp(request: Request) -> tuple[str, ...]:
    """Without `required` Codex does not wait for the server, and its first request lacks the completion tool."""
    if request.mcp is None:
        return ()
    settings: dict[str, object] = {
        "url": request.mcp.url,
        "bearer_token_env_var": TOKEN_VARIABLE,
        "required": True,
        "startup_timeout_sec": 20,
        "default_tools_approval_mode": "approve",
    }
    pairs = [f"mcp_servers.{request.mcp.name}.{key}={json.dumps(value)}" for key, value in settings.items()]
    return tuple(word for pair in pairs for word in ("-c", pair))


def _env(request: Request) -> dict[str, str]:
    return {} if request.mcp is None else {TOKEN_VARIABLE: request.mcp.token}


CODEX = Preset(
    name="codex",
    title="Codex",
    program="codex",
    interactive=_interactive,
    headless=_headless,
    parse=streams.codex,
    keys=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"),
    process_names=("codex", "node"),
    readiness=Readiness(delay=timedelta(seconds=3)),
    dialogs=(Dialog("Trust this folder", choose="Trust"), Dialog("Do you trust the contents", choose="Yes")),
    stopping=Stopping(
        leaves_behind=("app-server",),
        note="Interactive Codex leaves an app server and its updater unless daemon_auto_start is off.",
    ),
)
