"""The presets by name, their order of detection, and presets for programs that a city declares."""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from lamplighter.domain.sessions.model import NOTHING, Dialog, Readiness
from lamplighter.domain.sessions.presets.claude import CLAUDE, NO_SERVERS, mcp_file
from lamplighter.domain.sessions.presets.codex import CODEX
from lamplighter.domain.sessions.presets.copilot import COPILOT
from lamplighter.domain.sessions.presets.gemini import GEMINI, QWEN
from lamplighter.domain.sessions.presets.goose import GOOSE
from lamplighter.domain.sessions.presets.lines import plain
from lamplighter.domain.sessions.presets.model import Invocation, Mode, Place, Preset, Request, SeedFile
from lamplighter.domain.sessions.presets.opencode import OPENCODE
from lamplighter.domain.sessions.presets.others import AIDER, AMP, CLINE, CURSOR, OPENHANDS, SHELL
from lamplighter.kit.records import record
from lamplighter.kit.text import expand

# A city that names no provider gets the first one found on PATH; the shell must be named.
DETECTED = (CLAUDE, CODEX, GEMINI, CURSOR, COPILOT, AMP, OPENCODE, QWEN, GOOSE, CLINE, OPENHANDS, AIDER)
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for preset in (*DETECTED, SHELL)} | {"cursor": CURSOR}
)


def detect(is_there: Callable[[str], bool]) -> Preset | None:
    """The first program found that can do a run."""
    return next((preset for preset in DETECTED if not preset.no_runs and is_there(preset.program)), None)


class PromptMode(StrEnum):
    ARG = "arg"
    FLAG = "flag"
    NONE = "none"


@record
class Declared:
    """A program as `[providers.NAME]` declares it; it takes nothing from a preset of the same name.

    Its arguments are templates. They may use `variables` and McpFile, the path of a file that names the server with the
    tools of a run; a program that is given that file is told to complete its runs by tool.
    """

    name: str
    command: str
    title: str = ""
    args: tuple[str, ...] = ()
    prompt_mode: PromptMode = PromptMode.ARG
    prompt_flag: str = ""
    ready_delay: timedelta = timedelta(0)
    ready_prompt_prefix: str = ""
    process_names: tuple[str, ...] = ()
    emits_permission_warning: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    variables: Mapping[str, object] = field(default_factory=dict)

    @property
    def takes_mcp_file(self) -> bool:
        return any(f".{MCP_FILE}" in argument for argument in self.args)


MCP_FILE = "McpFile"


_OWN = "it is a program of the city's own, and lamp does not know how to tell it to keep to that mode"


def declared(what: Declared) -> Preset:
    """A preset for a program that the city declares: it gets its prompt as declared, and its output is plain text."""

    def build(request: Request, *, takes_input: bool) -> Invocation:
        words = {**what.variables, MCP_FILE: f"{request.files_dir}/mcp.json"}
        args = [expand(argument, words, file="args") for argument in what.args]
        argv = (what.command, *args, *request.args, *_prompt(what, request.prompt))
        return Invocation(argv, dict(what.env), _mcp_files(what, request), takes_input=takes_input)

    return Preset(
        name=what.name,
        title=what.title or what.name,
        program=what.command,
        interactive=lambda request: build(request, takes_input=True),
        headless=lambda request: build(request, takes_input=False),
        parse=plain,
        process_names=what.process_names,
        readiness=Readiness(prompt_prefix=what.ready_prompt_prefix, delay=what.ready_delay),
        dialogs=FIRST_QUESTIONS if what.emits_permission_warning else (),
        has_mcp=what.takes_mcp_file,
        can_resume=False,
        refuses=dict.fromkeys((Mode.APPROVAL, Mode.PLAN), _OWN),
    )


FIRST_QUESTIONS: tuple[Dialog, ...] = CLAUDE.dialogs


def _mcp_files(what: Declared, request: Request) -> tuple[SeedFile, ...]:
    if not what.takes_mcp_file:
        return ()
    content = NO_SERVERS if request.mcp is None else mcp_file(request.mcp)
    return (SeedFile(Place.FILES, "mcp.json", content),)


def _prompt(what: Declared, prompt: str) -> tuple[str, ...]:
    match what.prompt_mode:
        case PromptMode.ARG:
            return (prompt,) if prompt else ()
        case PromptMode.FLAG:
            return (what.prompt_flag, prompt) if prompt and what.prompt_flag else ()
        case PromptMode.NONE:
            return ()


PROMPTS = tuple(one for preset in PRESETS.values() for one in preset.asks)
"""The permission prompts that are known of the programs."""
