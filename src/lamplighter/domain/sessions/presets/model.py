"""What a preset knows of its program, and what it makes of a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lamplighter.domain.sessions.model import NOTHING, Dialog, Readiness
from lamplighter.domain.sessions.transcript import Parsed

TOKEN_VARIABLE = "LAMP_MCP_TOKEN"  # noqa: S105  the name of a variable, not a token


class Mode(StrEnum):
    """How much an agent may do unasked."""

    APPROVAL = "approval"
    PLAN = "plan"
    FULL_ACCESS = "full_access"


@dataclass(frozen=True)
class McpServer:
    """The tools of one run: an HTTP server with a token of its own."""

    url: str
    token: str
    name: str = "automation"


@dataclass(frozen=True)
class Request:
    """What a program is to be started for. `files_dir` is the session's own directory, for files it must read."""

    work_dir: str
    files_dir: str
    prompt: str = ""
    model: str = ""
    mode: Mode = Mode.FULL_ACCESS
    mcp: McpServer | None = None
    session: str = ""  # a name for the session, for programs that do not tell theirs
    resume: str = ""  # the program's own id, or that name, of the session to go on with
    args: tuple[str, ...] = ()  # further arguments from the configuration
    as_root: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # the environment it will have


class Place(StrEnum):
    FILES = "files"  # the session's own directory
    HOME = "home"
    WORK = "work"


class Writing(StrEnum):
    REPLACE = "replace"
    MERGE_JSON = "merge_json"  # keys are added to what a person's file says; what it says already stays


@dataclass(frozen=True)
class SeedFile:
    """A file the program must find when it starts. Its mode is 0600: it may hold a token."""

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
    nudge: str = ""  # the prompt, where the program takes none on its command line
    readiness: Readiness | None = None  # where it depends on the request


Build = Callable[[Request], Invocation]
Parser = Callable[[str], Parsed]


@dataclass(frozen=True)
class Stopping:
    """How it is ended for good. The whole tree of descendants is ended in any case."""

    leaves_behind: tuple[str, ...] = ()  # words on the command line of helpers that outlive it on purpose
    note: str = ""


@dataclass(frozen=True)
class Preset:
    """One agent program. `keys` are the variables of the environment it may need, besides PATH and HOME."""

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
