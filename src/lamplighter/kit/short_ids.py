"""The short form of ids for people: the last characters, which every command takes back."""

import re

LONG_ID = re.compile(r"[a-z]+_[0-9a-z]{26}")
"""Ids made by the program: the kind, ten digits of time, sixteen of chance."""
_WITHIN = re.compile(r"\b[a-z]+_[0-9a-z]{26}\b")
SHORT = 6


def shortened(text: str, size: int = SHORT) -> str:
    """`text` with every long id in it in its short form."""
    return _WITHIN.sub(lambda found: found[0][-size:], text) if "_" in text else text
