"""Counts in sentences, singular and plural."""


def counted(count: int, noun: str, many: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"
