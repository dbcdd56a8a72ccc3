"""The preset of Claude Code."""

import json

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import claude_stream
from lamplighter.domain.sessions.presets.model import (
    ConversationStore,
    Counts,
    Effort,
    Invocation,
    Login,
    McpServer,
    Mode,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    Writing,
    by_mode,
    effort,
    flag,
)

_KEY_TAIL = 20  # Claude Code stores an approved key as its last characters
_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false"}


EFFORTS = {one: one.value for one in Effort}
NO_SERVERS = json.dumps({"mcpServers": {}})


def mcp_file(mcp: McpServer) -> str:
    """The MCP configuration file in the format of Claude Code."""
    server = {"type": "http", "url": mcp.url, "headers": {"Authorization": f"Bearer {mcp.token}"}}
    return json.dumps({"mcpServers": {mcp.name: server}})


def _headless(request: Request) -> Invocation:
    argv = (
        "claude", "-p", "--output-format", "stream-json", "--verbose",
        *_permission(request), *_common(request, strict=True), "--", request.prompt,
    )  # fmt: skip
    # By default it retries a refused key for minutes, and begins without its tools if their server is slow to answer.
    env = {
        **_env(request),
        "CLAUDE_CODE_MAX_RETRIES": "3",
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_CONNECT_TIMEOUT_MS": "30000",
    }
    return Invocation(argv, env, _files(request))


def _interactive(request: Request) -> Invocation:
    prompt = ("--", request.prompt) if request.prompt else ()
    argv = ("claude", *_permission(request), *_common(request, strict=False), *prompt)
    return Invocation(argv, _env(request), (*_files(request), _home(request)), takes_input=True)


def _permission(request: Request) -> tuple[str, ...]:
    return by_mode(
        request,
        ("--permission-mode", "default"),
        ("--permission-mode", "plan"),
        ("--dangerously-skip-permissions",),
    )


def _common(request: Request, *, strict: bool) -> tuple[str, ...]:
    mcp: tuple[str, ...] = ()
    if request.mcp is not None:
        only = ("--strict-mcp-config",) if strict else ()
        mcp = ("--mcp-config", f"{request.files_dir}/mcp.json", *only, "--allowedTools", f"mcp__{request.mcp.name}")
    named = () if request.resume else flag("--session-id", request.conversation)
    wished = effort(request, EFFORTS, "--effort", "{}")
    return (*flag("--model", request.model), *wished, *flag("--resume", request.resume), *named, *request.args, *mcp)


def _env(request: Request) -> dict[str, str]:
    """As root, Claude Code refuses to skip permissions unless IS_SANDBOX is set."""
    return _QUIET | ({"IS_SANDBOX": "1"} if request.as_root and request.mode is Mode.FULL_ACCESS else {})


def _files(request: Request) -> tuple[SeedFile, ...]:
    return () if request.mcp is None else (SeedFile(Place.FILES, "mcp.json", mcp_file(request.mcp)),)


def _home(request: Request) -> SeedFile:
    """Settings that answer its first questions in advance; for two of them a blind Enter would quit."""
    settings: dict[str, object] = {
        "hasCompletedOnboarding": True,
        "projects": {request.work_dir: {"hasTrustDialogAccepted": True}},
    }
    if request.mode is Mode.FULL_ACCESS:
        settings["bypassPermissionsModeAccepted"] = True
    if key := request.env.get("ANTHROPIC_API_KEY"):
        settings["customApiKeyResponses"] = {"approved": [key[-_KEY_TAIL:]]}
    return SeedFile(Place.HOME, ".claude.json", json.dumps(settings), Writing.MERGE_JSON)


CLAUDE = Preset(
    name="claude",
    title="Claude Code",
    program="claude",
    interactive=_interactive,
    headless=_headless,
    parse=claude_stream.parse,
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    process_names=("claude", "node"),
    readiness=Readiness(prompt_prefix="❯"),  # noqa: RUF001  the sign it draws
    dialogs=(
        Dialog("trust this folder", choose="Yes"),
        Dialog("Quick safety check", choose="Yes"),
        Dialog("Do you want to use this API key", choose="Yes"),
        Dialog("Bypass Permissions mode", choose="Yes", keys=("Down", "Enter")),
    ),
    stopping=Stopping(note="Ends on SIGTERM with 143. Escape stops a turn and puts its prompt back into the composer."),
    counts=Counts.COST,
    login=Login(
        "Run `claude` and type `/login`, or set ANTHROPIC_API_KEY or the token that `claude setup-token` makes.",
        variable="CLAUDE_CONFIG_DIR",
        root=".claude",
        files=(".credentials.json",),
        ask=("claude", "auth", "status"),
        denies=r'"loggedIn":\s*false',
        says=(r"fix external api key",),
    ),
    efforts=EFFORTS,
    conversations=ConversationStore("CLAUDE_CONFIG_DIR", ".claude", "projects/*/{id}.jsonl", chosen=True),
)
