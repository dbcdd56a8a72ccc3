"""Real agent programs that ask a person: answered, they go on in the session in which they asked."""

import pytest
from programs import Town, completing, only, with_state

from lamplighter.domain.runs.model import RunState
from lamplighter.services.runs import continuing
from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]


@with_state("claude", "codex", "goose")
async def test_a_question_is_answered_and_the_same_session_goes_on_with_it(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model)
        asking = CallTool("automation_ask", {"run_id": run, "question": "Which lamp?", "choices": ["left", "right"]})
        model.script = (asking, Say("I wait."))
        row = await town.work(run)
        said = (await town.transcript(run), row.output_tail, row.error)
        assert (row.state, row.reason) == (RunState.NEEDS_HUMAN, "question"), said
        made = await town.store.transact(continuing.answer, run, "The left one, please.", ctx=town.ctx)
        # Its script counts the tool result of the question: it is one conversation.
        model.by_text = {f"run_id: {made.id}": (Say("Lost."), completing(made.id), Say("Lit."))}
        last = await town.work(made.id)
        told = [one for one in model.asked if "The left one, please." in str(one.body)]
    said = (await town.transcript(made.id), last.output_tail, last.error)
    assert (last.state, last.continues) == (RunState.SUCCEEDED, run), said
    assert told
    assert "Which lamp?" in str(told[0].body), "it knows what it asked"
    assert town.processes() == set()


@only("cline")
async def test_a_program_that_cannot_resume_goes_on_with_files(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model)
        asking = CallTool(
            "automation_ask", {"run_id": run, "question": "Which lamp?", "summary_markdown": "Two lamps."}
        )
        model.script = (asking, Say("I wait."))
        row = await town.work(run)
        assert (row.state, row.reason) == (RunState.NEEDS_HUMAN, "question"), (row.output_tail, row.error)
        made = await town.store.transact(continuing.answer, run, "The left one, please.", ctx=town.ctx)
        files = " ".join(
            f"{town.opened.paths.runtime}/runs/{made.id}/{name}.md" for name in ("summary", "question", "answer")
        )
        reading = CallTool("run_commands", {"commands": [f"cat {files}"]})
        model.by_text = {f"run_id: {made.id}": (reading, completing(made.id), Say("Lit."))}
        last = await town.work(made.id)
        told = [one for one in model.asked if f"run_id: {made.id}" in str(one.body)]
    assert (last.state, last.continues) == (RunState.SUCCEEDED, run), (await town.transcript(made.id), last.output_tail)
    assert all(name in str(told[0].body) for name in files.split()), "it is told where to read"
    assert "Which lamp?" not in str(told[0].body), "it began anew"
    assert all(text in str(told[-1].body) for text in ("Two lamps.", "Which lamp?", "The left one, please."))
