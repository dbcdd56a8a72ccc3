"""The preset of goose."""

import json
import re
from datetime import datetime, timedelta

from lamplighter.domain.sessions.model import Readiness
from lamplighter.domain.sessions.presets import streams
from lamplighter.domain.sessions.presets.lines import json_line, table, text
from lamplighter.domain.sessions.presets.model import (
    TOKEN_VARIABLE,
    ConversationStore,
    Counts,
    Effort,
    Invocation,
    Login,
    Mirror,
    Mode,
    OwnLog,
    Pause,
    Place,
    Preset,
    Request,
    SeedFile,
    Stopping,
    by_mode,
    flag,
)

_EFFORTS = {one: one.value for one in Effort}
_RECIPE = "recipe.json"
_STATE, _STATE_HOME = "state", "XDG_STATE_HOME"
_RETRYING = re.compile(r"Request failed, retrying \(\d+/\d+\): (.*)", re.DOTALL)
_BACKING_OFF = re.compile(r"Backing off for (\d+(?:\.\d+)?)(ms|s) before retry")


def _headless(request: Request) -> Invocation:
    """Prompt and server are passed in a recipe, because the command line cannot pass a server's token.

    A resumed session remembers its servers and refuses to be given them again.
    """
    own = ("goose", "run", *_output(), *request.args, *_session(request))
    fixed = _mode(request) | _token(request) | {_STATE_HOME: f"{request.files_dir}/{_STATE}"}
    if request.resume:
        return Invocation((*own, f"--text={request.prompt}"), _env(request), mirrors=_state(request), fixed=fixed)
    files = (SeedFile(Place.FILES, _RECIPE, json.dumps(_recipe(request))),)
    recipe = ("--recipe", f"{request.files_dir}/{_RECIPE}")
    return Invocation((*own, *recipe), _env(request), files, mirrors=_state(request), fixed=fixed)


def _state(request: Request) -> tuple[Mirror, ...]:
    """A state home of the run's own for its log, in which alone goose writes down how long it waits for its model."""
    theirs = request.env.get(_STATE_HOME) or ".local/state"
    return (
        Mirror(theirs, _STATE, own=("goose",)),
        Mirror(f"{theirs}/goose", f"{_STATE}/goose", own=("logs",)),
    )


def pause(log: str) -> Pause | None:
    """The last wait in a log, whose lines are JSON: why, and then for how long."""
    why, found = "", None
    for line in log.splitlines():
        entry = json_line(line) or {}
        said = text(table(entry.get("fields")).get("message"))
        if told := _RETRYING.match(said):
            why = told[1]
        elif (waits := _BACKING_OFF.match(said)) and (at := _time(text(entry.get("timestamp")))):
            unit = timedelta(milliseconds=1) if waits[2] == "ms" else timedelta(seconds=1)
            found = Pause(why, at + float(waits[1]) * unit)
    return found


def _time(told: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return None
    return at if at.tzinfo else None


def _interactive(request: Request) -> Invocation:
    argv = ("goose", "session", *request.args, *_session(request))
    return Invocation(argv, _mode(request) | _env(request), takes_input=True, nudge=request.prompt)


def _session(request: Request) -> tuple[str, ...]:
    """The stream of goose reports no session id, so Lamplighter names the session."""
    if request.resume:
        return ("--resume", "--name", request.resume)
    return flag("--name", request.conversation or request.session)


def _output() -> tuple[str, ...]:
    return ("--output-format", "stream-json", "-q")


def _recipe(request: Request) -> dict[str, object]:
    extensions: list[dict[str, object]] = [{"type": "builtin", "name": "developer", "timeout": 300, "bundled": True}]
    if request.mcp is not None:
        # goose keeps its servers in the database of its sessions, so the header names a variable, not the token.
        headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
        extensions.append(
            {"type": "streamable_http", "name": request.mcp.name, "description": "tools of this run",
             "uri": request.mcp.url, "headers": headers, "env_keys": [TOKEN_VARIABLE], "timeout": 60}
        )  # fmt: skip
    # `{{` and `{%` are template syntax in a recipe; with a space between the characters they are plain text.
    prompt = request.prompt.replace("{{", "{ {").replace("{%", "{ %")
    return {"version": "1.0.0", "title": "lamp", "description": "A run", "prompt": prompt, "extensions": extensions}


def _env(request: Request) -> dict[str, str]:
    env = {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"}
    env |= {"GOOSE_MODEL": request.model} if request.model else {}
    return env | ({"GOOSE_THINKING_EFFORT": _EFFORTS[request.effort]} if request.effort is not None else {})


def _token(request: Request) -> dict[str, str]:
    return {} if request.mcp is None else {TOKEN_VARIABLE: request.mcp.token}


def _mode(request: Request) -> dict[str, str]:
    return {"GOOSE_MODE": by_mode(request, ("approve",), ("chat",), ("auto",))[0]}


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
    refuses={
        Mode.APPROVAL: "goose asks for approval on a terminal only, and ends when there is none",
        Mode.PLAN: "goose in chat mode calls no tool at all, so it cannot complete a run",
    },
    counts=Counts.TOKENS,
    login=Login(
        "Run `goose configure`, or set GOOSE_PROVIDER and its key.",
        root=".config/goose",
        files=("config.yaml", "secrets.yaml"),
    ),
    efforts=_EFFORTS,
    merges=(_STATE_HOME,),
    log=OwnLog(f"{_STATE}/goose/logs/cli/*/*.log", pause),
    named=True,
    conversations=ConversationStore(
        "XDG_DATA_HOME",
        ".local/share",
        "goose/sessions/sessions.db",
        chosen=True,
        query="SELECT name FROM sessions WHERE name = :id LIMIT 1",
    ),
)
