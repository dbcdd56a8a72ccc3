"""The types of presets: what a preset knows about its program, the request to start it, and the invocation."""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.sessions.model import NOTHING, Dialog, Readiness
from lamplighter.domain.sessions.transcript import Parsed
from lamplighter.kit.records import record

TOKEN_VARIABLE = "LAMP_MCP_TOKEN"  # noqa: S105  the name of a variable, not a token


class Mode(StrEnum):
    """What an agent may do without asking."""

    APPROVAL = "approval"
    PLAN = "plan"
    FULL_ACCESS = "full_access"


class Effort(StrEnum):
    """How hard a model is to think; each program has its own words for it, or none."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


@record
class McpServer:
    """The MCP server with the tools of one run: an HTTP URL with its own token."""

    url: str
    token: str
    name: str = "automation"


@record
class Request:
    """A request to start a program. `files_dir` is the session's own directory, for files the program must read."""

    work_dir: str
    files_dir: str
    prompt: str = ""
    model: str = ""
    effort: Effort | None = None
    mode: Mode = Mode.FULL_ACCESS
    mcp: McpServer | None = None
    session: str = ""  # a name for the session, for programs that do not report an id
    resume: str = ""  # the session to continue: the program's own id, or that name
    conversation: str = ""  # the id that a new conversation is to have, for programs that let it be chosen
    args: tuple[str, ...] = ()  # further arguments from the configuration
    as_root: bool = False
    in_repository: bool = True
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # the environment it will have


class Place(StrEnum):
    FILES = "files"  # the session's own directory
    HOME = "home"
    WORK = "work"


class Writing(StrEnum):
    REPLACE = "replace"
    MERGE_JSON = "merge_json"  # missing keys are added to an existing file; its own values stay
    ENTRY = "entry"  # our values replace those of an existing file, and are taken out when the run has ended


@record
class SeedFile:
    """A file that must exist when the program starts. It is written with mode 0600, because it may contain a token."""

    place: Place
    path: str
    content: str
    writing: Writing = Writing.REPLACE
    base: str = ""  # a JSON file, absolute or below the home, whose values are kept where `content` has none


@record
class Mirror:
    """A folder of the session's own that stands for `home`, for programs that read all they know from one folder.

    `home` is absolute or below the home directory; `files` is below the session's own directory. Every
    entry is a link to the person's own, so that logins and conversations are shared; only the entries in `own` are
    left to the session's files. The folders in `shared` are made in `home`, so that what is added there stays.
    """

    home: str
    files: str
    own: tuple[str, ...]
    shared: tuple[str, ...] = ()


@record
class Invocation:
    """`env` gives way to variables that the user sets; `fixed` does not: without it the tools or the mode are lost."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    files: tuple[SeedFile, ...] = ()
    mirrors: tuple[Mirror, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    takes_input: bool = False
    nudge: str = ""  # the prompt, if the program takes none on its command line
    readiness: Readiness | None = None  # set if it depends on the request


Build = Callable[[Request], Invocation]
Parser = Callable[[str], Parsed]


@record
class Stopping:
    """What to know about stopping the program. All its descendants are stopped in any case."""

    leaves_behind: tuple[str, ...] = ()  # words in the command lines of helpers that outlive the program by design
    note: str = ""


@record
class ConversationStore:
    """Where an interactive program keeps its conversations, below the directory that `variable`, if any, names, else
    `root` of the home. `chosen` says that a conversation has the name that we gave it at its start.

    `path` is a glob. With `query` it leads to an SQLite database that is asked with :id, the chosen name, and :text, a
    pattern for a text in the first prompt. Without it, a file with the chosen name in place of `{id}`, or the newest
    file that holds that text, is the conversation; `name` then picks the program's name for it from that of the file.
    """

    variable: str
    root: str
    path: str
    chosen: bool = False
    query: str = ""
    name: str = ""


@record
class Login:
    """How the program is signed in, and how it tells that it is not.

    Its login is kept below the directory that `variable` names, or else below `root` of the home. `files` change when
    somebody signs in. `ask` is a command that exits with 0 if there is a login, and prints what `denies` matches if
    there is none, without asking the provider: an older program, which does not know it, says neither. `says` are
    patterns in its errors, beside those that all programs have in common, and `exits` the exit statuses that mean a
    missing login. `frames` begins the lines of its text that only show the conversation.
    """

    sign_in: str
    """What a person does to sign in, as a sentence."""
    variable: str = "HOME"
    root: str = ""
    files: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    denies: str = ""
    says: tuple[str, ...] = ()
    exits: tuple[int, ...] = ()
    frames: str = ""


class Counts(StrEnum):
    """What the output of a program tells about what a run used."""

    NOTHING = "nothing"
    TOKENS = "tokens"
    COST = "cost"  # and tokens


@record
class Asking:
    """A permission prompt of a program that redraws its screen while it stands there, so that silence does not tell it.

    `question` begins it, and `end` is what its last lines say; both are texts that the program itself draws.
    """

    question: str
    end: str


@record
class Pause:
    """What a program waits for in silence before it asks its model again, in its own words, and until when."""

    message: str
    until: datetime


@record
class OwnLog:
    """A log in which a program writes down that it waits, where its output does not say so.

    `path` is a glob below the session's own directory; the newest such file counts. `pause` reads the last one.
    """

    path: str
    pause: Callable[[str], Pause | None]


@record
class Preset:
    """One agent program. `keys` are the environment variables it may need besides PATH and HOME.

    `refuses` holds the modes in which it cannot complete a run without a person, each with the reason; `no_runs` is the
    reason why it can do no run at all. `merges` are the variables of the user's that it joins with its own.
    """

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
    named: bool = False  # a session of it has the name that we gave it, which is the name to resume it by
    stopping: Stopping = field(default_factory=Stopping)
    tried: bool = True  # its command lines were run with the real program
    refuses: Mapping[Mode, str] = field(default_factory=dict)
    no_runs: str = ""
    counts: Counts = Counts.NOTHING
    merges: tuple[str, ...] = ()
    login: Login | None = None  # None for a program that needs none, or of which that is not known
    efforts: Mapping[Effort, str] = field(default_factory=dict)  # its own words; empty if it takes none
    asks: tuple[Asking, ...] = ()
    log: OwnLog | None = None
    conversations: ConversationStore | None = None  # None if an agent cannot be started with its earlier conversation


def by_mode(
    request: Request, approval: tuple[str, ...], plan: tuple[str, ...], full: tuple[str, ...]
) -> tuple[str, ...]:
    return {Mode.APPROVAL: approval, Mode.PLAN: plan, Mode.FULL_ACCESS: full}[request.mode]


def flag(name: str, value: str) -> tuple[str, ...]:
    return (name, value) if value else ()


def effort(request: Request, words: Mapping[Effort, str], *flags: str) -> tuple[str, ...]:
    """The flags that ask for the wished effort, `{}` in them standing for the program's own word."""
    if request.effort is None or request.effort not in words:
        return ()
    return tuple(flag.replace("{}", words[request.effort]) for flag in flags)
