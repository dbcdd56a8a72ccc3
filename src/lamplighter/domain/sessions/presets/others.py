"""Presets of programs that need little code: Cline, OpenHands, Cursor, Amp, aider, and a plain shell."""

import json
from datetime import timedelta

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import claude_stream, streams
from lamplighter.domain.sessions.presets.model import (
    Counts,
    Effort,
    Invocation,
    Login,
    Mirror,
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


def _bearer(request: Request) -> dict[str, str]:
    return {} if request.mcp is None else {"Authorization": f"Bearer {request.mcp.token}"}


# ── Cline ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


_CLINE_EFFORTS = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high", Effort.MAX: "xhigh"}
_CLINE_SERVERS = "CLINE_MCP_SETTINGS_PATH"


def _cline(request: Request, *words: str, takes_input: bool) -> Invocation:
    mode = by_mode(request, ("--auto-approve", "false"), ("--plan",), ("--auto-approve", "true"))
    resume = flag("--id", request.resume)
    # Cline would take a prompt of one word for a command, so a space is added.
    prompt = ("--", request.prompt if " " in request.prompt else f"{request.prompt} ") if request.prompt else ()
    wished = effort(request, _CLINE_EFFORTS, "--thinking", "{}")
    argv = ("cline", *words, *mode, *flag("--model", request.model), *wished, *resume, *request.args, *prompt)
    if request.mcp is None:
        return Invocation(argv, takes_input=takes_input)
    server = {"type": "streamableHttp", "url": request.mcp.url, "headers": _bearer(request)}
    content = json.dumps({"mcpServers": {request.mcp.name: server}})
    files = (SeedFile(Place.FILES, "mcp.json", content, base=request.env.get(_CLINE_SERVERS, "")),)
    own = {_CLINE_SERVERS: f"{request.files_dir}/mcp.json"}
    return Invocation(argv, {}, files, fixed=own, takes_input=takes_input)


CLINE = Preset(
    name="cline",
    title="Cline",
    program="cline",
    interactive=lambda request: _cline(request, "--tui", takes_input=True),
    headless=lambda request: _cline(request, "--json", takes_input=False),
    parse=streams.cline,
    keys=("CLINE_API_KEY",),
    process_names=("cline", "node"),
    readiness=Readiness(mark="Ask anything"),
    dialogs=(Dialog("Try ClinePass", keys=("Escape",)),),
    can_resume=False,  # it accepts an id, but its stream does not report one
    stopping=Stopping(leaves_behind=("--cline-hub-daemon",), note="Its hub outlives it in a session of its own."),
    merges=(_CLINE_SERVERS,),
    refuses={Mode.APPROVAL: "Cline without a terminal refuses every tool that needs an approval"},
    counts=Counts.COST,
    login=Login("Run `cline auth`.", root=".cline/data", files=("settings/providers.json", "secrets.json")),
    efforts=_CLINE_EFFORTS,
)

# ── OpenHands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _openhands(request: Request, *words: str, takes_input: bool) -> Invocation:
    env = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    if request.model:
        env["LLM_MODEL"] = request.model
    resume = flag("--resume", request.resume)
    argv = ("openhands", *words, *resume, *request.args, *flag("-t", request.prompt))
    if request.mcp is None:
        return Invocation(argv, env, takes_input=takes_input)
    server = {"url": request.mcp.url, "transport": "http", "headers": _bearer(request)}
    content = json.dumps({"mcpServers": {request.mcp.name: server}})
    theirs = request.env.get(_OPENHANDS_HOME) or ".openhands"
    return Invocation(
        argv,
        env,
        (SeedFile(Place.FILES, "openhands/mcp.json", content, base=f"{theirs}/mcp.json"),),
        mirrors=(Mirror(theirs, "openhands", own=("mcp.json",), shared=("conversations",)),),
        fixed={_OPENHANDS_HOME: f"{request.files_dir}/openhands"},
        takes_input=takes_input,
    )


_OPENHANDS_HOME = "OPENHANDS_PERSISTENCE_DIR"
_ALWAYS_FULL = "OpenHands without a terminal always has full access"


OPENHANDS = Preset(
    name="openhands",
    title="OpenHands",
    program="openhands",
    interactive=lambda request: _openhands(request, takes_input=True),
    headless=lambda request: _openhands(request, "--headless", "--json", "--override-with-envs", takes_input=False),
    parse=streams.openhands,
    keys=("LLM_MODEL", "LLM_BASE_URL", "LLM_API_KEY"),
    process_names=("openhands", "python"),
    readiness=Readiness(delay=timedelta(seconds=12)),
    stopping=Stopping(
        leaves_behind=("tmux -L openhands",), note="Exits 0 on errors; keeps a tmux server of its own for its shells."
    ),
    merges=(_OPENHANDS_HOME,),
    refuses={Mode.APPROVAL: _ALWAYS_FULL, Mode.PLAN: _ALWAYS_FULL},
    login=Login(
        "Set LLM_MODEL and LLM_API_KEY, or run `openhands` once.",
        variable=_OPENHANDS_HOME,
        root=".openhands",
        frames="│",
    ),
)

# ── Cursor ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cursor(request: Request, *words: str, takes_input: bool) -> Invocation:
    mode = by_mode(request, (), ("--mode=plan",), ("--force",))
    approve = ("--approve-mcps",) if request.mcp is not None else ()
    resume = (f"--resume={request.resume}",) if request.resume else ()
    prompt = ("--", request.prompt) if request.prompt else ()
    argv = (
        "cursor-agent", *words, *mode, *approve, *flag("--model", request.model), *resume, *request.args, *prompt,
    )  # fmt: skip
    return Invocation(argv, {}, _cursor_files(request), takes_input=takes_input)


def _cursor_files(request: Request) -> tuple[SeedFile, ...]:
    if request.mcp is None:
        return ()
    server = {"url": request.mcp.url, "headers": _bearer(request)}
    content = json.dumps({"mcpServers": {request.mcp.name: server}})
    return (SeedFile(Place.WORK, ".cursor/mcp.json", content, Writing.ENTRY),)


CURSOR = Preset(
    name="cursor-agent",
    title="Cursor CLI",
    program="cursor-agent",
    interactive=lambda request: _cursor(request, takes_input=True),
    headless=lambda request: _cursor(request, "--print", "--output-format", "stream-json", takes_input=False),
    parse=claude_stream.parse,
    keys=("CURSOR_API_KEY",),
    process_names=("cursor-agent", "node"),
    readiness=Readiness(delay=timedelta(seconds=5)),
    tried=False,
    login=Login("Run `cursor-agent login`, or set CURSOR_API_KEY.", root=".cursor"),
)

# ── Amp ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _amp(request: Request, *words: str, takes_input: bool, nudge: str = "") -> Invocation:
    """Full access is a setting in the session's own settings file."""
    allow = request.mode is Mode.FULL_ACCESS
    files = [SeedFile(Place.FILES, "amp.json", json.dumps({"amp.dangerouslyAllowAll": allow}))]
    mcp: tuple[str, ...] = ()
    if request.mcp is not None:
        servers = {request.mcp.name: {"url": request.mcp.url, "headers": _bearer(request)}}
        files.append(SeedFile(Place.FILES, "mcp.json", json.dumps(servers)))
        mcp = ("--mcp-config", f"{request.files_dir}/mcp.json")
    resume = ("threads", "continue", request.resume) if request.resume else ()
    own = ("--settings-file", f"{request.files_dir}/amp.json", "--no-ide", "--no-notifications")
    argv = ("amp", *resume, *own, *flag("--mode", request.model), *mcp, *request.args, *words)
    return Invocation(argv, {}, tuple(files), takes_input=takes_input, nudge=nudge)


AMP = Preset(
    name="amp",
    title="Amp",
    program="amp",
    interactive=lambda request: _amp(request, takes_input=True, nudge=request.prompt),
    headless=lambda request: _amp(request, "--stream-json", f"--execute={request.prompt}", takes_input=False),
    parse=claude_stream.parse,
    keys=("AMP_API_KEY", "AMP_URL"),
    process_names=("amp", "node"),
    readiness=Readiness(delay=timedelta(seconds=5)),
    tried=False,
    refuses={Mode.PLAN: "Amp has no mode in which it only plans"},
    login=Login("Run `amp login`, or set AMP_API_KEY.", root=".local/share/amp", files=("secrets.json",)),
)

# ── aider and the shell ───────────────────────────────────────────────────────────────────────────────────────────────

_AIDER = ("aider", "--no-check-update", "--no-analytics", "--no-show-model-warnings")


def _aider(request: Request, *words: str, takes_input: bool, nudge: str = "") -> Invocation:
    """It would ask the internet for prices at every start unless it is told to use those it brings along."""
    mode = by_mode(request, (), ("--chat-mode", "ask"), ("--yes-always",))
    # Outside a repository, and told to agree to everything, it would make one of the directory it works in.
    git = () if request.in_repository else ("--no-git",)
    argv = (*_AIDER, *git, *mode, *flag("--model", request.model), *request.args, *words)
    return Invocation(argv, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}, takes_input=takes_input, nudge=nudge)


AIDER = Preset(
    name="aider",
    title="aider",
    program="aider",
    interactive=lambda request: _aider(request, takes_input=True, nudge=request.prompt),
    headless=lambda request: _aider(request, "--no-pretty", f"--message={request.prompt}", takes_input=False),
    parse=streams.aider,
    keys=("OPENAI_API_KEY", "OPENAI_API_BASE", "ANTHROPIC_API_KEY"),
    process_names=("aider", "python"),
    readiness=Readiness(prompt_prefix=">"),
    has_mcp=False,
    can_resume=False,
    stopping=Stopping(note="Retries a dead endpoint for minutes."),
    no_runs="aider calls no tools and runs no commands by itself, so it cannot complete a run",
)

SHELL = Preset(
    name="shell",
    title="Shell",
    program="/bin/sh",
    interactive=lambda request: Invocation(("/bin/sh", *request.args), takes_input=True, nudge=request.prompt),
    headless=lambda request: Invocation(("/bin/sh", *request.args, "-c", request.prompt)),
    parse=streams.shell,
    has_mcp=False,
    can_resume=False,
    refuses=dict.fromkeys((Mode.APPROVAL, Mode.PLAN), "a shell does what it is told"),
)
