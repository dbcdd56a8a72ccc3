"""What is told about an answer to a question of a run."""

from collections.abc import Sequence


def not_a_choice(choices: Sequence[str], answer: str) -> str | None:
    """That the answer is none of those that the run proposed; None if it is one, or none was proposed."""
    if not choices or _plain(answer) in map(_plain, choices):
        return None
    return f"The answer is not one of the choices ({', '.join(choices)}); the run is told it as it is."


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
