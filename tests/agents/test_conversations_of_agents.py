"""Real agent programs over several runs: conversations that go on, notes that are handed on, and what bounds them."""

import asyncio
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from programs import CODEX_CONFIG, PROGRAMS, Program, Town, a_town, by_turns, completing, with_state

from lamplighter.domain.runs.model import Grade, Run, RunState
from lamplighter.domain.runs.ports import Block
from lamplighter.services.operation import judged
from lamplighter.services.runs import continuing
from lamplighter.services.runs.adopting import ADOPT, AdoptSession
from lamplighter.services.runs.budgets import BudgetUsedUp
from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]


def shell(program: str, command: str) -> CallTool:
    """The call by which this program's model runs a command."""
    if program == "claude":
        return CallTool("Bash", {"command": command, "description": "Look around"})
    return CallTool("exec_command", {"cmd": command, "yield_time_ms": 30_000})  # on a busy machine it takes long


async def said(town: Town, row: Run) -> object:
    return row.reason, await town.transcript(row.id), row.output_tail, row.error


@with_state("claude", "codex")
async def test_a_conversation_goes_on_by_a_value_and_with_what_a_person_says(town: Town) -> None:
    with ModelServer() as model:
        first = await town.fire(model, continue_by="payload.issue", payload={"issue": 7})
        model.script = (completing(first), Say("Lit."))
        assert (await town.work(first)).state is RunState.SUCCEEDED
        second = await town.again(issue=7)
        # These scripts count the tool results of the runs before: it is one conversation.
        model.by_text = {f"run_id: {second}": (Say("Lost."), completing(second), Say("Lit again."))}
        row = await town.work(second)
        assert (row.state, row.continues) == (RunState.SUCCEEDED, first), await said(town, row)
        sent, waits = await town.store.transact(continuing.send, second, "Now trim the wicks.", ctx=town.ctx)
        model.by_text = {f"run_id: {sent.id}": (Say("Lost."), Say("Lost."), completing(sent.id), Say("Trimmed."))}
        row = await town.work(sent.id)
        told = next(one for one in model.asked if "Now trim the wicks." in str(one.body))
    assert (row.state, row.continues, waits) == (RunState.SUCCEEDED, second, False), await said(town, row)
    assert "Light the lamps." in str(told.body), "it knows what it was asked at first"
    who = [event.body["by"] for event in await town.transcript(sent.id) if event.kind == "message"]
    assert who == ["ada"]
    found = [await town.store.read(lambda tx, run=run: tx.sessions.of_run(run)) for run in (first, second, sent.id)]
    assert len({one.program_session for (one,) in found}) == 1
    assert town.processes() == set()


@by_turns("claude", "codex")
async def test_notes_and_a_cursor_are_handed_on_from_run_to_run(town: Town) -> None:
    with ModelServer() as model:
        first = await town.fire(model)
        notes = CallTool("automation_notes", {"text": "The third wick is short.", "version": 0})
        cursor = CallTool("automation_cursor", {"set": "lamp-7", "expect": ""})
        model.script = (notes, cursor, completing(first), Say("Lit."))
        row = await town.work(first)
        assert row.state is RunState.SUCCEEDED, await said(town, row)
        second = await town.again()
        read = [CallTool("automation_notes", {}), CallTool("automation_cursor", {})]
        model.by_text = {f"run_id: {second}": (*read, completing(second), Say("Lit."))}
        row = await town.work(second)
        told = [str(one.body) for one in model.asked if f"run_id: {second}" in str(one.body)]
    assert row.state is RunState.SUCCEEDED, await said(town, row)
    assert "The third wick is short." in told[-1]
    assert "lamp-7" in told[-1]
    assert "version 1" in told[0], "it is told of them at its start"


@by_turns("claude", "codex")
async def test_a_program_that_goes_round_in_circles_is_told_and_then_ended(town: Town) -> None:
    with ModelServer(*[shell(town.program.name, "echo dark")] * 20) as model:
        row = await town.work(await town.fire(model, stuck_after=3))
        told = [one for one in model.asked if "same result" in str(one.body)]
    assert (row.state, row.reason, row.round) == (RunState.FAILED, "stuck", 2), await said(town, row)
    assert "echo dark" in row.error
    assert told, "it was told so in its second round"
    assert town.processes() == set()


