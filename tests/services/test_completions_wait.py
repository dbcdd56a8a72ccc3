"""A completion waits for a database that is away for a while, is recorded once, and is given up in the end."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from automation_city import OnlyStore

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.operations import DirectOperations
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import Verb, owner
from lamplighter.domain.runs.completion import Accept, Completion, parse
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.ids import IdSource
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Context
from lamplighter.services.operation import Kind, Operation
from lamplighter.services.runs.completing import Completed, Told
from lamplighter.services.runs.operations import COMPLETE_RUN
from lamplighter.store.errors import CommitUnknown, StoreRefused, StoreUnavailable
from lamplighter.testing.clock import START, FakeClock

RUN = f"run_{1:026}"
SAID = {"run_id": RUN, "completion_id": "done", "outcome": "succeeded", "summary_markdown": "Lit."}
AWAY = StoreUnavailable("The database is away.")


class AwayStore:
    """Fails in the ways given, one call each, and then records."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    def now(self) -> Told:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return Told(Accept(RunState.SUCCEEDED), Run(RUN, "nightly", RunState.SUCCEEDED, START))

    async def transact(self, _fn: Callable[..., Any], *_args: Any, **_kwargs: Any) -> Told:
        return self.now()


class AwayDirect(AwayStore):
    def transact(self, _fn: Callable[..., Any], *_args: Any, **_kwargs: Any) -> Told:  # type: ignore[override]
        return self.now()


def completion() -> Completion:
    return parse(SAID)


def service(store: AwayStore, clock: FakeClock, ids: IdSource, stopping: asyncio.Event | None = None) -> CityOperations:
    host = OnlyStore(store)  # type: ignore[arg-type]  # all it asks
    return CityOperations(host, clock, ids, _unconfigured, stopping=stopping or asyncio.Event())


def _unconfigured() -> Any:
    raise AssertionError("a completion needs no configuration")


async def given(service: CityOperations) -> Completed:
    return await service.do(COMPLETE_RUN, completion(), owner("tester"), surface="api")


@pytest.mark.parametrize("failure", [AWAY, CommitUnknown("postgresql:///town")])
async def test_it_is_tried_again_until_the_database_is_back(
    fake_clock: FakeClock, ids: IdSource, failure: Exception
) -> None:
    store = AwayStore(failure, failure)
    task = asyncio.create_task(given(service(store, fake_clock, ids)))
    for _ in range(100):  # turns of the loop: far more than two waits take
        fake_clock.advance(0.15)
        await asyncio.sleep(0)
    assert task.done()
    assert (await task).state is RunState.SUCCEEDED
    assert store.calls == 3


async def test_it_is_given_up_after_a_while(fake_clock: FakeClock, ids: IdSource) -> None:
    task = asyncio.create_task(given(service(AwayStore(*[AWAY] * 100), fake_clock, ids)))
    await fake_clock.sleepers()
    fake_clock.advance(20)
    with pytest.raises(StoreUnavailable):
        await task


async def test_it_is_given_up_at_once_when_the_server_stops(fake_clock: FakeClock, ids: IdSource) -> None:
    stopping = asyncio.Event()
    task = asyncio.create_task(given(service(AwayStore(*[AWAY] * 100), fake_clock, ids, stopping)))
    await fake_clock.sleepers()
    stopping.set()
    with pytest.raises(StoreUnavailable):
        await task


async def test_what_will_not_pass_is_told_at_once(fake_clock: FakeClock, ids: IdSource) -> None:
    store = AwayStore(StoreRefused("postgresql:///town", "no right"))
    with pytest.raises(StoreRefused):
        await given(service(store, fake_clock, ids))
    assert store.calls == 1


def test_a_command_repeats_it_where_nobody_knows_whether_it_took(tmp_path: Path) -> None:
    store = AwayDirect(CommitUnknown("postgresql:///town"))
    opened = OpenCity(
        Settings(tmp_path, None, "tester", None, {}), CityPaths(tmp_path), FakeClock(), IdSource(FakeClock())
    )
    opened.__dict__["store"] = store
    assert DirectOperations(opened).do(COMPLETE_RUN, completion()).state is RunState.SUCCEEDED
    assert store.calls == 2


async def test_what_is_done_outside_the_database_is_not_done_twice(fake_clock: FakeClock, ids: IdSource) -> None:
    calls = []

    async def nudge(_host: Any, ask: Completion, _ctx: Context) -> None:
        calls.append(ask.run)
        raise AWAY

    told: Operation[Completion, None] = Operation(
        "agent.told", Kind.EFFECT, Verb.CONTROL_AGENTS, Completion, type(None), nudge
    )
    with pytest.raises(StoreUnavailable):
        await service(AwayStore(), fake_clock, ids).do(told, completion(), owner("tester"), surface="api")
    assert calls == [RUN]
