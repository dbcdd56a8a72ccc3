"""Real agent programs finish runs, or fail to, from firing to the end of all that follows."""

import asyncio

import pytest
from programs import Town

from lamplighter.domain.runs.model import RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.testing.model_server import CallTool, Hang, ModelServer, Refuse, Say

pytestmark = pytest.mark.agents


def completing(run: str) -> CallTool:
    return CallTool(
        "automation_complete",
        {
            "run_id": run,
            "completion_id": completion_id(run),
            "outcome": "succeeded",
            "summary_markdown": "All lamps are lit.",
        },
    )


async def test_the_program_calls_the_tool_and_the_run_succeeds(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model)
        model.script = (completing(run), Say("All done."))
        row = await town.work(run)
    told = await town.transcript(run)
    assert (row.run.state, row.run.summary) == (RunState.SUCCEEDED, "All lamps are lit."), told
    kinds = {event.kind for event in told}
    assert {"tool_started", "tool_ended", "turn_ended", "usage"} <= kinds
    assert any("automation_complete" in str(event.body.get("name")) for event in told)
    assert row.facts.tokens
    (session,) = await town.store.read(lambda tx: tx.sessions.of_run(run))
    assert (session.outcome, session.exit_status) == ("succeeded", 0), "it said its last words and left by itself"
    assert len(await town.store.read(lambda tx: tx.artifacts.of(run))) == 2
    assert town.processes() == set()


async def test_a_model_that_just_stops_leaves_the_run_without_completion(town: Town) -> None:
    with ModelServer(Say("I have nothing more to say.")) as model:
        row = await town.work(await town.fire(model))
        assert model.with_tool("automation_complete"), "the tool was offered"
    assert (row.run.state, row.run.reason) == (RunState.FAILED, "no_completion")
    assert row.run.exit_code == 0, "which says nothing about the run"


async def test_a_model_service_that_fails_leaves_the_run_without_completion(town: Town) -> None:
    with ModelServer(Refuse(500)) as model:
        row = await town.work(await town.fire(model))
    assert (row.run.state, row.run.reason) == (RunState.FAILED, "no_completion"), row.run.output_tail


async def test_a_model_that_hangs_is_ended_at_the_deadline_with_the_whole_tree(town: Town) -> None:
    with ModelServer(Hang()) as model:
        run = await town.fire(model, deadline="8s")
        working = asyncio.create_task(town.work(run))
        assert await asyncio.to_thread(model.first.wait, 60)
        assert town.processes()
        row = await working
    assert (row.run.state, row.run.reason) == (RunState.TIMED_OUT, "deadline_exceeded")
    assert town.processes() == set()


async def test_a_completion_call_that_is_denied_completes_nothing(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model, deny=True)
        model.script = (completing(run), Say("I was not allowed."))
        row = await town.work(run)
    assert (row.run.state, row.run.reason) == (RunState.FAILED, "no_completion"), await town.transcript(run)