@by_turns("claude", "codex")
async def test_a_budget_of_the_day_is_counted_by_what_the_program_reports(town: Town) -> None:
    with ModelServer() as model:
        first = await town.fire(model, budget={"day_tokens": 1})
        model.script = (completing(first), Say("Lit."))
        row = await town.work(first)
        assert row.tokens is not None
        assert row.tokens > 1
        with pytest.raises(BudgetUsedUp, match=f"have used {row.tokens} tokens today"):
            await town.again()


TESTS = """
import os, socket, sys, unittest
class Lamps(unittest.TestCase):
    def test_all_is_there(self):
        self.assertIn("/.venv/", sys.prefix + "/")
        self.assertEqual(open(".env").read(), "OIL=yes\\n")
        with socket.socket() as served:
            served.bind(("127.0.0.1", int(os.environ["LAMP_PORT_BASE"])))
"""
RIG = """
[[rigs]]
name = "web"
path = "web"
[rigs.workspace]
setup = "python3 -m venv --without-pip .venv"
copy = [".env"]
ports = 3
"""


async def test_a_repository_s_tests_run_in_fresh_worktrees_of_two_programs_at_once(tmp_path: Path) -> None:
    """A Python package with a virtual environment, an untracked file and a port."""
    command = ".venv/bin/python -B -m unittest -q test_lamps"
    async with a_town(tmp_path / "town", PROGRAMS["claude"], more=RIG) as first:
        await asyncio.to_thread(_repository, first.opened.paths.root / "web")
        second = replace(first, program=PROGRAMS["codex"])
        with ModelServer() as model:
            runs = {
                town.program.name: await town.fire(model, name=town.program.name, rig="web", verify=command)
                for town in (first, second)
            }
            model.by_text = {
                f"run_id: {run}": (shell(name, f"{command} && echo all green"), completing(run), Say("Green."))
                for name, run in runs.items()
            }
            rows = [await first.work(run) for run in runs.values()]
            told = [str(one.body) for one in model.asked if one.results]
        for row in rows:
            assert (row.state, row.grade) == (RunState.SUCCEEDED, Grade.VERIFIED), await said(first, row)
            assert any(row.id in one and "all green" in one for one in told), "its agent saw the tests run"
        one, other = (Block.of(row.ports or "") for row in rows)
        assert not one.meets(other)
        assert first.processes() == set()


def _repository(web: Path) -> None:
    web.mkdir()
    (web / "test_lamps.py").write_text(TESTS)
    (web / ".gitignore").write_text(".env\n.venv\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=web, check=True)
    (web / ".env").write_text("OIL=yes\n")


BY_HAND = {
    "claude": ("claude", "-p", "Find the lamp house.", "--output-format", "json"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "--json", "Find the lamp house."),
}


@pytest.mark.parametrize(("name", "database"), [("claude", "sqlite"), ("codex", "postgres")])
async def test_a_conversation_begun_by_hand_is_adopted_and_goes_on(
    name: str, database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    more = request.getfixturevalue("on_postgres") if database == "postgres" else ""
    config = {".codex/config.toml": CODEX_CONFIG.replace("SCRIPTED_KEY", "CODEX_API_KEY")}
    program: Program = PROGRAMS[name]
    if name == "codex":  # with a key of a name that it knows: a conversation begun by hand has no configuration
        program = replace(program, keys={"CODEX_API_KEY": "dummy"}, home=config)
    home, place = tmp_path / "home", tmp_path / "place"
    place.mkdir()
    with ModelServer(Say("I found it.")) as model:
        program.furnish(home, model.url)
        env = program.env(model.url, home)
        by_hand = subprocess.run(  # noqa: ASYNC221
            BY_HAND[name], cwd=place, env=env, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
        )
        known = [json.loads(line) for line in by_hand.stdout.splitlines() if line.startswith("{")]
        session = next(one["session_id" if name == "claude" else "thread_id"] for one in known)
        async with a_town(tmp_path / "town", program, home, more=more, env=env) as town:
            words = AdoptSession("Now light its lamp.", name, session, str(place), model=program.model)
            made = await town.store.transact(judged, ADOPT, words, town.ctx)
            model.by_text = {f"run_id: {made.id}": (completing(made.id), Say("Lit."))}
            row = await town.work(made.id)
            told = next(one for one in model.asked if "Now light its lamp." in str(one.body))
            assert (row.state, row.automation) == (RunState.SUCCEEDED, "conversation"), await said(town, row)
            assert "I found it." in str(told.body), "it knows what was said by hand"
            assert town.processes() == set()
