"""Versions of what is read and edited, by content. It imports little, because commands that run often load it."""

from typing import Any

from lamplighter.kit.shapes import to_json


def version_of(*parts: Any) -> str:
    """A short text that differs when one of the parts does."""
    from lamplighter.kit.canonical import fingerprint

    return fingerprint([to_json(one) for one in parts])[:20]
