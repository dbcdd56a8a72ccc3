"""Parses TOML text to a bounded depth, so that the readers of a file can walk its tree."""

import tomllib
from typing import Any

from lamplighter.kit.json_text import DEEPEST, is_too_deep


def parse(text: str) -> dict[str, Any]:
    """Raises ValueError for text that is not TOML, or that is nested too deeply."""
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        tree = None
    if tree is None or is_too_deep(tree):
        raise ValueError(f"it has more than {DEEPEST} arrays and tables within each other")
    return tree
