"""What bounds runs at work: budgets of a day, limits, memory, and agents that go round in circles."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import complete, finished, started, types
from test_logins import Ahead

from lamplighter.domain.city.model import Configuration
from lamplighter.domain.city.run_sections import Budget, Limits
from lamplighter.domain.city.run_sections import Runs as RunSettings
from lamplighter.domain.runs.at_work import LOOK_EVERY
from lamplighter.domain.runs.budget import next_midnight
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.services import configurations
from lamplighter.services.automations import due, outlook
from lamplighter.services.rules import Rules
from lamplighter.services.runs import claiming, review
from lamplighter.services.runs.budgets import LOOK_AGAIN, BudgetUsedUp
from lamplighter.services.runs.continuing import send
from lamplighter.services.runs.views import view
from lamplighter.services.status import on_record
from lamplighter.store.url import Place

PROGRAM = """#!/bin/sh
[ "$1 $2" = "auth status" ] && exit 0
[ "$1" = --version ] && exit 1
[ -z "$LAMP_MESSAGE_FILE" ] || cp "$LAMP_MESSAGE_FILE" "$ANSWERS/told-$LAMP_RUN_ID"
[ ! -e "$ANSWERS/lines-$LAMP_ROUND" ] || cat "$ANSWERS/lines-$LAMP_ROUND"
while [ ! -e "$ANSWERS/done-$LAMP_RUN_ID" ]; do sleep 0.05; done
"""


def used(tokens: int, cost: float = 0.0) -> str:
    return json.dumps({"type": "result", "usage": {"input_tokens": tokens}, "total_cost_usd": cost})


def repeated(times: int, command: str = "make test") -> str:
    lines = []
    for number in range(times):
        asked = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        gave = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "2 failed", "is_error": True}
        lines += [{"type": "assistant", "message": {"content": [asked]}, "session_id": "s1"}]
        lines += [{"type": "user", "message": {"content": [gave]}}]
    return "".join(json.dumps(line) + "\n" for line in lines)


class Town:
    def __init__(self, loops: Loops, root: Path, clock: Ahead) -> None:
        self.loops, self.root, self.clock = loops, root, clock
        for folder in (root / "home" / ".claude", root / "bin"):
            folder.mkdir(parents=True)
        (root / "home" / ".claude" / ".credentials.json").write_text("{}")
        (root / "bin" / "claude").write_text(PROGRAM)
        (root / "bin" / "claude").chmod(0o755)

    async def set_up(self) -> None:
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(self.root / "home"), "ANSWERS": str(self.root)}
        given = Configuration(name="own", preset="claude", env=env)
        await self.loops.store.transact(configurations.sync, (given,), self.clock.now())

    def configure(self, **sections: Any) -> None:
        city = replace(self.loops.city, **sections)
        budget = city.budget
        rules = Rules.of(city, self.loops.rules.zone)
        assert rules.budget.tokens == budget.day_tokens
        self.loops.city, self.loops.rules = city, rules
        self.loops.parts.active.swap(city, rules)

    def says(self, text: str, number: int = 1) -> None:
        (self.root / f"lines-{number}").write_text(text + "\n")

    async def add(self, name: str, **keys: Any) -> None:
        told = {"prompt": "Light the lamps.", "configuration": "own"}
        await self.loops.add(name, agent=told, **{"gate": "cooldown", "interval": "1000h", **keys})

    async def looked(self, *runs: str) -> list[Run]:
        """After whatever is due now."""
        for _ in range(3):
            await self.loops.parts.dispatcher.tick()
            await self.loops.parts.dispatcher.handling.all_done()
        return [await self.loops.get(run) for run in runs]

    async def at_work(self, name: str) -> str:
        run = await self.loops.fire(name)
        await started(self.loops, run)
        return run

    async def completed(self, run: str) -> Run:
        await complete(self.loops, run)
        (self.root / f"done-{run}").touch()

        async def ended() -> bool:
            return not self.loops.parts.worker.holds(run)

        watching = asyncio.create_task(self.loops.parts.worker.loop())
        await self.loops.until(ended)
        watching.cancel()
        await asyncio.wait({watching})
        return await self.loops.get(run)

    async def events(self, family: str) -> list[str]:
        found = await self.loops.store.read(lambda tx: tx.events.after(0, limit=500))
        return [one.type for one in found if one.type.startswith(family)]

    async def heard(self, kind: str) -> None:
        """Until an event of that type has its number: on PostgreSQL that is given after the commit."""

        async def is_numbered() -> bool:
            return bool(await self.events(kind))

        await self.loops.until(is_numbered)

    async def explained(self, name: str) -> str:
        found = await self.loops.store.read(outlook.explained, name, now=self.clock.now(), rules=self.loops.rules)
        return " ".join(found)


@pytest.fixture
async def town(place: Place, tmp_path: Path) -> AsyncIterator[Town]:
    clock = Ahead()
    clock.by = clock.now().replace(hour=9, minute=0) - clock.now() + timedelta(days=1)  # far from midnight
    async with open_loops(place, tmp_path, clock) as loops:
        found = Town(loops, tmp_path, clock)
        await found.set_up()
        yield found


async def test_a_day_that_is_used_up_ends_the_run_and_lets_none_begin_until_midnight(town: Town) -> None:
    town.says(used(150))
    await town.add("light", budget={"day_tokens": 100}, retry=3, auto_disable_after=1)
    await town.loops.add("other", agent={"prompt": "p", "configuration": "own"})
    row = await finished(town.loops, await town.at_work("light"))
    assert (row.state, row.reason) == (RunState.FAILED, "budget")
    assert row.error == "The runs of light may use 100 tokens a day and have used 150 tokens today."
    with pytest.raises(BudgetUsedUp, match="have used 150 tokens today"):
        await town.loops.fire("light")
    assert "have used 150 tokens today" in await town.explained("light")
    report = await town.loops.store.transact(due.fire_due, limit=10, rules=town.loops.rules, ctx=town.loops.context)
    assert (report.fired, report.skipped) == ([], 1)
    (skip,) = await town.loops.store.read(lambda tx: tx.trigger_events.history("light", limit=1))
    assert (skip.status, skip.reason) == ("skipped", "budget")
    await town.heard("automation.skipped")
    (told,) = [
        one.payload for one in await town.loops.store.read(lambda tx: tx.events.after(0, limit=500))
        if one.type == "automation.skipped"
    ]  # fmt: skip
    assert "100 tokens a day and have used 150" in told["why"]
    light = await town.loops.store.read(lambda tx: tx.automations.named("light"))
    assert light is not None
    assert light.enabled, "a budget says nothing about the automation"
    assert len(await town.loops.store.read(lambda tx: tx.runs.page(automation="light"))) == 1, "nothing is retried"
    other = await town.at_work("other")
    assert (await town.loops.get(other)).state is RunState.RUNNING, "another automation has its own"
    town.clock.by += timedelta(days=1)
    (again,) = await town.looked(await town.loops.fire("light"))
    assert again.state is RunState.RUNNING


async def test_what_was_said_waits_for_the_next_day_and_a_retry_is_refused_until_then(town: Town) -> None:
    await town.add("light", budget={"day_time": "1h", "time": "9h"}, deadline="20h")
    run = await town.at_work("light")
    await town.loops.store.transact(send, run, "Hurry.", ctx=town.loops.context)
    town.clock.by += timedelta(hours=1, minutes=1)
    first = await finished(town.loops, run)
    (said,) = await town.looked(first.continued_by or "")
    assert (said.state, said.reason, said.error) == (RunState.READY, "budget", first.error)
    assert (said.trigger_kind, view(said).waits_for) == ("message", first.error)
    midnight = next_midnight(town.clock.now(), town.loops.rules.zone)
    assert said.deadline_at is not None
    assert said.deadline_at >= midnight + timedelta(hours=20)
    await town.loops.store.transact(review.cancel, said.id, ctx=town.loops.context)
    with pytest.raises(BudgetUsedUp, match="may use 1h a day"):
        await town.loops.store.transact(review.retry_if_left, said.id, ctx=town.loops.context)
    town.clock.by += timedelta(days=1)
    (again,) = await town.looked(
        (await town.loops.store.transact(review.retry_if_left, said.id, ctx=town.loops.context)).id
    )
    assert again.state is RunState.RUNNING


async def test_what_was_said_is_told_once_the_budget_is_raised(town: Town) -> None:
    town.configure(budget=Budget(day_time=timedelta(hours=1)))
    await town.add("light", deadline="20h")
    run = await town.at_work("light")
    await town.loops.store.transact(send, run, "Hurry.", ctx=town.loops.context)
    town.clock.by += timedelta(hours=1, minutes=1)
    waiting = (await finished(town.loops, run)).continued_by or ""
    assert [one.state for one in await town.looked(waiting)] == [RunState.READY]
    town.configure(budget=Budget(day_time=timedelta(hours=5)))
    town.clock.by += LOOK_AGAIN
    assert [(one.state, one.reason) for one in await town.looked(waiting)] == [(RunState.RUNNING, "")]
    await started(town.loops, waiting)
    told = town.root / f"told-{waiting}"

    async def is_told() -> bool:
        return told.exists() and "Hurry." in told.read_text()

    await town.loops.until(is_told)


async def test_what_two_runs_use_at_once_is_added_up_and_ends_both(town: Town) -> None:
    town.configure(budget=Budget(day_tokens=100))
    town.says(used(60))
    await town.add("one", overlap="allow")
    await town.add("two")
    runs = [await town.loops.fire(name) for name in ("one", "two")]
    rows = await town.looked(*runs)
    assert {row.state for row in rows} == {RunState.RUNNING}, "both began while something was left"
    await finished(town.loops, runs[0])
    for run in runs:
        row = await town.loops.get(run)
        assert (row.state, row.reason) == (RunState.FAILED, "budget")
        assert row.error == "All runs of the city may use 100 tokens a day and have used 120 tokens today."
    await town.loops.add("waits", agent={"prompt": "p", "configuration": "own"})
    town.configure(budget=Budget(day_tokens=1000))
    late = await town.loops.fire("waits")
    town.configure(budget=Budget(day_tokens=100))
    (row,) = await town.looked(late)
    assert (row.state, row.reason) == (RunState.SKIPPED, "budget"), "what was used meanwhile counts at its start"
    assert "have used 120 tokens" in row.error


async def test_time_is_counted_for_those_at_work_and_events_wait_for_the_next_day(town: Town) -> None:
    await town.add("light", budget={"day_time": "1h", "time": "9h"}, deadline="20h", gate="event", interval=None,
                   on="lamp.out", overlap="allow")  # fmt: skip
    run = await town.at_work("light")
    town.clock.by += timedelta(hours=1, minutes=1)
    row = await finished(town.loops, run)
    assert (row.state, row.reason) == (RunState.FAILED, "budget")
    assert "may use 1h a day and have used 1h" in row.error
    store, rules = town.loops.store, town.loops.rules
    event = town.loops.context.event("lamp.out", subject="x", message="dark")
    await store.transact(lambda tx: tx.events.append(event))
    await town.heard("lamp.out")
    await store.transact(lambda tx: tx.triggers.mark_due({"lamp.out"}, town.clock.now()))
    report = await store.transact(due.fire_due, limit=10, rules=rules, ctx=town.loops.context)
    assert (report.fired, report.skipped) == ([], 0)
    town.clock.by += timedelta(days=1)
    report = await store.transact(due.fire_due, limit=10, rules=rules, ctx=town.loops.context)
    assert len(report.fired) == 1, "no event is lost"


async def test_a_budget_that_the_program_cannot_tell_is_refused_by_name(town: Town) -> None:
    for key, budget, city in (
        ("`budget.day_cost`", {"day_cost": 1}, Budget()),
        ("`city.toml: budget.day_tokens`", {}, Budget(day_tokens=5)),
    ):
        town.configure(budget=city)
        name = f"mute{len(budget)}"
        await town.loops.add(name, agent={"prompt": "true", "preset": "shell"}, budget=budget)
        row = await town.loops.work(name)
        assert (row.state, row.reason) == (RunState.FAILED, "budget_not_counted")
        assert key in row.error


async def test_runs_wait_for_a_place_in_the_order_they_came_and_say_so(town: Town) -> None:
    town.configure(limits=Limits(runs=1))
    for name in ("first", "second"):
        await town.add(name)
    await town.loops.add("third", exec="true")
    first = await town.at_work("first")
    second, third = [await town.loops.fire(name) for name in ("second", "third")]
    for row in await town.looked(second, third):
        assert (row.state, row.reason) == (RunState.READY, "limit")
    shown = view((await town.looked(second))[0])
    assert shown.waits_for == f"1 of 1 run of the city is at work or before it: {first}."
    assert first in await town.explained("second")
    known = await town.loops.store.read(on_record, "x", town.clock.now())
    assert {one["id"] for one in known["under_way"] if one["waits_for"]} == {second, third}
    assert (await types(town.loops, second)).count("run_held") == 1, "told once"
    await town.completed(first)
    town.clock.by += LOOK_EVERY
    await started(town.loops, second)
    assert [row.state for row in await town.looked(second, third)] == [RunState.RUNNING, RunState.READY]
    await town.completed(second)
    town.clock.by += LOOK_EVERY
    row = await finished(town.loops, third)
    assert (row.state, row.reason) == (RunState.SUCCEEDED, "")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(per_rig=1), "in rig web"),
        (Limits(rigs={"web": 1}), "in rig web"),
        (Limits(per_preset=1), "of preset claude"),
        (Limits(presets={"claude": 1}), "of preset claude"),
        (Limits(per_login=1), "with the login"),
    ],
)
async def test_a_limit_holds_for_its_own_runs_only(town: Town, limits: Limits, told: str) -> None:
    town.configure(limits=limits)
    for name in ("one", "two"):
        await town.loops.add(name, agent={"prompt": "p", "configuration": "own"}, rig="web")
    await town.loops.add("else", agent={"prompt": "true", "preset": "shell"})
    await town.at_work("one:rig:web")
    second, other = [await town.loops.fire(name) for name in ("two:rig:web", "else")]
    waits, runs = await town.looked(second, other)
    assert (waits.state, waits.reason) == (RunState.READY, "limit")
    assert told in waits.error
    assert runs.state is not RunState.READY


async def test_two_processes_that_start_at_once_take_one_place(town: Town) -> None:
    town.configure(limits=Limits(runs=3))
    await town.loops.add("light", exec="sleep 60", overlap="allow")
    runs = [await town.loops.fire("light") for _ in range(8)]
    bounds = await town.loops.parts.dispatcher.handlers.agents.memory.bounds()
    me, ctx = town.loops.parts.worker.me, town.loops.context
    taken = await town.loops.store.transact(
        claiming.take_due, me, limit=20, bounded=True, ctx=ctx
    )  # fmt: skip
    assert len(taken.items) == 8
    both = [
        town.loops.store.transact(review.start, item, me, town.clock.now(), bounds=bounds, ctx=ctx)
        for item in taken.items
    ]
    found = await asyncio.gather(*both)
    assert sum(one is not None for one in found) == 3
    states = [(await town.loops.get(run)).state for run in runs]
    assert states.count(RunState.RUNNING) == 3
    await town.loops.store.transact(lambda tx: tx.db.execute("UPDATE runs SET state = 'canceled'", {}))


async def test_little_memory_holds_starts_is_told_and_lets_them_go_again(town: Town) -> None:
    town.configure(limits=Limits(memory=512))
    memory = town.loops.parts.dispatcher.handlers.agents.memory
    memory.available = lambda: 100
    await town.add("light")
    await town.loops.add("plain", exec="true")
    runs = [await town.loops.fire(name) for name in ("light", "plain")]
    for row in await town.looked(*runs):
        assert (row.state, row.reason) == (RunState.READY, "memory")
        assert row.error == "100 MB of memory are available, and `[limits] memory` asks for 512 MB."
    assert await town.events("controller.memory") == ["controller.memory_low"]
    memory.available = lambda: 600
    town.clock.by += LOOK_EVERY
    await started(town.loops, runs[0])
    await town.completed(runs[0])
    row = await finished(town.loops, runs[1])
    assert row.state is RunState.SUCCEEDED
    assert row.deadline_at is not None
    assert row.deadline_at < town.clock.now() + timedelta(hours=3), "its time counts from its start"
    assert await town.events("controller.memory") == ["controller.memory_low", "controller.memory_enough"]


async def test_an_agent_in_circles_is_told_once_and_then_its_run_fails_with_the_loop_quoted(town: Town) -> None:
    town.configure(runs=RunSettings(stuck_after=4))
    await town.add("light")
    await town.add("patient", stuck_after=5)
    town.says(repeated(4), 1)
    town.says(repeated(4, "make again"), 2)
    run = await town.at_work("light")
    row = await finished(town.loops, run)
    assert (row.state, row.reason, row.round) == (RunState.FAILED, "stuck", 2)
    assert row.error.startswith("It called `Bash` (make again) 4 times in a row, each time with the same failure: 2")
    told = (town.root / f"told-{run}").read_text()
    assert "You called `Bash` (make test) 4 times in a row" in told
    happened = await types(town.loops, run)
    assert [one for one in happened if one.startswith(("stuck", "session_c"))] == [
        "session_created", "stuck_found", "stuck_told", "session_created",
    ]  # fmt: skip
    assert await town.events("run.stuck") == ["run.stuck"]
    spared = await town.at_work("patient")
    assert (await town.completed(spared)).state is RunState.SUCCEEDED, "its own setting counts"


async def test_an_agent_that_finds_another_way_completes_its_run_in_the_next_round(town: Town) -> None:
    town.configure(runs=RunSettings(stuck_after=4))
    await town.add("light")
    town.says(repeated(9), 1)
    run = await town.loops.fire("light")

    async def in_second() -> bool:
        await town.loops.parts.dispatcher.tick()
        row = await town.loops.get(run)
        return row.round == 2 and row.session_id is not None

    await town.loops.until(in_second)
    row = await town.completed(run)
    assert (row.state, row.round) == (RunState.SUCCEEDED, 2)
