"""Whole numbers in addresses and forms."""

LONGEST = 15
"""So many digits are more than any count here has, and fewer than a database takes."""


def whole(text: str) -> int | None:
    """The number that a text of ASCII digits says; None for any other text, and for one that is absurdly long."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= LONGEST else None
