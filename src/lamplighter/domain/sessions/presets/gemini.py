"""The presets of Gemini CLI and Qwen Code, which have a common origin."""

import json

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.presets import claude_stream, streams
from lamplighter.domain.sessions.presets.model import (
    ConversationStore,
    Counts,
    Invocation,
    Login,
    McpServer,
    Mirror,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    Writing,
    by_mode,
    flag,
)

_GEMINI = "gemini"  # the folder that stands for the home of Gemini
_HOME = "GEMINI_CLI_HOME"
_POLICY = "policy.toml"
_READY = Readiness(mark="Type your message")


def _servers(mcp: McpServer) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {mcp.token}"}
    return {"mcpServers": {mcp.name: {"httpUrl": mcp.url, "headers": headers, "trust": True}}}


def _approval(request: Request) -> tuple[str, ...]:
    return ("--approval-mode", *by_mode(request, ("default",), ("plan",), ("yolo",)))


def _common(request: Request) -> tuple[str, ...]:
    named = flag("--resume", request.resume) or flag("--session-id", request.conversation)
    return (*flag("--model", request.model), *named, *_approval(request), *request.args)


def _gemini(request: Request, *words: str, takes_input: bool) -> Invocation:
    """Gemini reads servers only from settings, so a session with tools gets a settings folder of its own.

    Not the system settings: Gemini passes over those unless root owns the file and every directory above it.
    """
    argv = ("gemini", "--skip-trust", *_common(request), *words)
    if request.mcp is None:
        return Invocation(argv, {}, _gemini_home(request), takes_input=takes_input)
    settings = _servers(request.mcp) | {"privacy": {"usageStatisticsEnabled": False}} | _gemini_login(request)
    theirs = f"{request.env[_HOME]}/.gemini" if request.env.get(_HOME) else ".gemini"
    files = (
        SeedFile(Place.FILES, f"{_GEMINI}/.gemini/settings.json", json.dumps(settings), base=f"{theirs}/settings.json"),
        SeedFile(Place.FILES, _POLICY, _policy(request.mcp)),
    )
    policy = ("--policy", f"{request.files_dir}/{_POLICY}")
    return Invocation(
        (*argv[:2], *policy, *argv[2:]),
        {},
        files,
        mirrors=(Mirror(theirs, f"{_GEMINI}/.gemini", own=("settings.json",), shared=("tmp", "history")),),
        fixed={_HOME: f"{request.files_dir}/{_GEMINI}"},
        takes_input=takes_input,
    )


def _policy(mcp: McpServer) -> str:
    """In plan mode Gemini offers no tool of any server, trusted or not, unless a rule allows it."""
    return f'[[rule]]\ntoolName = "*"\nmcpName = "{mcp.name}"\ndecision = "allow"\npriority = 900\n'


def _gemini_login(request: Request) -> dict[str, object]:
    """In a new home Gemini asks how to sign in, even if a key is given; this setting answers it."""
    if "GEMINI_API_KEY" not in request.env:
        return {}
    return {"security": {"auth": {"selectedType": "gemini-api-key"}}}


def _gemini_home(request: Request) -> tuple[SeedFile, ...]:
    login = _gemini_login(request)
    return (SeedFile(Place.HOME, ".gemini/settings.json", json.dumps(login), Writing.MERGE_JSON),) if login else ()


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
    merges=(_HOME,),
    counts=Counts.TOKENS,
    login=Login(
        "Run `gemini` and sign in, or set GEMINI_API_KEY.",
        variable=_HOME,
        files=(".gemini/oauth_creds.json", ".gemini/settings.json"),
        exits=(41,),
    ),
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
    counts=Counts.TOKENS,
    login=Login(
        "Set OPENAI_API_KEY and OPENAI_BASE_URL, or run `qwen` and sign in.",
        root=".qwen",
        files=("oauth_creds.json", "settings.json"),
        says=(r"no auth type is selected",),
    ),
    conversations=ConversationStore("", ".qwen", "projects/*/chats/{id}.jsonl", chosen=True),
)
