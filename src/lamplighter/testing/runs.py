"""A completion service in memory: the domain's own judgement on runs that a test puts there."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lamplighter.domain.access import Caller, Verb, require, require_own_run
from lamplighter.domain.runs.completion import Accept, Completion, Judgement, Late, Recorded, error_of, judge
from lamplighter.domain.runs.model import By, Mover, Run, move
from lamplighter.kit.clock import Clock
from lamplighter.ports.runs import Completed, RunUnknown


class MemoryRuns:
    """`said` holds every completion that reached it, `late` those that came too late."""

    def __init__(self, clock: Clock, *runs: Run) -> None:
        self._clock = clock
        self.runs = {run.id: run for run in runs}
        self.recorded: dict[str, Recorded] = {}
        self.said: list[Completion] = []
        self.late: list[Completion] = []
        self.arrived = asyncio.Event()

    async def complete(self, completion: Completion, *, caller: Caller, session: str | None = None) -> Completed:
        require_own_run(caller, completion.run)
        run = self._run(completion.run)
        self.said.append(completion)
        self.arrived.set()
        known = self.recorded.get(run.id)
        answer = judge(run, known, completion, session=session)
        self._keep(run, completion, answer, caller)
        error = error_of(answer)
        if error is not None:
            raise error
        return Completed(run.id, self.runs[run.id].state, replayed=not isinstance(answer, Accept))

    async def run(self, run: str, *, caller: Caller) -> Mapping[str, Any]:
        require(caller, Verb.READ)
        found = self._run(run)
        return {"id": found.id, "automation": found.automation, "state": found.state.value, "summary": found.summary}

    def _run(self, run: str) -> Run:
        if run not in self.runs:
            raise RunUnknown(run)
        return self.runs[run]

    def _keep(self, run: Run, completion: Completion, answer: Judgement, caller: Caller) -> None:
        match answer:
            case Accept(to):
                after = move(run, to, By(Mover.COMPLETION, caller.actor), self._clock.now(), reason=to.value).run
                self.runs[run.id] = replace(after, completion_id=completion.completion_id, summary=completion.summary)
                self.recorded[run.id] = Recorded(completion.completion_id, completion.content)
            case Late():
                self.late.append(completion)
            case _:
                return


class MemoryAutomations:
    def __init__(self) -> None:
        self.made: list[Mapping[str, Any]] = []

    async def automations(self, *, caller: Caller) -> Sequence[Mapping[str, Any]]:
        require(caller, Verb.READ)
        return self.made

    async def create(self, definition: Mapping[str, Any], *, caller: Caller) -> Mapping[str, Any]:
        require(caller, Verb.WRITE)
        self.made.append(dict(definition))
        return self.made[-1]
