"""Masks secrets before anything is shown in logs, in errors or on pages."""

import re

MASK = "•••"
_SECRET_FIELD = re.compile(
    r"(token|secret|password|passwd|api_?key|authorization|credential|private_key)", re.IGNORECASE
)
# The bound on the scheme's length keeps the search fast: else a long word is searched again from each of its letters.
_URL_PASSWORD = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^:/@\s]*):[^@/\s]+@", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<name>[?&\s](?:ssl)?password)=[^&\s]+", re.IGNORECASE)


def masked(text: str) -> str:
    """`text` with the passwords of URLs masked, before the host or in a parameter.

    A password before the host that contains an unescaped `/` or `@` is not, or not wholly, masked.
    """
    if not text:
        return text
    return _PARAMETER.sub(rf"\g<name>={MASK}", _URL_PASSWORD.sub(rf"\g<scheme>:{MASK}@", text))


def is_secret(field: str) -> bool:
    """Whether a field of this name holds a secret that must not be shown."""
    return _SECRET_FIELD.search(field) is not None
