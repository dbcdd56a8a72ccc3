"""Checks of single values: each returns what is wrong with a value, or None."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from lamplighter.domain.city.destination_kinds import DESTINATION_KINDS
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.schedule import zone_named

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


def provider(*names: str, default: str = "") -> Callable[[str], str | None]:
    """Accepts one of the names, `exec:` and a script, or an empty text, where that has no other `default`."""
    known = one_of(*names, "exec:<script>")

    def check(value: str) -> str | None:
        if value == "":
            return f"is empty; leave it out for `{default}`" if default else None
        if value.startswith("exec:"):
            return None if value.removeprefix("exec:").strip() else "`exec:` names no script; write `exec:<script>`"
        return known(value)

    return check


def some_of(*names: str) -> Callable[[Sequence[str]], str | None]:
    known = one_of(*names)

    def check(values: Sequence[str]) -> str | None:
        return next((wrong for wrong in map(known, values) if wrong), None)

    return check


def below(values: Sequence[str]) -> str | None:
    """Each is a path below a directory: relative, and not out of it."""
    for value in values:
        if not value.strip() or value.startswith(("/", "~")) or ".." in value.split("/") or value in {".", "./"}:
            return f"`{value}` is not a path below the rig's directory; write it relative to that"
        if ".git" in value.split("/"):
            return f"`{value}` is git's own; each worktree has one of its own"
    return None


def positive(value: timedelta) -> str | None:
    return None if value > timedelta(0) else "must be longer than zero"


def above_zero(value: float) -> str | None:
    return None if value > 0 else "must be more than zero"


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


def issuer(value: str) -> str | None:
    """Accepts an empty text, or the address of an OpenID provider: HTTPS, but for one on this machine."""
    wrong = web_address(value)
    if wrong or not value:
        return wrong
    parts = urlsplit(value)
    if parts.query or parts.fragment:
        return f"`{value}` has more than scheme, host and path"
    if parts.scheme == "http" and parts.hostname not in _HERE:
        return f"`{value}` is no https address; people sign in there"
    return None


def mail_domains(values: Sequence[str]) -> str | None:
    wrong = next((one for one in values if not _DOMAIN.fullmatch(one)), None)
    return None if wrong is None else f"`{wrong}` is not the domain of mail addresses, such as `example.org`"


_HERE = ("127.0.0.1", "localhost", "::1")
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
_RESERVED = ("inbox", "none")
_REFERRED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_SECRETS = 2
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
_QUIET = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d\Z")


def destination_name(value: str) -> str | None:
    if value in _RESERVED:
        return f"`{value}` is a destination that every city has; choose another name"
    return plain_name(value)


def destination_kind(value: str) -> str | None:
    if value == "slack":
        return "`slack` is not a kind; write `slack_channel` or `slack_dm_user`"
    return one_of(*DESTINATION_KINDS)(value)


def secret_reference(value: str) -> str | None:
    """Accepts an empty text, or `secret:NAME`. A value that is none is not repeated: it may be the secret itself."""
    name = value.removeprefix("secret:") if value.startswith("secret:") else None
    if value == "" or (name is not None and _REFERRED.fullmatch(name)):
        return None
    return "is not the name of a secret; keep it with `lamp secret set NAME` and write `secret:NAME`"


def secret_references(values: Sequence[str]) -> str | None:
    if len(values) > _MOST_SECRETS:
        return f"has {len(values)} secrets; at most {_MOST_SECRETS} can sign, the new one and the old one"
    told = [secret_reference(one) if one else "has an empty text" for one in values]
    return next((one for one in told if one), None)


def mail_address(value: str) -> str | None:
    if value == "" or _MAIL.fullmatch(value):
        return None
    return f"`{value}` is not an e-mail address; write one such as `lamp@example.org`"


def mail_addresses(values: Sequence[str]) -> str | None:
    told = [mail_address(one) if one else "has an empty text" for one in values]
    return next((one for one in told if one), None)


def ntfy_topic(value: str) -> str | None:
    if value == "" or _TOPIC.fullmatch(value):
        return None
    return f"`{value}` is not a topic; use letters, digits, `_` and `-`, at most 64"


def zone(value: str) -> str | None:
    if not value:
        return None

    try:
        zone_named(value)
    except ValueError as error:
        return str(error)
    return None


def quiet_hours(value: str) -> str | None:
    if value == "" or (_QUIET.match(value) and value[:5] != value[6:]):
        return None
    return f"`{value}` is not a span of hours; write one such as `22:00-07:00`"


def slack_channel(value: str) -> str | None:
    return _slack_id(value, "CGD", "a channel")


def slack_user(value: str) -> str | None:
    return _slack_id(value, "UW", "a user")


def slack_team(value: str) -> str | None:
    return _slack_id(value, "T", "a workspace")


def _slack_id(value: str, first: str, what: str) -> str | None:
    if value == "" or re.fullmatch(rf"[{first}][A-Z0-9]{{1,40}}", value):
        return None
    return f"`{value}` is not the id of {what} in Slack, such as `{first[0]}0123456789`"


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
