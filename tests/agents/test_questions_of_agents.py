"""Real agent programs that ask a person: answered, they go on in the session in which they asked."""

import pytest
from programs import Town, completing, only

from lamplighter.domain.access import owner
from lamplighter.domain.runs.model import RunState
from lamplighter.services.context import Configured, Context
from lamplighter.services.runs import continuing
from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]


@only("claude", "codex")
async def test_a_question_is_answered_and_the_same_session_goes_on_with_it(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model)
        asking = CallTool("automation_ask", {"run_id": run, "question": "Which lamp?", "choices": ["left", "right"]})
        model.script = (asking, Say("I wait."))
        row = await town.work(run)
        said = (await town.transcript(run), row.output_tail, row.error)
        assert (row.state, row.reason) == (RunState.NEEDS_HUMAN, "question"), said
        in_force = Configured(town.loops.active.city, town.loops.active.rules)
        ctx = Context(owner("ada"), town.loops.clock.now(), town.loops.ids, configured=in_force)
        made = await town.store.transact(continuing.answer, run, "The left one, please.", ctx=ctx)
        # Its script counts the tool result of the question: it is one conversation.
        model.by_text = {f"run_id: {made.id}": (Say("Lost."), completing(made.id), Say("Lit."))}
        last = await town.work(made.id)
        told = [one for one in model.asked if "The left one, please." in str(one.body)]
    said = (await town.transcript(made.id), last.output_tail, last.error)
    assert (last.state, last.continues) == (RunState.SUCCEEDED, run), said
    assert told
    assert "Which lamp?" in str(told[0].body), "it knows what it asked"
    assert town.processes() == set()
