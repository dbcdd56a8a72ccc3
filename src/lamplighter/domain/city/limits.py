"""Checks of single values: each returns what is wrong with a value, or None."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from lamplighter.kit.nearest import did_you_mean

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_]*\Z", re.IGNORECASE)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_SECRET = re.compile(r"token|secret|passw|api_?key|credential|private_?key", re.IGNORECASE)


def looks_secret(name: str) -> bool:
    return bool(_SECRET.search(name))


def one_of(*names: str) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        if value in names:
            return None
        return f"`{value}` is not one of {_listed(names)}{did_you_mean(value, names)}"

    return check


def provider(*names: str) -> Callable[[str], str | None]:
    """Accepts one of the names, an empty text for the default, or `exec:` and a script."""
    known = one_of(*names, "exec:<script>")

    def check(value: str) -> str | None:
        if value == "":
            return None
        if value.startswith("exec:"):
            return None if value.removeprefix("exec:").strip() else "`exec:` names no script; write `exec:<script>`"
        return known(value)

    return check


def some_of(*names: str) -> Callable[[Sequence[str]], str | None]:
    known = one_of(*names)

    def check(values: Sequence[str]) -> str | None:
        return next((wrong for wrong in map(known, values) if wrong), None)

    return check


def positive(value: timedelta) -> str | None:
    return None if value > timedelta(0) else "must be longer than zero"


def at_least(least: int) -> Callable[[int], str | None]:
    def check(value: int) -> str | None:
        return None if value >= least else f"is {value}; it must be {least} or more"

    return check


def between(least: int, most: int) -> Callable[[int], str | None]:
    def check(value: int) -> str | None:
        return None if least <= value <= most else f"is {value}; it goes from {least} to {most}"

    return check


def port(value: int) -> str | None:
    return None if 0 <= value <= 65535 else f"{value} is not a port; ports go from 0 (any free one) to 65535"


def plain_name(value: str) -> str | None:
    """Accepts names that can be used in paths, session names and labels."""
    if _NAME.match(value):
        return None
    if not value:
        return "is empty; give it a name"
    return f"`{value}` is not a name; use letters, digits, `-`, `_` and `.`"


def prefix(value: str) -> str | None:
    if value == "" or _PREFIX.match(value):
        return None
    return f"`{value}` is not a bead prefix; use letters and digits"


def not_empty(value: str) -> str | None:
    return None if value.strip() else "is empty"


def no_password(value: str) -> str | None:
    """Secrets come from the environment, never from the file."""
    try:
        parts = urlsplit(value)
        secret = parts.password
    except ValueError:
        return "is not a URL"
    if secret:
        return "holds a password; leave it out here and set the whole URL in the environment, as `LAMP_STORE_URL`"
    return None


def web_address(value: str) -> str | None:
    """Accepts an empty text, or an HTTP or HTTPS URL without a password."""
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if value and not sound:
        return f"`{value}` is not a web address; write one such as `https://lamp.example.org`"
    return no_password(value)


def hooks(values: Sequence[str]) -> str | None:
    supported = ("claude", "gemini", "opencode", "copilot")
    for value in values:
        if value in {"codex", "cursor", "amp"}:
            return f"`{value}` has no way to install hooks; those with one are {_listed(supported)}"
    return some_of(*supported)(values)


def env_name(value: str) -> bool:
    return bool(_ENV_NAME.match(value))


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" if name else "nothing" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
