"""Masks secrets before anything is shown in logs, in errors or on pages."""

import re

MASK = "•••"
_SECRET_FIELD = re.compile(
    r"(token|secret|password|passwd|api_?key|authorization|credential|private_key)", re.IGNORECASE
)
# The bound on the scheme's length keeps the search fast: else a long word is searched again from each of its letters.
# A password may hold `/` and `@`, written as they are: it goes to the last `@` before a space or a quote. A port that a
# path follows is no password.
_URL_PASSWORD = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^:/@\s]*):(?!\d{1,5}(?:[/?#]|$))[^\s\"'`<>]{1,300}@", re.IGNORECASE
)
_PARAMETER = re.compile(r"(?P<name>[?&\s](?:ssl)?password)=[^&\s]+", re.IGNORECASE)


def masked(text: str) -> str:
    """`text` with the passwords of URLs masked, before the host or in a parameter.

    What stands between the colon after the user and the last `@` of the word is taken for the password: where a path
    or a parameter holds another `@`, more is masked than the password.
    """
    if not text:
        return text
    return _PARAMETER.sub(rf"\g<name>={MASK}", _URL_PASSWORD.sub(rf"\g<scheme>:{MASK}@", text))


def is_secret(field: str) -> bool:
    """Whether a field of this name holds a secret that must not be shown."""
    return _SECRET_FIELD.search(field) is not None
