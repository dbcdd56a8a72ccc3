"""Secrets covered before anything is shown: in logs, errors and on pages."""

import re

MASK = "•••"
_SECRET_FIELD = re.compile(
    r"(token|secret|password|passwd|api_?key|authorization|credential|private_key)", re.IGNORECASE
)
# A scheme is short: without that bound a long word would be looked through again from each of its letters.
_URL_PASSWORD = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^:/@\s]*):[^@/\s]+@", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<name>[?&\s](?:ssl)?password)=[^&\s]+", re.IGNORECASE)


def masked(text: str) -> str:
    """`text` with the password of every URL in it covered, wherever in the URL it stands."""
    if not text:
        return text
    return _PARAMETER.sub(rf"\g<name>={MASK}", _URL_PASSWORD.sub(rf"\g<scheme>:{MASK}@", text))


def is_secret(field: str) -> bool:
    """Whether a field of this name holds what must not be shown."""
    return _SECRET_FIELD.search(field) is not None
