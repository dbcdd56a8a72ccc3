"""Real agent programs, headless by their presets, complete a run through the city's MCP server, or fail to."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from programs import City, Program, run_to_its_end, spec_of

from lamplighter.domain.runs.model import RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.sessions.transcript import ToolEnded, ToolStarted, TurnEnded, Usage
from lamplighter.testing.model_server import CallTool, Hang, ModelServer, Refuse, Say

pytestmark = pytest.mark.agents


def completing(city: City) -> CallTool:
    return CallTool(
        "automation_complete",
        {
            "run_id": city.run,
            "completion_id": completion_id(city.run),
            "outcome": "succeeded",
            "summary_markdown": "All lamps are lit.",
        },
    )


async def test_the_program_calls_the_tool_and_the_run_succeeds(city: City, program: Program) -> None:
    with ModelServer(completing(city), Say("All done.")) as model:
        ran = await run_to_its_end(city, spec_of(program, city, model), program)
    assert city.state is RunState.SUCCEEDED, ran.output
    assert city.runs.runs[city.run].summary == "All lamps are lit."
    assert len(city.runs.said) == 1
    assert ran.seen.exit_status == 0
    assert any(isinstance(event, ToolStarted) and "automation_complete" in event.name for event in ran.events)
    assert any(isinstance(event, ToolEnded) and event.ok for event in ran.events)
    assert any(isinstance(event, TurnEnded) for event in ran.events)
    assert any(isinstance(event, Usage) for event in ran.events)


async def test_a_model_that_just_stops_leaves_the_run_without_completion(city: City, program: Program) -> None:
    with ModelServer(Say("I have nothing more to say.")) as model:
        ran = await run_to_its_end(city, spec_of(program, city, model), program)
        assert model.with_tool("automation_complete"), "the tool was offered"
    assert ran.seen.exit_status == 0, "which says nothing about the run"
    assert city.state is RunState.RUNNING
    assert city.runs.said == []


async def test_a_model_service_that_fails_leaves_the_run_without_completion(city: City, program: Program) -> None:
    with ModelServer(Refuse(500)) as model:
        ran = await run_to_its_end(city, spec_of(program, city, model), program)
    assert city.state is RunState.RUNNING, ran.output
    assert city.runs.said == []


async def test_a_model_that_hangs_is_ended_by_us_with_the_whole_tree(city: City, program: Program) -> None:
    with ModelServer(Hang()) as model:
        spec = spec_of(program, city, model)
        await city.provider.start(spec)
        assert await asyncio.to_thread(model.first.wait, 60)
        assert (await city.provider.seen())[spec.name].alive
        marked = processes_of(city)
        assert marked
        await city.provider.stop(spec.name, grace=timedelta(seconds=5))
    assert processes_of(city) == set()
    assert city.state is RunState.RUNNING


async def test_a_completion_call_that_is_denied_completes_nothing(city: City, program: Program) -> None:
    with ModelServer(completing(city), Say("I was not allowed.")) as model:
        ran = await run_to_its_end(city, spec_of(program, city, model, program.denied), program)
    assert city.state is RunState.RUNNING, ran.output
    assert city.runs.said == []


def processes_of(city: City) -> set[int]:
    """Every process that was given this city's home: the program and all that it started."""
    mark = f"HOME={city.root / 'home'}".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
            except OSError:
                continue
    return found
