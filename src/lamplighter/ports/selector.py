"""The selector of a configuration for a run whose automation leaves the choice open."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lamplighter.domain.runs.target import Candidate, Selection


class Selector(Protocol):
    async def select(self, payload: Mapping[str, Any], candidates: Sequence[Candidate]) -> Selection:
        """`payload` is the run's enrichment. Never raises: a failure is returned as a Selection with its reason."""
        ...
