"""The known name a mistyped one was probably meant to be."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    import difflib  # imported here because only mistakes need it, and it would slow down every command

    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    if not close:  # letters that changed places
        close = [name for name in folded if len(name) > 2 and sorted(name) == sorted(word.casefold())]
    return folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean `provider`?`, or nothing when no known name is near."""
    name = nearest(word, known)
    return f"; did you mean `{name}`?" if name else ""


def full_stop(word: str, known: Iterable[str]) -> str:
    """How a sentence about an unknown name ends: with the nearest known one, or just with a full stop."""
    return did_you_mean(word, known) or "."
