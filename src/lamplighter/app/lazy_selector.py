"""Loads the selector when a run first needs one: most cities never ask a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamplighter.domain.runs.target import Candidate, Selection


class LazySelector:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    async def select(self, payload: Mapping[str, Any], candidates: Sequence[Candidate]) -> Selection:
        from lamplighter.adapters.models.selector import ModelSelector, endpoint_of

        return await ModelSelector(endpoint_of(self._env)).select(payload, candidates)
