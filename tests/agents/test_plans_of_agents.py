"""Real agent programs that plan, are approved and carry it out; and that stand at their own permission prompt."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import here
from programs import PROGRAMS, Town, completing, with_state
from tmux_towns import Town as TmuxTown
from tmux_towns import a_tmux_town, heard, until

from lamplighter.domain.runs.model import RunState
from lamplighter.services.runs import planning
from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]
TOUCH = {
    "claude": CallTool("Bash", {"command": "touch lit", "description": "Light it"}),
    "codex": CallTool("exec_command", {"cmd": "touch lit"}),
}


@with_state("claude", "codex")
async def test_a_plan_is_made_without_a_change_and_carried_out_in_the_same_session(town: Town) -> None:
    touch = TOUCH[town.program.name]
    with ModelServer() as model:
        run = await town.fire(model, approve="plan")
        model.script = (touch, completing(run), Say("I wait."))
        row = await town.work(run)
        said = (await town.transcript(run), row.output_tail, row.error)
        assert (row.state, row.reason, row.summary) == (RunState.NEEDS_HUMAN, "plan", "All lamps are lit."), said
        place = Path((row.worktree or {}).get("path") or town.opened.paths.root)
        assert not (place / "lit").exists(), "it only plans"
        made = await town.store.transact(planning.approve, run, "", ctx=town.ctx)
        # Its script counts the tool results of the first run: it is one conversation.
        model.by_text = {f"run_id: {made.id}": (Say("Lost."), Say("Lost."), touch, completing(made.id), Say("Lit."))}
        last = await town.work(made.id)
    said = (await town.transcript(made.id), last.output_tail, last.error)
    assert (last.state, last.continues, last.approved) == (RunState.SUCCEEDED, run, "ada"), said
    assert (place / "lit").exists()
    assert town.processes() == set()


ARGUMENTS = {"claude": ["--permission-mode", "default"]}
"""With these a program asks a person before it acts."""


@pytest.fixture
def asking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[TmuxTown, ModelServer]]:
    program = PROGRAMS[request.param]
    with ModelServer(TOUCH[program.name], Say("Done.")) as model, a_tmux_town(program, model, tmp_path) as town:
        known = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["dummy"]}}
        trusted = {"projects": {str(town.root): {"hasTrustDialogAccepted": True}}}
        (town.home / ".claude.json").write_text(json.dumps(known | trusted))
        text = (town.root / "city.toml").read_text()
        city = text.replace('provider = "tmux"', 'provider = "tmux"\npermission_wait = "1s"')
        city = city.replace("[daemon]", '[daemon]\npatrol_interval = "1s"')
        (town.root / "city.toml").write_text(city + f"args = {json.dumps(ARGUMENTS[program.name])}\n")
        yield town, model


@pytest.mark.parametrize("asking", ["claude"], indirect=True)
def test_an_agent_at_its_own_permission_prompt_is_in_the_inbox(asking: tuple[TmuxTown, ModelServer]) -> None:
    town, model = asking
    town.lamp("daemon", "start")
    until(lambda: heard(model, "[town] mayor"), town.screen)

    def told() -> bool:
        items = here("inbox", "list", "--json", "--city", str(town.root)).json
        return any(one["kind"] == "waiting" and "touch lit" in one["sentence"] for one in items)

    until(told, town.screen)
    assert "waits at a permission prompt" in str(town.mayor["reason"])
