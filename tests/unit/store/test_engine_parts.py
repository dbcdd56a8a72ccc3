"""The parts of the store's engine on their own: batches, held back writes, answers, scopes, the fair lock."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lamplighter.kit.limits import TimeLimit
from lamplighter.store.engine.batching import Refused, batched, batches, one, run_batch
from lamplighter.store.engine.deferred import DeferredWrites, Write, as_json
from lamplighter.store.engine.fair_lock import FairLock
from lamplighter.store.engine.hints import MOST, Hints
from lamplighter.store.engine.jobs import Answer, Job, Outcome, deliver
from lamplighter.store.engine.scope import Scopes

LIMIT = 120.0
INSERT = Write("INSERT INTO t SELECT :id {each}")
UPDATE = Write("UPDATE t SET n = :n {each} WHERE id = :id", whole="n", key="id")
FIRST = Write("INSERT INTO parents SELECT :id {each}", first=True)


class Bare:
    """The least that is a scope."""

    def __init__(self, db: Any, city: str) -> None:
        self.db, self.city = db, city
        self.wakes: set[str] = set()

    def wake(self, topic: str) -> None:
        self.wakes.add(topic)

    def take_wakes(self) -> frozenset[str]:
        taken = frozenset(self.wakes)
        self.wakes.clear()
        return taken


def the_number(number: int) -> int:
    return number


def double_many(scope: Bare, numbers: Sequence[int]) -> list[int | Refused]:
    return [_double(scope, number) for number in numbers]


@batched(the_number, double_many)
def double(scope: Bare, number: int) -> int:
    return one(double_many(scope, [number]))


def _double(_scope: Bare, number: int) -> int | Refused:
    return Refused(ValueError("negative")) if number < 0 else number * 2


def plain(_scope: Bare, number: int) -> int:
    return number


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def job(fn: Any, number: int, loop: asyncio.AbstractEventLoop, city: str = "one") -> Job:
    return Job(city, fn, (number,), {}, Answer(loop=loop))


class TestBatches:
    def test_jobs_of_one_function_and_one_city_are_grouped_and_all_others_are_alone(
        self, loop: asyncio.AbstractEventLoop
    ) -> None:
        jobs = [job(double, 1, loop), job(plain, 2, loop), job(double, 3, loop, "other"), job(double, 4, loop),
                job(plain, 5, loop)]  # fmt: skip
        assert batches(jobs) == [[jobs[0], jobs[3]], [jobs[1]], [jobs[2]], [jobs[4]]]

    def test_each_call_of_a_batch_has_its_own_outcome(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = [job(double, number, loop) for number in (1, -1, 3)]
        outcomes = run_batch(Bare(None, "one"), jobs)
        assert [outcome.value for outcome in outcomes] == [2, None, 6]
        assert [type(outcome.error) for outcome in outcomes] == [type(None), ValueError, type(None)]

    def test_a_call_alone_raises_what_it_was_refused_with(self) -> None:
        assert double(Bare(None, "one"), 2) == 4
        with pytest.raises(ValueError, match="negative"):
            double(Bare(None, "one"), -2)

    def test_a_function_for_many_that_answers_too_few_is_a_bug_that_is_noticed(
        self, loop: asyncio.AbstractEventLoop
    ) -> None:
        @batched(the_number, lambda _scope, _numbers: [1])
        def short(_scope: Bare, number: int) -> int:
            return number

        with pytest.raises(ValueError, match="zip"):
            run_batch(Bare(None, "one"), [job(short, 1, loop), job(short, 2, loop)])

    def test_the_arguments_of_each_call_become_one_request(self, loop: asyncio.AbstractEventLoop) -> None:
        seen: list[tuple[int, str]] = []

        def ask(number: int, *, word: str = "none") -> tuple[int, str]:
            return number, word

        def many(_scope: Bare, asked: Sequence[tuple[int, str]]) -> list[None]:
            seen.extend(asked)
            return [None for _ in asked]

        @batched(ask, many)
        def noted(_scope: Bare, number: int, *, word: str = "none") -> None: ...

        jobs = [Job("one", noted, (1,), {"word": "a"}, Answer(loop=loop)), job(noted, 2, loop)]
        run_batch(Bare(None, "one"), jobs)
        assert seen == [(1, "a"), (2, "none")]


class TestHeldBackWrites:
    def test_they_are_taken_by_statement_and_city_those_that_others_refer_to_first(self) -> None:
        held = DeferredWrites()
        for write, city, row in (
            (INSERT, "one", 1), (INSERT, "other", 2), (FIRST, "other", 3), (INSERT, "one", 4), (FIRST, "one", 5),
        ):  # fmt: skip
            assert held.add(write, city, {"id": row})
        assert [(one.write, one.city, [row["id"] for row in one.rows]) for one in held.take()] == [
            (FIRST, "other", [3]), (FIRST, "one", [5]), (INSERT, "one", [1, 4]), (INSERT, "other", [2]),
        ]  # fmt: skip
        assert not held

    def test_a_second_write_of_one_row_of_one_city_has_to_wait(self) -> None:
        held = DeferredWrites()
        assert held.add(UPDATE, "one", {"id": "a", "n": 1})
        assert held.add(UPDATE, "other", {"id": "a", "n": 1})
        assert held.add(UPDATE, "one", {"id": "b", "n": 1})
        assert not held.add(UPDATE, "one", {"id": "a", "n": 2})
        held.take()
        assert held.add(UPDATE, "one", {"id": "a", "n": 2})

    def test_a_statement_without_a_place_for_many_rows_is_refused_at_once(self) -> None:
        with pytest.raises(ValueError, match="each"):
            Write("INSERT INTO t VALUES (:id)")

    def test_values_for_json_columns_are_encoded_once(self) -> None:
        write = Write("INSERT INTO t SELECT :id, :data, :other {each}", json="data other")
        params = {"id": 1, "data": as_json({"a": [1]}), "other": as_json(None)}
        assert write.encoded(params) == {"id": 1, "data": '{"a":[1]}', "other": None}
        assert json.loads(as_json("text")) == "text"


class TestAnswers:
    async def test_outcomes_of_a_thread_reach_those_who_wait(self) -> None:
        jobs = [Job("one", plain, (n,), {}, Answer(loop=asyncio.get_running_loop())) for n in range(2)]
        outcomes = [Outcome(jobs[0], value="value"), Outcome(jobs[1], error=KeyError("lost"))]
        threading.Thread(target=deliver, args=(outcomes,)).start()
        async with TimeLimit(LIMIT):
            assert await jobs[0].answer == "value"
            with pytest.raises(KeyError):
                await jobs[1].answer

    async def test_a_caller_that_is_cancelled_learns_it_only_once_the_outcome_is_known(self) -> None:
        answer = Answer(loop=asyncio.get_running_loop())

        async def wait() -> Any:
            return await answer

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        deliver([Outcome(Job("one", plain, (1,), {}, answer), value=1)])
        async with TimeLimit(LIMIT):
            with pytest.raises(asyncio.CancelledError):
                await task

    def test_an_answer_for_a_loop_that_is_closed_is_dropped(self, loop: asyncio.AbstractEventLoop) -> None:
        late = job(plain, 1, loop)
        loop.close()
        deliver([Outcome(late, value=1)])
        assert not late.answer.done()


class TestHints:
    def test_what_was_kept_is_there_until_there_is_too_much(self) -> None:
        hints = Hints()
        assert hints.get("a") is None
        hints.keep({"a": True, "b": False})
        assert (hints.get("a"), hints.get("b")) == (True, False)
        hints.keep(dict.fromkeys(range(MOST), True))
        assert (hints.get("a"), hints.get(1)) == (None, True)


class TestScopes:
    def test_each_city_has_its_own_which_is_kept(self) -> None:
        scopes = Scopes(None, Bare)  # type: ignore[arg-type]  # no statement is sent here
        first = scopes.of("one")
        assert scopes.of("other") is not first
        assert scopes.of("one") is first
        assert (first.city, scopes.of("other").city) == ("one", "other")

    def test_wake_ups_of_a_function_that_failed_are_forgotten_before_the_next(self) -> None:
        scopes = Scopes(None, Bare)  # type: ignore[arg-type]  # as above
        scopes.of("one").wake("lost")
        assert scopes.of("one").take_wakes() == frozenset()


HOLDER = """
import sys
from pathlib import Path
from lamplighter.store.engine.fair_lock import FairLock

