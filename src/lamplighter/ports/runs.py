"""The services that surfaces call for runs and automations; implementations are injected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lamplighter.domain.access import Caller
from lamplighter.domain.runs.completion import Completion
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.errors import NotFound


class RunUnknown(NotFound):
    def __init__(self, run: str) -> None:
        super().__init__(f"There is no run {run}.", hint="`lamp run list` shows those there are.")


@dataclass(frozen=True)
class Completed:
    """`replayed`: the same completion was already on record, and nothing was written."""

    run: str
    state: RunState
    replayed: bool = False


class CompletionService(Protocol):
    async def complete(self, completion: Completion, *, caller: Caller, session: str | None = None) -> Completed:
        """End the run as its agent reports. May be repeated with the same content.

        Raises RunUnknown; Forbidden for a caller of another run; CompletionRefused for a completion that contradicts
        the run's record.
        """
        ...

    async def run(self, run: str, *, caller: Caller) -> Mapping[str, Any]:
        """The run as JSON, in the shape that every surface shows, with its timeline. Raises RunUnknown, Forbidden."""
        ...


class AutomationService(Protocol):
    async def automations(self, *, caller: Caller) -> Sequence[Mapping[str, Any]]: ...

    async def create(self, definition: Mapping[str, Any], *, caller: Caller) -> Mapping[str, Any]:
        """Store a definition, disabled until a person enables it. Raises UsageError with every problem, Conflict."""
        ...
