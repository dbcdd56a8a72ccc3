"""The preset of goose."""

import json

from lamplighter.domain.sessions.model import Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.model import (
    Invocation,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    by_mode,
    flag,
)

_RECIPE = "recipe.json"


def _headless(request: Request) -> Invocation:
    """Prompt and server are passed in a recipe, because the command line cannot pass a server's token.

    A resumed session remembers its servers and refuses to be given them again.
    """
    own = ("goose", "run", *_output(), *request.args, *_session(request))
    if request.resume:
        return Invocation((*own, f"--text={request.prompt}"), _env(request))
    files = (SeedFile(Place.FILES, _RECIPE, json.dumps(_recipe(request))),)
    return Invocation((*own, "--recipe", f"{request.files_dir}/{_RECIPE}"), _env(request), files)


def _interactive(request: Request) -> Invocation:
    argv = ("goose", "session", *request.args, *_session(request))
    return Invocation(argv, _env(request), takes_input=True, nudge=request.prompt)


def _session(request: Request) -> tuple[str, ...]:
    """The stream of goose reports no session id, so Lamplighter names the session."""
    if request.resume:
        return ("--resume", "--name", request.resume)
    return flag("--name", request.session)


def _output() -> tuple[str, ...]:
    return ("--output-format", "stream-json", "-q")


def _recipe(request: Request) -> dict[str, object]:
    extensions: list[dict[str, object]] = [{"type": "builtin", "name": "developer", "timeout": 300, "bundled": True}]
    if request.mcp is not None:
        headers = {"Authorization": f"Bearer {request.mcp.token}"}
        extensions.append(
            {"type": "streamable_http", "name": request.mcp.name, "description": "tools of this run",
             "uri": request.mcp.url, "headers": headers, "timeout": 60}
        )  # fmt: skip
    # `{{` and `{%` are template syntax in a recipe; with a space between the characters they are plain text.
    prompt = request.prompt.replace("{{", "{ {").replace("{%", "{ %")
    return {"version": "1.0.0", "title": "lamp", "description": "A run", "prompt": prompt, "extensions": extensions}


def _env(request: Request) -> dict[str, str]:
    mode = by_mode(request, ("approve",), ("chat",), ("auto",))[0]
    env = {"GOOSE_MODE": mode, "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"}
    return env | ({"GOOSE_MODEL": request.model} if request.model else {})


GOOSE = Preset(
    name="goose",
    title="goose",
    program="goose",
    interactive=_interactive,
    headless=_headless,
    parse=streams.goose,
    keys=("GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_API_KEY", "OPENAI_HOST", "ANTHROPIC_API_KEY"),
    process_names=("goose",),
    readiness=Readiness(mark="Enter to send"),
    stopping=Stopping(
        note="Says `complete` and exits 0 after errors, too; asking for approval headless ends it with 1."
    ),
)
