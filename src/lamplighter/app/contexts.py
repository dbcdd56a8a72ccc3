"""Contexts: cities on other machines, each with its address and a token, by a name; and the choice between them.

They are kept in one file of the user's, which nobody else may read.
"""

import fcntl
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import NamedTuple

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record

LOCAL = "local"
"""In place of a context's name: the city around the working directory."""
LONGEST = 4096
"""Of a file with a token."""
HOW = "Pass --token-file FILE or `--token -`, set LAMP_TOKEN, or keep it once with `lamp context add`."


class Context(NamedTuple):
    url: str
    token: str


@record
class Contexts:
    """`current` names the one that commands are about when nothing else is named; None for none."""

    current: str | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Raises ContextUnknown."""
        if name not in self.contexts:
            raise ContextUnknown(name, list(self.contexts))
        return self.contexts[name]

    def with_one(self, name: str, context: Context) -> "Contexts":
        """Raises Conflict for a name that is taken, UsageError for one that cannot be."""
        if name == LOCAL or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise UsageError(f"`{name}` cannot be the name of a context.", hint="Use letters, digits and `-_.`.")
        if name in self.contexts:
            raise Conflict(f"There is a context `{name}` already.", hint=f"`lamp context remove {name}` makes room.")
        return replace(self, contexts={**self.contexts, name: context})

    def using(self, name: str) -> "Contexts":
        """Raises ContextUnknown."""
        if name == LOCAL:
            return replace(self, current=None)
        self.named(name)
        return replace(self, current=name)

    def without(self, name: str) -> "Contexts":
        """Raises ContextUnknown."""
        self.named(name)
        left = {one: context for one, context in self.contexts.items() if one != name}
        return Contexts(None if self.current == name else self.current, left)


class ContextUnknown(NotFound):
    def __init__(self, name: str, known: list[str]) -> None:
        hint = "`lamp context list` shows those there are." if known else "`lamp context add` makes one."
        super().__init__(f"There is no context `{name}`{full_stop(name, known)}", hint=hint)


def file_of(env: Mapping[str, str]) -> Path:
    home = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or "~").expanduser() / ".config")
    return home / "lamplighter" / "contexts.json"


def read(env: Mapping[str, str]) -> Contexts:
    """Raises UsageError for a file that others may read, or that is none of ours."""
    file = file_of(env)
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # a home that is missing, or somebody else's
        return Contexts()
    try:
        kept = json.loads(file.read_bytes())
        contexts = {str(name): Context(str(one["url"]), str(one["token"])) for name, one in kept["contexts"].items()}
        current = kept["current"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is not a file of contexts.", hint="Mend it or delete it.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(
            f"{file} has tokens in it, and others may read it.", hint=f"`chmod 600 {file}`; then make new tokens."
        )
    return Contexts(current if current in contexts else None, contexts)


def change(env: Mapping[str, str], how: Callable[[Contexts], Contexts]) -> Contexts:
    """Change the file, one process at a time. Raises what `how` and `read` raise."""
    file = file_of(env)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        after = how(read(env))
        told = {"current": after.current, "contexts": {name: one._asdict() for name, one in after.contexts.items()}}
        write_atomically(file, (json.dumps(told, indent=1) + "\n").encode(), mode=0o600)
    return after


# ── the choice ────────────────────────────────────────────────────────────────────────────────────────────────────


@record
class Named:
    """What the line of a command names of a city and a token."""

    city: str | None = None
    url: str | None = None
    context: str | None = None
    token: str | None = None
    token_file: str | None = None


@record
class Remote:
    """A city on another machine; `by` says what chose it."""

    url: str
    token: str
    by: str


_Given = tuple[str, str | None]
"""What names a city, and what it says."""


class _Choice(NamedTuple):
    """One of a directory, an address and a context; the others are empty. `by` is what named it."""

    by: str
    url: str = ""
    context: str = ""


def chosen(named: Named, env: Mapping[str, str]) -> Remote | None:
    """The remote city that a command is about; None for one on this machine.

    The line of the command comes first, then the environment, then the context in use. Raises UsageError.
    """
    choice = (
        _one(("--city", named.city), ("--url", named.url), ("--context", named.context))
        or _one(*((name, env.get(name)) for name in ("LAMP_CITY", "LAMP_URL", "LAMP_CONTEXT")))
        or _in_use(env)
    )
    if choice is None or choice.context == LOCAL or not (choice.url or choice.context):
        if named.token is not None or named.token_file is not None:
            raise UsageError("A city on this machine takes no token.", hint="Name the city's --url or --context too.")
        return None
    shown = _shown(named)
    if choice.url:
        return Remote(choice.url, shown or _in_environment(env) or _kept_for(choice.url, env), choice.by)
    context = read(env).named(choice.context)
    return Remote(context.url, shown or context.token, choice.by)


def _one(city: _Given, url: _Given, context: _Given) -> _Choice | None:
    """The one that is given; None if none is. Raises UsageError if several are."""
    told = [name for name, value in (city, url, context) if value]
    if len(told) > 1:
        raise UsageError(f"{' and '.join(told)} name two cities.", hint="Name one.")
    return _Choice(told[0], url[1] or "", context[1] or "") if told else None


def _in_use(env: Mapping[str, str]) -> _Choice | None:
    current = None if env.get("GC_CITY") else read(env).current
    return None if current is None else _Choice(f"the context `{current}`, which is in use", context=current)


def token_of(named: Named, env: Mapping[str, str]) -> str | None:
    """The token that the line of the command or the environment names. Raises UsageError."""
    return _shown(named) or _in_environment(env)


def _shown(named: Named) -> str | None:
    if named.token is not None and named.token_file is not None:
        raise UsageError("--token and --token-file name two tokens.", hint="Name one.")
    if named.token_file is not None:
        return _in_file(named.token_file)
    if named.token == "-":  # noqa: S105  standard input, not a token
        return _filled(sys.stdin.readline(LONGEST), "standard input")
    return named.token


def _in_environment(env: Mapping[str, str]) -> str | None:
    file = env.get("LAMP_TOKEN_FILE")
    return env.get("LAMP_TOKEN") or (_in_file(file) if file else None)


def _in_file(name: str) -> str:
    try:
        with Path(name).open(encoding="utf-8") as file:
            return _filled(file.read(LONGEST), name)
    except FileNotFoundError:
        raise NotFound(f"There is no file {name}.", hint="Name the file that has the token.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} has no token in it: {error}.", hint="Name the file that has the token.") from error


def _filled(text: str, where: str) -> str:
    """Raises UsageError for nothing: another token is not taken in its place."""
    if not text.strip():
        raise UsageError(f"There is no token in {where}.", hint="Put it there as one line.")
    return text.strip()


def _kept_for(url: str, env: Mapping[str, str]) -> str:
    """The token of a context with the same address."""
    found = next((one.token for one in read(env).contexts.values() if one.url == url.rstrip("/")), None)
    if found is None:
        raise UsageError(f"There is no token for {url}.", hint=HOW)
    return found
