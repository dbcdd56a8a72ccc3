"""What a step of an agent run comes to by what became of the run meanwhile: nothing is begun for one that is over."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.pipeline.agent_job import AgentSteps, _is_first_turn
from lamplighter.daemon.pipeline.agent_sessions import Begun
from lamplighter.daemon.pipeline.jobs import PRECHECK, SETUP, Work, verify_key
from lamplighter.domain.automations.model import AgentAction, Automation, Manual, Trigger
from lamplighter.domain.runs.job import (
    Began,
    Claimed,
    Message,
    NextRound,
    Over,
    RunEnded,
    TakenByPerson,
    ToldToStop,
)
from lamplighter.domain.runs.lease import Lease
from lamplighter.domain.runs.model import MESSAGE, Run, RunState
from lamplighter.domain.runs.verdict import Asks, Fail, SessionSeen, SessionState, TimeOut
from lamplighter.domain.runs.verify import Checked
from lamplighter.kit.records import changed
from lamplighter.services.automations import snapshots
from lamplighter.services.runs.ending import Ending
from lamplighter.testing.clock import FakeClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINE = Lease(7, "own_1", NOW)
SWEEP = Automation("sweep", AgentAction("Sweep."), (Trigger("1", Manual()),))
ROW = Run(
    "run_1", "sweep", RunState.RUNNING, NOW, session_id="ses_1", lease=MINE,
    definition=json.loads(snapshots.written(SWEEP)),
)  # fmt: skip
ENDED = changed(ROW, state=RunState.SUCCEEDED, ended_at=NOW)
TAKEN, CLAIMS = changed(ROW, taken_by="ada"), changed(ROW, pending="cmp_1")
GONE = SessionSeen(SessionState.ENDED, None, None, 1)
ENDING = Ending(RunState.FAILED, "no_completion")


class Agents:
    """The sessions of runs, as far as a step asks for them; `fresh` is what the store has of the run."""

    def __init__(self, fresh: Run | None = ROW) -> None:
        self.fresh = fresh
        self.begins: Begun | Ending = Begun(ROW, None)
        self.tells = self.told = ROW
        self.may_tell = False
        self.asked: list[str] = []
        self.known_row: Run | None = ROW
        self.is_to_be_told = False
        self.settled = ROW
        self.place: Any = SimpleNamespace(directory="/w", env={})
        self.clock = FakeClock()
        self.store = SimpleNamespace(read=self._read)
        self.places = SimpleNamespace(verified_at=self._verified_at)

    async def _read(self, _work: object) -> Run | None:
        return self.fresh

    def listen_for(self, run: str, _wake: asyncio.Event) -> None:
        self.asked.append(f"listen {run}")

    async def begin(self, _row: Run) -> Begun | Ending:
        self.asked.append("begin")
        return self.begins

    async def known(self, _row: Run) -> Any:
        return SimpleNamespace(row=self.known_row, is_to_be_told=self.is_to_be_told, reached=None)

    async def may_be_told(self, _row: Run, _plan: object, _judged: Fail) -> bool:
        return self.may_tell

    async def tell(self, _row: Run) -> Run:
        self.asked.append("tell")
        return self.tells

    async def ending(self, _row: Run, judged: object, _seen: object, _heard: object) -> Ending:
        self.asked.append(type(judged).__name__)
        return ENDING

    async def last_words(self, _run: str, _until: float, _wake: asyncio.Event) -> bool:
        return False

    async def stop(self, _run: str, **_more: object) -> str:
        self.asked.append("stop")
        return "bye"

    async def _verified_at(self, _row: Run) -> Any:
        return self.place

    async def settle(self, _row: Run, checked: Checked) -> Run:
        self.asked.append(f"settle {checked.exit_code}")
        return self.settled


class Commands:
    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.runner = SimpleNamespace(stop=self._stop)
        self.active = SimpleNamespace(
            city=SimpleNamespace(daemon=SimpleNamespace(shutdown_timeout=timedelta(seconds=1)))
        )
        self.checked_at: list[Any] = []

    async def _stop(self, key: str, *, grace: timedelta) -> None:
        assert grace == timedelta(0)
        self.stopped.append(key)

    async def check(self, _work: Work, _automation: object, directory: Any, _env: object) -> Checked:
        self.checked_at.append(directory)
        return Checked(0)


def steps(agents: Agents) -> AgentSteps:
    return AgentSteps(cast("Any", agents), cast("Any", Commands()))


@pytest.mark.parametrize(
    ("fresh", "message"),
    [
        (None, RunEnded),
        (ENDED, RunEnded),
        (changed(ENDED, taken_by="ada"), RunEnded),
        (TAKEN, TakenByPerson),
        (CLAIMS, Claimed),
    ],
    ids=["gone", "ended", "ended and taken", "taken", "claims"],
)
async def test_no_session_is_begun_for_a_run_that_is_over_taken_or_done(
    fresh: Run | None, message: type[Message]
) -> None:
    agents = Agents(fresh)
    assert isinstance(await steps(agents).start(Work(ROW)), message)
    assert agents.asked == ["listen run_1"]


@pytest.mark.parametrize(
    ("begins", "message"),
    [
        (Begun(changed(ROW, lease=Lease(9, "own_2", NOW)), None), Began), (Begun(ENDED, None), RunEnded),
        (Begun(CLAIMS, None), Claimed), (ENDING, Over),
    ],
    ids=["begun", "ended", "claims", "not begun"],
)  # fmt: skip
async def test_a_session_that_was_begun_is_followed_under_the_lease_that_was_claimed(
    begins: Begun | Ending, message: type[Message]
) -> None:
    agents, work = Agents(), Work(ROW)
    agents.begins = begins
    assert isinstance(await steps(agents).start(work), message)
    assert work.row.lease == MINE
    assert work.ending == (begins if isinstance(begins, Ending) else None)


@pytest.mark.parametrize(
    ("fresh", "judged", "may_tell", "message", "asked"),
    [
        (None, Fail("x", "y"), False, RunEnded, []),
        (ENDED, TimeOut("x"), False, RunEnded, []),
        (TAKEN, Fail("x", "y"), True, TakenByPerson, []),
        (CLAIMS, Fail("x", "y"), True, Claimed, []),
        (CLAIMS, Asks("may I?"), False, Claimed, []),
        (CLAIMS, TimeOut("x"), False, Over, ["TimeOut"]),
        (ROW, Fail("x", "y"), False, Over, ["Fail"]),
        (ROW, Fail("x", "y"), True, NextRound, ["tell"]),
        (ROW, TimeOut("x"), True, Over, ["TimeOut"]),
        (ROW, Asks("may I?"), True, Over, ["Asks"]),
    ],
)
async def test_a_judgement_ends_a_run_unless_something_else_became_of_it(
    fresh: Run | None, judged: Any, may_tell: bool, message: type[Message], asked: list[str]  # noqa: FBT001
) -> None:  # fmt: skip
    agents, work = Agents(fresh), Work(ROW)
    agents.may_tell = may_tell
    assert isinstance(await steps(agents)._judged(work, judged, GONE, None), message)
    assert agents.asked == asked
    assert work.ending == (ENDING if message is Over else None)


@pytest.mark.parametrize(
    ("after", "message"), [(ENDED, RunEnded), (CLAIMS, Claimed), (changed(ROW, round=2), NextRound)]
)
async def test_a_run_that_was_to_be_told_goes_on_unless_it_ended_or_claims_meanwhile(
    after: Run, message: type[Message]
) -> None:
    agents, work = Agents(), Work(ROW)
    agents.tells, agents.is_to_be_told = after, True
    assert isinstance(await steps(agents).follow(work), message)
    assert work.row == (changed(after, lease=MINE) if message is NextRound else ROW)


@pytest.mark.parametrize("told", [True, False])
async def test_what_a_person_has_taken_is_not_followed(*, told: bool) -> None:
    agents = Agents()
    agents.known_row, agents.is_to_be_told = TAKEN, told
    assert isinstance(await steps(agents).follow(Work(ROW)), TakenByPerson)
    assert agents.asked == []


@pytest.mark.parametrize(
    ("fresh", "place", "settled", "message", "asked"),
    [
        (None, None, ROW, RunEnded, []),
        (ENDED, None, ROW, RunEnded, []),
        (ROW, None, ROW, NextRound, []),
        (CLAIMS, None, ENDED, RunEnded, ["stop", "settle 0"]),
        (CLAIMS, None, changed(ROW, round=2), NextRound, ["stop", "settle 0"]),
        (CLAIMS, Checked(None, why="its worktree is gone"), ENDED, RunEnded, ["stop", "settle None"]),
    ],
)
async def test_a_claim_is_verified_once_its_program_is_stopped(
    fresh: Run | None, place: Checked | None, settled: Run, message: type[Message], asked: list[str]
) -> None:
    agents, work = Agents(fresh), Work(ROW)
    agents.settled, agents.place = settled, place or agents.place
    made = steps(agents)
    assert isinstance(await made.verify(work), message)
    assert agents.asked == asked
    commands = cast("Any", made.commands)
    assert commands.checked_at == (["/w"] if asked[-1:] == ["settle 0"] else [])
    if asked:
        assert work.row == changed(settled, lease=MINE)


@pytest.mark.parametrize(
    ("cause", "stopped", "ends"),
    [
        (Over(), False, None),
        (RunEnded(), True, None),
        (ToldToStop(), True, "interrupted"),
        (TakenByPerson(), True, None),
    ],
)
async def test_the_commands_of_a_run_are_stopped_with_it_unless_it_is_over_by_itself(
    cause: Message, stopped: bool, ends: str | None  # noqa: FBT001  a table
) -> None:  # fmt: skip
    agents, work = Agents(), Work(ROW)
    work.cause = cause
    made = steps(agents)
    await made.stop(work)
    keys = [f"run_1{PRECHECK}", f"run_1{SETUP}", verify_key("run_1", 1)]
    assert cast("Any", made.commands).stopped == (keys if stopped else [])
    assert agents.asked == ["stop"]
    assert (work.ending.reason if work.ending else None) == ends


@pytest.mark.parametrize(
    ("fields", "is_first"),
    [
        ({}, True), ({"round": 2}, False), ({"pending": "c"}, False), ({"given": {"text": ""}}, False),
        ({"trigger_kind": MESSAGE}, False), ({"continues": "run_0"}, False),
    ],
)  # fmt: skip
def test_a_precheck_belongs_to_the_first_turn_alone(fields: dict[str, Any], is_first: bool) -> None:  # noqa: FBT001
    assert _is_first_turn(changed(ROW, **fields)) is is_first
