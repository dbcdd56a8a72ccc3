"""Automations whose action names an agent of the city: it is told their runs, one after another, and reports them."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops
from test_agent_runs import finished, said, started

from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.adapters.sessions.voice import Voice
from lamplighter.daemon.automation_loops import Agents
from lamplighter.domain.access import Actor, Forbidden, Role
from lamplighter.domain.automations.references import unknown_names
from lamplighter.domain.city.model import Agent, City, Pool
from lamplighter.domain.city.variables import session_name
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.services.automations import references, snapshots
from lamplighter.services.runs.continuing import answer, send
from lamplighter.services.runs.operations import complete_run, completed
from lamplighter.services.runs.spoken import led_nowhere, no_conversation
from lamplighter.services.runs.taking import NothingToTake, take
from lamplighter.store.owners import Owner
from lamplighter.store.url import Place


class Town(Loops):
    """A city with the agent `mayor`, whose session hears what is typed."""

    def agents(self) -> Agents:
        clock = SystemClock()
        self.crew = FakeProvider(clock, IdSource(clock), city="loops")
        self.voice = Voice.of(
            self.root / ".gc" / "spoken", self.sessions, lambda: self.crew, clock=clock, ids=IdSource(clock)
        )
        return replace(super().agents(), sessions=self.voice)

    def with_agents(self) -> City:
        return replace(self.city, agents=(Agent(name="mayor"), Agent(name="crew", pool=Pool(max=3))))

    @property
    def mayor(self) -> SessionName:
        return SessionName(session_name(self.city, "mayor"))

    async def light(self) -> str:
        """Start the mayor; returns the id of its session."""
        return (await self.crew.start(SessionSpec(self.mayor, ("bot",), str(self.root)))).session_id

    @property
    def heard(self) -> list[str]:
        return [str(call[2]) for call in self.crew.calls if call[0] == "nudge"]

    def letter(self, run: str) -> str:
        return (self.root / ".gc" / "spoken" / run / "message.md").read_text()

    async def report(self, run: str, session: str, number: int = 1, **changes: Any) -> Any:
        """As the agent does, from the session of its own."""
        ctx = changed(self.context, actor=Actor("agent:mayor", "owner", session=session))
        words = said(run, completion_id=completion_id(run, number), **changes)
        return completed(await self.store.transact(complete_run, words, ctx))


@pytest.fixture
async def town(place: Place, tmp_path: Path) -> AsyncIterator[Town]:
    found = Town(place, tmp_path, SystemClock())
    found.city = found.with_agents()
    found.parts.active.swap(found.city, found.rules)
    await found.store.transact(lambda tx: tx.cities.ensure("loops", found.clock.now()))
    me = Owner("own_first", "controller", "here", os.getpid(), found.clock.now())
    await found.store.transact(lambda tx: tx.owners.register(me))
    yield found
    await found.parts.worker.stop()
    await found.parts.close()
    await found.store.close()


async def looked(town: Town) -> None:
    for _ in range(3):
        await town.parts.dispatcher.tick()
        await town.parts.dispatcher.handling.all_done()


async def test_the_agent_is_told_the_run_and_only_its_report_ends_it(town: Town) -> None:
    session = await town.light()
    await town.add("daily", agent={"prompt": "Water the plants.", "agent": "mayor"})
    run = await town.fire("daily", bed=7)
    await started(town, run)
    (typed,) = town.heard
    assert run in typed
    assert str(town.root / ".gc" / "spoken" / run / "message.md") in typed
    assert "Water the plants." not in typed, "what is asked is read from a file"
    text = town.letter(run)
    assert "Water the plants." in text
    assert f"lamp run complete {run} --completion-id {completion_id(run)}" in text
    assert "trigger.json" in text
    row = await town.get(run)
    assert (row.state, row.in_force["preset"] if row.in_force else "") == (RunState.RUNNING, "agent")
    with pytest.raises(NothingToTake, match="the agent `mayor`"):
        await town.store.transact(take, run, ctx=town.context)
    await town.report(run, session)
    row = await finished(town, run)
    assert (row.state, row.grade) == (RunState.SUCCEEDED, "claimed")
    seen = await town.crew.see(town.mayor)
    assert seen is not None
    assert seen.alive, "an agent outlives what it is told"
    assert not (town.root / ".gc" / "spoken" / run).exists()


async def test_what_is_claimed_is_verified_and_a_refusal_is_told_in_the_next_round(town: Town) -> None:
    session = await town.light()
    await town.add("daily", agent={"prompt": "p", "agent": "mayor"}, verify="test -e mended || { echo dry; exit 1; }")
    run = await town.fire("daily")
    await started(town, run)
    await town.report(run, session)
    await town.until(lambda: _in_round(town, run, 2))
    assert "dry" in town.letter(run)
    assert completion_id(run, 2) in town.letter(run)
    (town.root / "mended").touch()
    await town.report(run, session, 2)
    row = await finished(town, run)
    assert (row.state, row.grade) == (RunState.SUCCEEDED, "verified")
    assert len(town.heard) == 2


async def test_a_run_waits_for_an_agent_that_sleeps_and_for_the_run_before_it(town: Town) -> None:
    await town.add("daily", agent={"prompt": "p", "agent": "mayor"}, overlap="allow")
    first = await town.fire("daily")
    await looked(town)
    row = await town.get(first)
    assert (row.state, row.reason) == (RunState.READY, "agent")
    assert "`mayor`: the agent is not running" in row.error
    session = await town.light()
    await town.until(lambda: _told(town, first))
    second = await town.fire("daily")
    await looked(town)
    row = await town.get(second)
    assert (row.state, row.reason) == (RunState.READY, "agent")
    assert first in row.error
    assert len(town.heard) == 1
    await town.report(first, session)
    await finished(town, first)
    await town.until(lambda: _told(town, second))
    assert len(town.heard) == 2


async def test_an_agent_that_ends_before_it_reports_fails_the_run(town: Town) -> None:
    await town.light()
    await town.add("daily", agent={"prompt": "p", "agent": "mayor"})
    run = await town.fire("daily")
    await started(town, run)
    town.crew.end(town.mayor, 3)
    await town.light()  # as the patrol does: it is another session
    row = await finished(town, run)
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion")


async def test_a_question_is_answered_to_the_same_agent(town: Town) -> None:
    session = await town.light()
    await town.add("daily", agent={"prompt": "Water the plants.", "agent": "mayor"})
    run = await town.fire("daily")
    await started(town, run)
    await town.report(run, session, outcome="needs_human", summary_markdown="Which?")
    assert (await finished(town, run)).state is RunState.NEEDS_HUMAN
    told = await town.store.transact(answer, run, "All of them.", ctx=town.context)
    await town.until(lambda: _told(town, told.id))
    assert "All of them." in town.letter(told.id)
    assert "cannot be resumed" not in town.letter(told.id)
    await town.report(told.id, session)
    assert (await finished(town, told.id)).state is RunState.SUCCEEDED


async def test_only_who_may_control_agents_speaks_into_a_run_that_one_was_told(town: Town) -> None:
    session = await town.light()
    await town.add("daily", agent={"prompt": "Water the plants.", "agent": "mayor"})
    run = await town.fire("daily")
    await started(town, run)
    await town.report(run, session)
    await finished(town, run)
    member = changed(town.context, actor=Actor("mia", Role.MEMBER))
    with pytest.raises(Forbidden):
        await town.store.transact(send, run, "Sell the house.", ctx=member)
    assert "name that as `agent`" in await town.store.read(no_conversation, run)
    await town.add("into", agent={"prompt": "p", "session": run})
    wrong = await town.fire("into")
    await started(town, wrong)
    assert (await town.get(wrong)).reason == "session_missing"
    assert len(town.heard) == 1


async def test_nothing_is_typed_into_a_permission_prompt(town: Town) -> None:
    await town.light()
    town.crew.say(
        town.mayor, "Do you want to proceed?", "> 1. Yes", "  2. No, and tell it what to do differently (esc)"
    )
    await town.add("daily", agent={"prompt": "p", "agent": "mayor"})
    run = await town.fire("daily")
    await looked(town)
    row = await town.get(run)
    assert (row.state, row.reason) == (RunState.READY, "agent")
    assert "stands at a permission prompt" in row.error
    assert town.heard == []


async def test_a_message_of_which_nobody_knows_whether_it_was_typed_says_so(town: Town) -> None:
    await town.light()
    spec = SessionSpec(
        SessionName("run_1"), ("text",), "/", meta={"LAMP_RUN_ID": "run_1", "speaks to": str(town.mayor)}
    )

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    town.crew._program = dies
    with pytest.raises(KeyboardInterrupt):
        await town.voice.start(spec)
    again = Voice.of(
        town.root / ".gc" / "spoken", town.sessions, lambda: town.crew, clock=SystemClock(), ids=IdSource(SystemClock())
    )
    half = await again.see(SessionName("run_1"))
    assert half is not None
    assert (half.alive, half.exit_status) == (False, None), "so it is started anew"
    town.crew._program = lambda *_: None
    assert (await again.start(spec)).alive
    assert "It may have reached you before" in town.heard[-1]


@pytest.mark.parametrize(
    ("name", "told"), [("maior", "did you mean `mayor`"), ("crew", "is a pool"), ("crew-2", ""), ("mayor", "")]
)
async def test_an_agent_that_is_not_there_is_refused_by_name(town: Town, name: str, told: str) -> None:
    await town.add("daily", agent={"prompt": "p", "agent": name})
    (row,) = await town.store.read(lambda tx: tx.automations.page())
    known = await town.store.read(references.known, town.context)
    found = [str(one) for one in unknown_names(snapshots.of_row(row), known)]
    assert bool(found) is bool(told)
    assert told in "".join(found)
    assert told in "".join(await town.store.read(led_nowhere, town.city))


async def test_a_run_for_an_agent_that_was_removed_fails_by_name(town: Town) -> None:
    await town.add("daily", agent={"prompt": "p", "agent": "gone"})
    run = await town.fire("daily")
    await started(town, run)
    row = await town.get(run)
    assert (row.state, row.reason) == (RunState.FAILED, "agent_missing")


async def _told(town: Town, run: str) -> bool:
    await town.parts.dispatcher.tick()
    row: Run = await town.get(run)
    return row.state is RunState.RUNNING and row.session_id is not None


async def _in_round(town: Town, run: str, number: int) -> bool:
    await town.parts.worker.tick()
    row: Run = await town.get(run)
    return row.round == number and row.session_id is not None
