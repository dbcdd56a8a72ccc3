"""Writes TOML text. It loads what it needs when it is used: that takes long, and few commands write any."""

from collections.abc import Mapping
from typing import Any


def dumped(tree: Mapping[str, Any]) -> str:
    import tomlkit

    return tomlkit.dumps(tree)
