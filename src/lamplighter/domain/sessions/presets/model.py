"""The types of presets: what a preset knows about its program, the request to start it, and the invocation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lamplighter.domain.sessions.model import NOTHING, Dialog, Readiness
from lamplighter.domain.sessions.transcript import Parsed

TOKEN_VARIABLE = "LAMP_MCP_TOKEN"  # noqa: S105  the name of a variable, not a token


class Mode(StrEnum):
    """What an agent may do without asking."""

    APPROVAL = "approval"
    PLAN = "plan"
    FULL_ACCESS = "full_access"


@dataclass(frozen=True)
class McpServer:
    """The MCP server with the tools of one run: an HTTP URL with its own token."""

    url: str
    token: str
    name: str = "automation"


@dataclass(frozen=True)
class Request:
    """A request to start a program. `files_dir` is the session's own directory, for files the program must read."""

    work_dir: str
    files_dir: str
    prompt: str = ""
    model: str = ""
    mode: Mode = Mode.FULL_ACCESS
    mcp: McpServer | None = None
    session: str = ""  # a name for the session, for programs that do not report an id
    resume: str = ""  # the session to continue: the program's own id, or that name
    args: tuple[str, ...] = ()  # further arguments from the configuration
    as_root: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # the environment it will have


class Place(StrEnum):
    FILES = "files"  # the session's own directory
    HOME = "home"
    WORK = "work"


class Writing(StrEnum):
    REPLACE = "replace"
    MERGE_JSON = "merge_json"  # missing keys are added to an existing file; its own values stay


@dataclass(frozen=True)
class SeedFile:
    """A file that must exist when the program starts. It is written with mode 0600, because it may contain a token."""

    place: Place
    path: str
    content: str
    writing: Writing = Writing.REPLACE


@dataclass(frozen=True)
class Invocation:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    files: tuple[SeedFile, ...] = ()
    takes_input: bool = False
    nudge: str = ""  # the prompt, if the program takes none on its command line
    readiness: Readiness | None = None  # set if it depends on the request


Build = Callable[[Request], Invocation]
Parser = Callable[[str], Parsed]


@dataclass(frozen=True)
class Stopping:
    """What to know about stopping the program. All its descendants are stopped in any case."""

    leaves_behind: tuple[str, ...] = ()  # words in the command lines of helpers that outlive the program by design
    note: str = ""


@dataclass(frozen=True)
class Preset:
    """One agent program. `keys` are the environment variables it may need besides PATH and HOME."""

    name: str
    title: str
    program: str
    interactive: Build
    headless: Build | None
    parse: Parser
    keys: tuple[str, ...] = ()
    process_names: tuple[str, ...] = ()
    readiness: Readiness = field(default_factory=Readiness)
    dialogs: tuple[Dialog, ...] = ()
    has_mcp: bool = True
    can_resume: bool = True
    stopping: Stopping = field(default_factory=Stopping)
    tried: bool = True  # its command lines were run with the real program


def by_mode(
    request: Request, approval: tuple[str, ...], plan: tuple[str, ...], full: tuple[str, ...]
) -> tuple[str, ...]:
    return {Mode.APPROVAL: approval, Mode.PLAN: plan, Mode.FULL_ACCESS: full}[request.mode]


def flag(name: str, value: str) -> tuple[str, ...]:
    return (name, value) if value else ()
