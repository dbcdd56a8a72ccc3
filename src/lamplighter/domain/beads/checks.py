"""Checks of a bead's contents, made before anything is written and the same for every bead store."""

from collections.abc import Mapping

from lamplighter.domain.beads.model import BeadChange, BeadStatus, NewBead
from lamplighter.kit.errors import UsageError

LONGEST_TITLE = 500
LONGEST_WORD = 200
LONGEST_TEXT = 1 << 20


def checked(new: NewBead) -> NewBead:
    """`new` unchanged. Raises UsageError for a bead that cannot be stored."""
    _check_title(new.title)
    _check_texts(
        {"description": new.description, "assignee": new.assignee, "sender": new.sender, "ref": new.ref}, new.metadata
    )
    for word in (new.type, *new.labels):
        check_word(word)
    return new


def checked_change(wanted: BeadChange) -> BeadChange:
    """`wanted` unchanged. Raises UsageError for values that no new bead could have, and for closing a bead."""
    if wanted.status is BeadStatus.CLOSED:
        raise UsageError("A bead is closed with `lamp bead close`.", hint="It also closes what ends with it.")
    if wanted.title is not None:
        _check_title(wanted.title)
    _check_texts({"description": wanted.description, "assignee": wanted.assignee}, wanted.metadata)
    for word in (*wanted.add_labels, *([] if wanted.type is None else [wanted.type])):
        check_word(word)
    return wanted


def checked_assignee(assignee: str) -> str:
    """`assignee` unchanged. Raises UsageError for an empty or unstorable name."""
    if not assignee.strip():
        raise UsageError("A claim needs an assignee.", hint="Say who takes the bead: --assignee NAME.")
    _check_texts({"assignee": assignee}, {})
    return assignee


def check_word(word: str) -> None:
    """Types and labels must be single words, so that they can be listed, matched and typed. Raises UsageError."""
    if not word or len(word) > LONGEST_WORD or not _storable(word) or any(_breaks_a_word(sign) for sign in word):
        raise UsageError(
            f"`{word!a}` is not a label or type.", hint="Use one word without spaces, such as `pool:coder`."
        )


def _check_title(title: str) -> None:
    if not title.strip():
        raise UsageError("A bead needs a title.", hint="Say in a few words what is to be done.")
    if len(title) > LONGEST_TITLE:
        raise UsageError(
            f"A title has at most {LONGEST_TITLE} characters; this one has {len(title)}.",
            hint="Put the rest into the description.",
        )
    _check_texts({"title": title}, {})


def _check_texts(texts: Mapping[str, str | None], metadata: Mapping[str, str | None]) -> None:
    if any(not key.strip() for key in metadata):
        raise UsageError("A key of the metadata is empty.", hint="Name it, as in KEY=VALUE.")
    named = {**texts, **{f"metadata.{key}": f"{key}{value or ''}" for key, value in metadata.items()}}
    for name, text in named.items():
        if text is not None and not _storable(text):
            raise UsageError(
                f"The {name!a} holds a character that cannot be kept.", hint="Leave out NUL; write text as UTF-8."
            )
        if text is not None and len(text) > LONGEST_TEXT:
            raise UsageError(
                f"The {name!a} has {len(text)} characters; {LONGEST_TEXT} is the most.",
                hint="Keep long texts in a file.",
            )


def _storable(text: str) -> bool:
    """PostgreSQL text cannot contain NUL, and UTF-8 cannot encode surrogates."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def _breaks_a_word(sign: str) -> bool:
    return sign.isspace() or ord(sign) < 32
