"""The specification of a session to start, and the observed state of one."""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NewType

from lamplighter.kit.records import record

SessionName = NewType("SessionName", str)

NOTHING: Mapping[str, str] = MappingProxyType({})
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")

SESSION_NAMES = "use up to 128 letters, digits and the signs _ . @ + -"


def session_name(text: str) -> SessionName:
    """`text` as a session's name. Raises ValueError if it cannot name a directory or a terminal session."""
    if not names_a_session(text):
        raise ValueError(f"`{text}` cannot name a session; {SESSION_NAMES}")
    return SessionName(text)


def names_a_session(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


@record
class Readiness:
    """When a started program is ready for input: a line begins with `prompt_prefix`, or `mark` is on its screen.

    Waiting for these ends after `within`. If neither is given, it is ready after `delay`, by default at once.
    """

    prompt_prefix: str = ""
    mark: str = ""
    delay: timedelta = timedelta(0)
    within: timedelta = timedelta(seconds=60)

    @property
    def reads_screen(self) -> bool:
        return bool(self.prompt_prefix or self.mark)


@record
class Dialog:
    """A question on the first screens: when `mark` is shown, pick the option containing `choose`, else press `keys`."""

    mark: str
    choose: str = ""
    keys: tuple[str, ...] = ("Enter",)


@record
class CopyFile:
    source: str
    destination: str  # relative to the working directory


@record
class Setup:
    """What is done before and after a start, on the machine where the session runs."""

    overlay_dir: str = ""  # its files are copied into the working directory, without replacing existing ones
    copy_files: tuple[CopyFile, ...] = ()
    before: tuple[str, ...] = ()  # shell commands before the program starts
    after: tuple[str, ...] = ()  # shell commands once it is ready


@record
class SessionSpec:
    """Everything a provider needs to start one session. `env` is the whole environment; nothing is inherited."""

    name: SessionName
    command: tuple[str, ...]
    work_dir: str
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    meta: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    takes_input: bool = True  # headless programs read standard input to its end if it is open
    readiness: Readiness = Readiness()
    dialogs: tuple[Dialog, ...] = ()
    process_names: tuple[str, ...] = ()
    nudge: str = ""
    prompt: str = ""  # what its command line already tells it; it shows this before it is ready for more
    setup: Setup = Setup()


@record
class Seen:
    """The state of one session of this city at one moment.

    `alive` refers to the program, not its container: a session that exists with a dead program is a zombie.
    `session_id` identifies one start, so that two starts of the same name can be told apart.
    """

    name: SessionName
    alive: bool
    session_id: str = ""
    pid: int | None = None
    exit_status: int | None = None
    started_at: datetime | None = None
    last_activity: datetime | None = None
    attached: bool = False
    meta: Mapping[str, str] = field(default_factory=lambda: NOTHING)
