"""Secrets by name: how a variable refers to one, what is kept of one, and what is told of one that cannot be used."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote_from_bytes

from lamplighter.kit.errors import Conflict, NotFound, Unavailable
from lamplighter.kit.masking import MASK
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record

REFERENCE = "secret:"
"""What the value of a variable begins with that is the secret of the name that follows."""
LONGEST = 32_768
SHORTEST_MASKED = 6
"""A shorter value is not masked: it would be found in every other word."""
_OWN = ("LAMP_", "GC_")
"""What the variables begin with that the product sets."""
_OF_ENCODE_URI = "/;,?:@&=+$-_.!~*'()#"
"""What a URL as a whole may hold as it is, such as JavaScript's `encodeURI` leaves it."""
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_LINE = 76
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@record
class Sealed:
    """An encrypted value: the id of the key that opens it, its nonce and its text, both in hexadecimal digits."""

    key_id: str
    nonce: str
    text: str


class SecretUnknown(NotFound):
    reason = "secret_missing"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"There is no secret `{name}`{full_stop(name, list(known))}", hint=f"`lamp secret set {name}`")
        self.name = name


class SecretLocked(Unavailable):
    """It is there, and cannot be opened here."""

    reason = "secret_locked"

    def __init__(self, name: str, why: str, hint: str) -> None:
        super().__init__(f"Secret `{name}` cannot be opened: {why}.", hint=hint)
        self.name = name


class KeyUnusable(Conflict):
    pass


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def referred(value: str) -> str | None:
    """The secret that a variable's value refers to; None if it is a plain value."""
    return value.removeprefix(REFERENCE).strip() if value.startswith(REFERENCE) else None


def references(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that refer to secrets, each with the secret's name.

    Those of the product itself refer to none, whatever they hold: agents write some of them, such as a cursor.
    """
    found = {name: referred(value) for name, value in env.items() if not name.startswith(_OWN)}
    return {name: secret for name, secret in found.items() if secret is not None}


def is_masked(value: str) -> bool:
    """Whether the value is long enough to be masked."""
    return len(value.strip()) >= SHORTEST_MASKED


def masking(values: Iterable[str]) -> Callable[[str], str]:
    """A function that masks these values wherever they are in a text; a value of several lines also line by line.

    Each also as JSON, a URL or base64 has it.
    """
    told = {value for value in values if is_masked(value)}
    parts = {part for value in told for part in (value, *value.splitlines()) if is_masked(part)}
    forms = {form for part in parts for form in _forms(part)} | {form for value in told for form in _in_base64(value)}
    if not forms:
        return _as_it_is
    pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
    return lambda text: pattern.sub(MASK, text)


def _forms(part: str) -> Iterator[str]:
    """As it is, in JSON, in JSON inside JSON, and in a URL."""
    yield part
    for ascii_only in (True, False):
        once = json.dumps(part, ensure_ascii=ascii_only)[1:-1]
        yield from (once, once.replace("/", r"\/"), json.dumps(once)[1:-1])
    raw = part.encode(errors="surrogatepass")
    for safe in ("", "/", _OF_ENCODE_URI):
        for quoted in (quote_from_bytes(raw, safe), quote_from_bytes(raw, f"{safe} ").replace(" ", "+")):
            yield quoted
            yield _ESCAPE.sub(lambda found: found[0].lower(), quoted)


def _in_base64(value: str) -> Iterator[str]:
    """The whole value, and with a line end as `echo` adds one; without padding, and in lines as `base64` cuts it."""
    for text in (value, f"{value}\n"):
        raw = text.encode(errors="surrogatepass")
        for coded in (b64encode(raw), urlsafe_b64encode(raw)):
            found = coded.decode().rstrip("=")
            yield found
            yield from (found[start : start + _LINE] for start in range(0, len(found) - SHORTEST_MASKED, _LINE))


def _as_it_is(text: str) -> str:
    return text