lock = FairLock(Path(sys.argv[1]))
assert lock.enter(at_most=30)
print("in", flush=True)
sys.stdin.readline()
lock.leave()
print("out", flush=True)
sys.stdin.readline()
"""


class TestFairLock:
    @pytest.fixture
    def database(self, tmp_path: Path) -> Path:
        return tmp_path / "lamp.db"

    @pytest.fixture
    def holder(self, database: Path) -> Iterator["subprocess.Popen[str]"]:
        """Another process, which has the lock."""
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "in\n"
            yield process
        finally:
            process.kill()
            process.communicate()

    def test_it_is_refused_while_another_process_has_it_and_given_when_that_leaves(
        self, database: Path, holder: "subprocess.Popen[str]"
    ) -> None:
        lock = FairLock(database)
        try:
            assert not lock.enter(at_most=0.05)
            assert holder.stdin is not None
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert lock.enter(at_most=LIMIT)
            lock.leave()
        finally:
            lock.close()

    def test_the_death_of_its_holder_frees_it(self, database: Path, holder: "subprocess.Popen[str]") -> None:
        lock = FairLock(database)
        try:
            holder.kill()
            assert lock.enter(at_most=LIMIT)
        finally:
            lock.close()

    def test_a_writer_that_has_just_finished_comes_after_one_that_waits(self, database: Path) -> None:
        busy, waiting = FairLock(database), FairLock(database)
        order: list[str] = []
        try:
            assert busy.enter(at_most=LIMIT)

            def wait() -> None:
                assert waiting.enter(at_most=LIMIT)
                order.append("waited")
                waiting.leave()

            thread = threading.Thread(target=wait)
            thread.start()
            _until_turn_is_taken(database)
            busy.leave()
            assert busy.enter(at_most=LIMIT)
            order.append("again")
            busy.leave()
            thread.join(LIMIT)
            assert order == ["waited", "again"]
        finally:
            busy.close()
            waiting.close()

    def test_a_turn_given_up_is_left_to_others(self, database: Path, holder: "subprocess.Popen[str]") -> None:
        impatient, patient = FairLock(database), FairLock(database)
        try:
            assert not impatient.enter(at_most=0.02)
            holder.kill()
            assert patient.enter(at_most=LIMIT)
        finally:
            impatient.close()
            patient.close()

    def test_its_files_are_the_owners_only(self, database: Path) -> None:
        FairLock(database).close()
        for name in ("lamp.db-turn", "lamp.db-writing"):
            assert (database.parent / name).stat().st_mode & 0o777 == 0o600


def _until_turn_is_taken(database: Path) -> None:
    import fcntl

    fd = os.open(database.with_name("lamp.db-turn"), os.O_RDWR)
    pause = threading.Event()
    try:
        for _ in range(3000):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(fd, fcntl.LOCK_UN)
            pause.wait(0.01)
        raise AssertionError("nobody takes a turn")
    finally:
        os.close(fd)


def test_a_write_for_many_rows_is_the_same_statement_with_the_rows_given_as_a_list() -> None:
    """Told by SQLite, which reads the statement for one row; that for many is PostgreSQL's (tests/contract)."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (id TEXT)")
    connection.execute(INSERT.replace("{each}", ""), {"id": "a"})
    assert connection.execute("SELECT id FROM t").fetchall() == [("a",)]
    connection.close()
    many = UPDATE.for_many()
    assert "json_to_recordset(CAST(:rows AS json)) AS listed (n bigint, id text)" in many
    assert "SET n = given.given_n" in many
