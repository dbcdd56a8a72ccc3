"""The preset of Copilot CLI."""

import json

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.model import (
    ConversationStore,
    Effort,
    Invocation,
    Login,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    by_mode,
    effort,
    flag,
)

_EFFORTS = {one: one.value for one in Effort}


def _headless(request: Request) -> Invocation:
    argv = ("copilot", "--output-format", "json", "--no-ask-user", *_common(request), f"--prompt={request.prompt}")
    return Invocation(argv, {}, _files(request))


def _interactive(request: Request) -> Invocation:
    prompt = (f"--interactive={request.prompt}",) if request.prompt else ()
    return Invocation(("copilot", *_common(request), *prompt), {}, _files(request), takes_input=True)


def _common(request: Request) -> tuple[str, ...]:
    mcp: tuple[str, ...] = ()
    if request.mcp is not None:
        mcp = (
            "--additional-mcp-config", f"@{request.files_dir}/mcp.json", "--disable-builtin-mcps",
            f"--allow-tool={request.mcp.name}",
        )  # fmt: skip
    resume = (f"--resume={request.resume}",) if request.resume else flag("--session-id", request.conversation)
    mode = by_mode(request, (), ("--plan",), ("--allow-all",))
    wished = effort(request, _EFFORTS, "--reasoning-effort", "{}")
    return (*mode, *flag("--model", request.model), *wished, *resume, *request.args, *mcp)


def _files(request: Request) -> tuple[SeedFile, ...]:
    if request.mcp is None:
        return ()
    headers = {"Authorization": f"Bearer {request.mcp.token}"}
    server = {"type": "http", "url": request.mcp.url, "tools": ["*"], "headers": headers}
    return (SeedFile(Place.FILES, "mcp.json", json.dumps({"mcpServers": {request.mcp.name: server}})),)


COPILOT = Preset(
    name="copilot",
    title="Copilot CLI",
    program="copilot",
    interactive=_interactive,
    headless=_headless,
    parse=streams.copilot,
    keys=(
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "COPILOT_PROVIDER_BASE_URL",
        "COPILOT_PROVIDER_API_KEY",
        "COPILOT_PROVIDER_TYPE",
        "COPILOT_PROVIDER_WIRE_API",
        "COPILOT_MODEL",
    ),
    process_names=("copilot", "node"),
    readiness=Readiness(prompt_prefix="❯"),  # noqa: RUF001  the sign it draws
    dialogs=(Dialog("Confirm folder trust", choose="Yes"),),
    login=Login(
        "Run `copilot` and type `/login`, or set GH_TOKEN.",
        root=".copilot",
        files=("config.json",),
        says=(r"no authentication information found", r"bad credentials"),
    ),
    efforts=_EFFORTS,
    conversations=ConversationStore("", ".copilot", "session-state/{id}", chosen=True),
    stopping=Stopping(note="Its launcher dies alone of a SIGTERM to its pid and leaves the agent running."),
)
