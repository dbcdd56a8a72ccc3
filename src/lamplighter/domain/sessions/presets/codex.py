"""The preset of Codex."""

import json
from datetime import timedelta

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.model import (
    TOKEN_VARIABLE,
    Asking,
    ConversationStore,
    Counts,
    Effort,
    Invocation,
    Login,
    Preset,
    Request,
    Stopping,
    by_mode,
    effort,
    flag,
)

_EFFORTS = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high", Effort.MAX: "xhigh"}


def _headless(request: Request) -> Invocation:
    """`resume` is a subcommand; the options must come before it."""
    resume = ("resume", request.resume) if request.resume else ()
    argv = (
        "codex", "exec", "--skip-git-repo-check", "--json",
        *_sandbox(request), *_common(request), *resume, "--", request.prompt,
    )  # fmt: skip
    return Invocation(argv, fixed=_token(request))


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
    return Invocation(argv, fixed=_token(request), takes_input=True, readiness=ready)


def _sandbox(request: Request) -> tuple[str, ...]:
    return by_mode(
        request,
        ("--sandbox", "workspace-write"),
        ("--sandbox", "read-only"),
        ("--dangerously-bypass-approvals-and-sandbox",),
    )


def _common(request: Request) -> tuple[str, ...]:
    wished = effort(request, _EFFORTS, "-c", 'model_reasoning_effort="{}"')
    return (*flag("--model", request.model), *wished, *request.args, *_mcp(request))


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


def _token(request: Request) -> dict[str, str]:
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
    asks=(
        Asking("Would you like to run the following command?", "Press enter to confirm or esc to cancel"),
        Asking("Would you like to make the following edits?", "Press enter to confirm or esc to cancel"),
    ),
    stopping=Stopping(
        leaves_behind=("app-server",),
        note="Interactive Codex leaves an app server and its updater unless daemon_auto_start is off.",
    ),
    counts=Counts.TOKENS,
    login=Login(
        "Run `codex login`, or set CODEX_API_KEY.",
        variable="CODEX_HOME",
        root=".codex",
        files=("auth.json", "config.toml"),
        says=(r"refresh token was already used", r"token data is not available"),
    ),
    efforts=_EFFORTS,
    conversations=ConversationStore(
        "CODEX_HOME", ".codex", "sessions/*/*/*/rollout-*.jsonl", name=r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    ),
)
