"""The work of this process on one run: its state, the messages for it, and what each kind of run does in a step."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Protocol

from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.runs.job import Job, Message
from lamplighter.domain.runs.model import Run
from lamplighter.services.runs.ending import Ending

PRECHECK = ".precheck"
"""Ends the key under which the command runner keeps a run's precheck."""

SETUP = ".setup"
TEARDOWN = ".teardown"
MOST_REPEATS = 5
"""How often a command that only looks or prepares is run again when nobody saw how it ended."""


def verify_key(run: str, number: int) -> str:
    """The key under which the command runner keeps the command that verifies a run's claim of that round."""
    return f"{run}.verify{number}"


def run_of(key: str) -> str:
    """The run to which a key of the command runner belongs."""
    return key.partition(".")[0]


@dataclass(eq=False)
class Work:
    row: Run
    trigger: dict[str, Any] | None = None
    """The trigger's data for the action, if already known."""
    adopted: bool = False
    """Whether another process held the run before, which was taken for dead."""
    job: Job = field(default_factory=Job)
    cause: Message | None = None
    """The message that ended the work; set once the job is finishing."""
    plan: RunPlan | None = None
    """How an agent run is carried out, once that is known."""
    ending: Ending | None = None
    """How the run ends, if this process is to record it."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by each message, and when the run's session ends."""
    inbox: deque[Message] = field(default_factory=deque)
    task: "asyncio.Task[None] | None" = None
    busy: bool = True
    """Whether the work counts as busy; see `Slots`."""
    failures: int = 0
    """How often its processes could not be stopped."""
    _interruptible: bool = False

    @property
    def run(self) -> str:
        return self.row.id

    def tell(self, message: Message) -> None:
        """Put a message into the inbox; a step that waits for something else is interrupted, once."""
        self.inbox.append(message)
        self.wake.set()
        if self._interruptible and self.task is not None:
            self._interruptible = False
            self.task.cancel()

    async def interruptible(self, step: Awaitable[Message]) -> Message:
        """The message that the step comes to, or the one that arrives meanwhile and interrupts it.

        A cancellation without a message goes on: the process is being torn down.
        """
        self._interruptible = True
        try:
            return await step
        except asyncio.CancelledError:
            if self._interruptible or not self.inbox:
                raise
            assert self.task is not None  # noqa: S101  whoever cancelled it has it
            self.task.uncancel()
            return self.inbox.popleft()
        finally:
            self._interruptible = False


class Steps(Protocol):
    """What a kind of run does in each step. `start` and `follow` set `work.ending` before they answer Over."""

    async def start(self, work: Work) -> Message: ...

    async def follow(self, work: Work) -> Message: ...

    async def verify(self, work: Work) -> Message: ...

    async def last_words(self, work: Work) -> Message: ...

    async def stop(self, work: Work) -> None: ...

    async def release(self, work: Work) -> None: ...
