"""Names and contents of a run's artifacts."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from lamplighter.kit.errors import UsageError

JSON_TYPE = "application/json"
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
LONGEST_KEY = 500
_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


class Artifact(StrEnum):
    ENRICHMENT = "enrichment"
    COMPLETION = "completion"
    PLAN = "plan"

    @property
    def content_type(self) -> str:
        return MARKDOWN_TYPE if self is Artifact.PLAN else JSON_TYPE


class KeyRefused(UsageError):
    def __init__(self, key: str) -> None:
        super().__init__(
            f"`{key[:100]}` cannot name an artifact.",
            hint="Use letters, digits and _ . @ + - in steps joined by slashes.",
        )


def prefix_of(run: str) -> str:
    return f"runs/{run}/"


def key_of(run: str, artifact: Artifact) -> str:
    """The key of an artifact: the same for every try, so that a repeated write replaces the earlier one."""
    return f"{prefix_of(run)}{artifact}.{'md' if artifact is Artifact.PLAN else 'json'}"


def written(payload: Mapping[str, Any]) -> bytes:
    """The payload as readable JSON; equal payloads give equal bytes."""
    return (json.dumps(payload, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def checked_key(key: str) -> str:
    """`key` unchanged. Raises KeyRefused if a directory, bucket or URL would read it differently, or if it leads up."""
    if len(key) > LONGEST_KEY or not all(_STEP.fullmatch(step) for step in key.split("/")):
        raise KeyRefused(key)
    return key


def checked_prefix(prefix: str) -> str:
    """`prefix` unchanged. Raises KeyRefused unless it is empty, or a valid key followed by a slash."""
    if prefix and not prefix.endswith("/"):
        raise KeyRefused(prefix)
    if prefix:
        checked_key(prefix.removesuffix("/"))
    return prefix
