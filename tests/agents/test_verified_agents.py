"""Real agent programs whose claims of success are verified: red ones are resumed with what was found."""

import pytest
from programs import Town, completing, with_state

from lamplighter.domain.runs.model import Grade, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]
TOUCH = {
    "claude": CallTool("Bash", {"command": "touch mended", "description": "Mend it"}),
    "codex": CallTool("exec_command", {"cmd": "touch mended"}),
}


def claiming(run: str, number: int) -> CallTool:
    made = completing(run)
    return CallTool(made.name, {**made.arguments, "completion_id": completion_id(run, number)})


@with_state("claude", "codex")
async def test_a_claim_over_red_tests_is_mended_in_the_resumed_session_and_then_verified(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model, verify="echo the lamps are dark; test -e mended")
        mend = TOUCH[town.program.name]
        # The script of the second round counts the tool results of the first: it is one conversation.
        model.by_text = {completion_id(run, 2): (Say("Lost."), mend, claiming(run, 2), Say("Mended."))}
        model.script = (claiming(run, 1), Say("Done."))
        row = await town.work(run)
        told = [asked for asked in model.asked if "the lamps are dark" in str(asked.body)]
    said = (await town.transcript(run), row.output_tail, row.error)
    assert (row.state, row.grade, row.round) == (RunState.SUCCEEDED, Grade.VERIFIED, 2), said
    assert told, "the program was told what the command printed"
    first, second = await town.store.read(lambda tx: tx.sessions.of_run(run))
    assert first.program_session == second.program_session is not None
    assert town.processes() == set()


@with_state("claude", "codex")
async def test_a_claim_over_red_tests_fails_after_its_rounds(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model, verify="echo dark; exit 3")
        model.by_text = {completion_id(run, 2): (Say("Lost."), claiming(run, 2), Say("Done again."))}
        model.script = (claiming(run, 1), Say("Done."))
        row = await town.work(run)
    said = (await town.transcript(run), row.error)
    assert (row.state, row.reason, row.grade, row.round) == (RunState.FAILED, "verify", None, 2), said
    assert (row.exit_code, row.output_tail.strip()) == (3, "dark")
