"""Real agent programs that a person takes over in the midst of a run, and gives back: one conversation throughout."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from automation_watch import wait_until
from lamp_program import ENVIRONMENT, here, lamp
from programs import PROGRAMS, completing, processes_at_home
from tmux_towns import WITHIN_S, heard, heard_in, until

from lamplighter.testing.model_server import Hang, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

CITY = '[workspace]\nname = "town"\n[session]\nprovider = "tmux"\n[api]\nport = 0\n[daemon]\nshutdown_timeout = "5s"\n'
LIGHT = """[automation]
gate = "manual"
env = {{ SCRIPTED_KEY = "dummy" }}
[automation.agent]
prompt = "Light the lamps of Mill Lane."
preset = "{program}"
model = "{model}"
mode = "full_access"
"""
PROMPT = "Light the lamps of Mill Lane."
GIVEN = "Go on with the left one."
ASKED = "2. Yes, I accept"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(Hang()) as server:
        yield server


def tmux(env: Mapping[str, str], *words: str) -> str:
    asked = ["tmux", *words]
    return subprocess.run(asked, check=False, capture_output=True, text=True, env={**ENVIRONMENT, **env}).stdout


@pytest.mark.parametrize(
    ("name", "where", "database"),
    [("claude", "tmux", "sqlite"), ("codex", "terminal", "sqlite"), ("codex", "terminal", "postgres")],
)
def test_a_run_is_taken_over_given_back_and_completed(
    name: str, where: str, database: str, model: ModelServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program, home, root = PROGRAMS[name], tmp_path / "home", tmp_path / "town"
    program.furnish(home, model.url)
    env = program.env(model.url, home) | {"TMUX_TMPDIR": str(tmp_path), "LAMP_ACTOR": "ada"}
    assert lamp("init", str(root), cwd=tmp_path, env=env).code == 0
    on_postgres = request.getfixturevalue("on_postgres") if database == "postgres" else ""
    (root / "city.toml").write_text(CITY + on_postgres)
    if on_postgres:
        assert lamp("init", cwd=root, env=env).code == 0
    (root / ".gc/formulas/automations/light").mkdir(parents=True)
    text = LIGHT.format(program=name, model=program.model)
    (root / ".gc/formulas/automations/light/automation.toml").write_text(text)

    def run(*words: str) -> str:
        said = lamp(*words, cwd=root, env=env)
        assert said.code == 0, (words, said)
        return said.out

    try:
        run("daemon", "start")
        made = json.loads(run("automation", "run", "light", "--json"))["id"]
        until(lambda: heard(model, f"run_id: {made}"), lambda: run("run", "show", made))
        wait_until(root, lambda tx: any(one.program_session for one in tx.sessions.of_run(made)), within=WITHIN_S)
        if where == "tmux":
            tmux(env, "new-session", "-d", "-s", "of-the-person", "env -u LAMP_ACTOR sleep 600")  # its server runs
            run("run", "take", made, "--tmux")
            run("run", "take", made, "--tmux")  # goes to the one that is there
            pane = f"=lamp-{made[-6:]}:"
        else:
            taking = shlex.join([sys.executable, "-m", "lamplighter", "run", "take", made, "--city", str(root)])
            tmux(env, "new-session", "-d", "-s", "of-the-person", taking)  # in the terminal that this is
            pane = "=of-the-person:"
            until(lambda: row(root, made)["taken_by"] == "ada", lambda: run("run", "show", made))

        def screen() -> str:
            return tmux(env, "capture-pane", "-p", "-S", "-", "-t", pane)  # with what has scrolled off

        def is_shown() -> bool:
            """Whether it shows the conversation; Claude Code first asks whoever is at its terminal."""
            seen = screen()
            if ASKED in seen and f"run_id: {made}" not in seen:
                tmux(env, "send-keys", "-t", pane, "2")  # again if it came before the program read its keys
            return f"run_id: {made}" in seen

        until(is_shown, screen)
        model.by_text = {GIVEN: (completing(made), Say("Lit."))}
        assert "as soon as its program is closed" in run("run", "give", made, GIVEN)
        tmux(env, "kill-server")
        until(lambda: row(root, made)["state"] not in {"running", "queued"}, lambda: run("run", "show", made))
        last = row(root, made)
    finally:
        tmux(env, "kill-server")
        lamp("stop", cwd=root, env=env)
    assert (last["state"], last["taken_by"]) == ("succeeded", None), last
    told = [one for one in model.asked if heard_in(one, GIVEN)]
    assert any(heard_in(one, PROMPT) for one in told), "it is the same conversation"
    until(lambda: not processes_at_home(home), lambda: processes_at_home(home))
    assert not list((root / ".gc").glob("take-*"))


def row(root: Path, run: str) -> dict[str, object]:
    found = here("run", "show", run, "--json", "--city", str(root)).json
    assert isinstance(found, dict)
    return found
