"""The job of an agent run: how each message ends it, and that its session is stopped and let go of once."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from loops_city import CITY, WITHIN, Loops

from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.domain.access import of_run
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.model import Grade, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.ports.sessions import SessionAlive
from lamplighter.services import owners
from lamplighter.services.operation import judged
from lamplighter.services.runs import review
from lamplighter.services.runs.operations import COMPLETE_RUN, completed
from lamplighter.store.owners import Owner
from lamplighter.store.url import SqliteUrl


class Sessions(FakeProvider):
    """Sessions whose look can fail."""

    trouble: Exception | None = None
    breaks: bool = False
    looks: int = 0

    async def see(self, name: SessionName) -> Seen | None:
        self.looks += 1
        if self.breaks:
            self.breaks = False
            raise RuntimeError("a bug")
        if self.trouble is not None:
            raise self.trouble
        return await super().see(name)

    def break_once(self) -> None:
        """The next look meets a bug; the one after it works again."""
        self.breaks = True

    def stops(self, run: str) -> int:
        return sum(call[:2] == ("stop", run) for call in self.calls)


@pytest.fixture
def sessions() -> Sessions:
    clock = SystemClock()
    return Sessions(clock, IdSource(clock), city=CITY)


@pytest.fixture
async def loops(sqlite_place: SqliteUrl, tmp_path: Path, sessions: Sessions) -> AsyncIterator[Loops]:
    found = Loops(sqlite_place, tmp_path, SystemClock())
    found.sessions = sessions
    found.parts = found.build("own_first")
    await found.store.transact(lambda tx: tx.cities.ensure("loops", found.clock.now()))
    for name in ("own_first", "own_second"):
        me = Owner(name, "controller", "here", os.getpid(), found.clock.now())
        await found.store.transact(lambda tx, me=me: tx.owners.register(me))
    await found.add("agent", agent={"prompt": "true", "preset": "shell"})
    yield found
    sessions.trouble = None
    sessions.no_stop.clear()
    await found.parts.worker.stop()
    await found.parts.close()
    await found.store.close()


async def followed(loops: Loops, sessions: Sessions, name: str = "agent") -> tuple[str, "asyncio.Task[None]"]:
    """A run whose session is up and looked at again and again, and the task that works on it."""
    run = await loops.fire(name)

    async def up() -> bool:
        await loops.parts.dispatcher.tick()
        return (await loops.get(run)).session_id is not None

    await loops.until(up)
    looks = sessions.looks

    async def looked_at() -> bool:
        return sessions.looks > looks + 1

    await loops.until(looked_at)
    (task,) = loops.parts.worker.tasks.running
    return run, task


async def done(task: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(WITHIN):
        await task


async def complete(loops: Loops, run: str) -> None:
    said = {"run_id": run, "completion_id": completion_id(run), "outcome": "succeeded", "summary_markdown": "Lit."}
    ctx = changed(loops.context, actor=of_run(run))
    completed(await loops.store.transact(judged, COMPLETE_RUN, parse(said), ctx))


async def test_a_completed_run_ends_by_a_message_and_nothing_is_cancelled(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    await complete(loops, run)
    await loops.parts.worker.tick()
    assert not task.done(), "its program may have its last words"
    assert sessions.stops(run) == 0
    sessions.end(SessionName(run))
    await done(task)
    assert task.cancelling() == 0
    assert sessions.stops(run) == 1
    assert not loops.parts.worker.holds(run)
    assert (await loops.get(run)).state is RunState.SUCCEEDED
    assert list((loops.root / ".gc" / "runs").iterdir()) == []


async def test_a_stop_of_the_city_cuts_the_last_words_short(loops: Loops, sessions: Sessions) -> None:
    run, _task = await followed(loops, sessions)
    await complete(loops, run)
    await loops.parts.worker.tick()
    async with asyncio.timeout(5):  # well below LAST_WORDS
        await loops.parts.worker.stop()
    assert sessions.stops(run) == 1
    assert (await loops.get(run)).state is RunState.SUCCEEDED


async def test_a_canceled_run_is_stopped_once(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    await loops.parts.worker.tick()
    await loops.parts.worker.tick()
    await done(task)
    assert sessions.stops(run) == 1
    assert await sessions.seen() == {}


async def test_a_program_that_ends_by_itself_is_let_go_of_once(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    sessions.end(SessionName(run), 3)
    await done(task)
    row = await loops.get(run)
    assert (row.state, row.reason, row.exit_code) == (RunState.FAILED, "no_completion", 3)
    assert sessions.stops(run) == 1


async def test_a_stop_of_the_city_ends_the_session_once_and_then_the_run(loops: Loops, sessions: Sessions) -> None:
    run, _task = await followed(loops, sessions)
    sessions.say(SessionName(run), "half way")
    await loops.parts.worker.stop()
    row = await loops.get(run)
    assert (row.state, row.reason, row.output_tail) == (RunState.FAILED, "interrupted", "half way")
    assert sessions.stops(run) == 1


async def test_a_session_that_cannot_be_stopped_leaves_its_run_to_the_next_process(
    loops: Loops, sessions: Sessions
) -> None:
    run, _task = await followed(loops, sessions)
    sessions.no_stop[SessionName(run)] = "it clings to life"
    await loops.parts.worker.stop()
    assert (await loops.get(run)).state is RunState.RUNNING
    assert not loops.parts.worker.holds(run)


async def test_a_run_that_another_process_took_over_keeps_its_session(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    await loops.store.transact(owners.void, "own_first", ctx=loops.context)
    await loops.store.transact(review.adopt, review.Worker("own_second", "here"), loops.clock.now())
    await loops.parts.worker.tick()
    await done(task)
    assert sessions.stops(run) == 0
    row = await loops.get(run)
    assert (row.state, row.lease.owner) == (RunState.RUNNING, "own_second")


async def test_a_process_that_lost_its_run_during_the_start_cannot_end_it(loops: Loops, sessions: Sessions) -> None:
    start = sessions.start

    async def taken_over_meanwhile(spec: SessionSpec) -> Seen:
        seen = await start(spec)
        await loops.store.transact(owners.void, "own_first", ctx=loops.context)
        await loops.store.transact(review.adopt, review.Worker("own_second", "here"), loops.clock.now())
        sessions.break_once()
        return seen

    sessions.start = taken_over_meanwhile  # type: ignore[method-assign]
    run = await loops.fire("agent")

    async def begun_and_done() -> bool:
        await loops.parts.dispatcher.tick()
        return sessions.stops(run) == 1 and not loops.parts.worker.holds(run)

    await loops.until(begun_and_done)
    row = await loops.get(run)
    assert (row.state, row.lease.owner) == (RunState.RUNNING, "own_second")


async def test_a_bug_while_following_fails_the_run_and_stops_its_session_once(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    sessions.break_once()
    await done(task)
    row = await loops.get(run)
    assert (row.state, row.reason, row.error) == (RunState.FAILED, "interrupted", "RuntimeError: a bug")
    assert sessions.stops(run) == 1


async def test_while_nobody_can_look_the_run_waits_and_still_hears_messages(loops: Loops, sessions: Sessions) -> None:
    run, task = await followed(loops, sessions)
    sessions.trouble = Unavailable("Nobody can look now.")
    looks = sessions.looks

    async def tried_again() -> bool:
        return sessions.looks > looks + 2

    await loops.until(tried_again)
    assert (await loops.get(run)).state is RunState.RUNNING
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    sessions.trouble = None
    await loops.parts.worker.tick()
    await done(task)
    assert sessions.stops(run) == 1


async def test_every_slot_is_free_again_however_a_job_ended(loops: Loops, sessions: Sessions) -> None:
    room = loops.parts.worker.room
    run, task = await followed(loops, sessions)
    assert loops.parts.worker.room == room - 1
    await loops.store.transact(lambda tx: tx.runs.delete([run]))
    await loops.parts.worker.tick()
    await done(task)
    assert loops.parts.worker.room == room
    assert sessions.stops(run) == 1


async def test_a_claim_that_waits_when_its_program_is_gone_is_verified_and_not_failed(
    loops: Loops, sessions: Sessions
) -> None:
    await loops.add("strict", agent={"prompt": "true", "preset": "shell"}, verify="test -d web")
    run, task = await followed(loops, sessions, "strict")
    await complete(loops, run)
    assert (await loops.get(run)).pending == completion_id(run)
    sessions.end(SessionName(run))  # no message tells of the claim: only the run itself says that it waits
    await done(task)
    row = await loops.get(run)
    assert (row.state, row.grade, row.pending) == (RunState.SUCCEEDED, Grade.VERIFIED, None)
    assert not loops.parts.worker.holds(run)


async def test_a_run_canceled_before_its_session_is_on_record_has_no_last_words(
    loops: Loops, sessions: Sessions
) -> None:
    start = sessions.start

    async def canceled_meanwhile(spec: SessionSpec) -> Seen:
        seen = await start(spec)
        await loops.store.transact(review.cancel, str(spec.name), ctx=loops.context)
        return seen

    sessions.start = canceled_meanwhile  # type: ignore[method-assign]
    run = await loops.fire("agent")

    async def stopped() -> bool:
        await loops.parts.dispatcher.tick()
        return sessions.stops(run) == 1 and not loops.parts.worker.holds(run)

    async with asyncio.timeout(5):  # well below LAST_WORDS
        await loops.until(stopped)
    assert (await loops.get(run)).state is RunState.CANCELED


async def test_a_session_that_was_started_before_is_taken_up(loops: Loops, sessions: Sessions) -> None:
    start = sessions.start

    async def there_already(spec: SessionSpec) -> Seen:
        await start(spec)
        raise SessionAlive(spec.name)

    sessions.start = there_already  # type: ignore[method-assign]
    run, _task = await followed(loops, sessions)
    assert (await loops.get(run)).state is RunState.RUNNING
    assert len(await sessions.seen()) == 1


async def test_a_session_that_only_seems_to_be_there_fails_its_run(loops: Loops, sessions: Sessions) -> None:
    async def gone_again(spec: SessionSpec) -> Seen:
        raise SessionAlive(spec.name)

    sessions.start = gone_again  # type: ignore[method-assign]
    row = await loops.work("agent")
    assert (row.state, row.reason) == (RunState.FAILED, "not_started")
