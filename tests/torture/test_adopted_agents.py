"""A conversation that a person began by hand with a real program in tmux, which the city adopts and goes on with."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp
from programs import PROGRAMS, completing, processes_at_home
from tmux_towns import heard, heard_in, until

from lamplighter.testing.model_server import ModelServer, Say

CITY = '[workspace]\nname = "town"\n[api]\nport = 0\n[daemon]\nshutdown_timeout = "5s"\n'
WORD = "The word of the day is amber."
BY_HAND = {
    "claude": "claude --dangerously-skip-permissions '{}'",
    "codex": "codex --disable daemon_auto_start --dangerously-bypass-approvals-and-sandbox '{}'",
}
KEPT = {"claude": ".claude/projects/*/*.jsonl", "codex": ".codex/sessions/*/*/*/rollout-*.jsonl"}
_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def tmux(env: Mapping[str, str], *words: str) -> str:
    asked = ["tmux", *words]
    return subprocess.run(asked, check=False, capture_output=True, text=True, env={**ENVIRONMENT, **env}).stdout


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_conversation_begun_by_hand_in_tmux_is_adopted(name: str, tmp_path: Path) -> None:
    program, home, root, work = PROGRAMS[name], tmp_path / "home", tmp_path / "town", tmp_path / "work"
    work.mkdir()
    with ModelServer(Say("Amber is noted.")) as model:
        program.furnish(home, model.url)
        if name == "codex":  # as with a login of one's own, which no variable of an automation has to give
            config = home / ".codex" / "config.toml"
            config.write_text(
                config.read_text().replace('env_key = "SCRIPTED_KEY"', 'experimental_bearer_token = "dummy"')
            )
        env = program.env(model.url, home) | {"TMUX_TMPDIR": str(tmp_path), "LAMP_ACTOR": "ada", "IS_SANDBOX": "1"}
        if name == "claude":
            known = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["dummy"]}}
            more = {"bypassPermissionsModeAccepted": True, "projects": {str(work): {"hasTrustDialogAccepted": True}}}
            (home / ".claude.json").write_text(json.dumps(known | more))
        assert lamp("init", str(root), cwd=tmp_path, env=env).code == 0
        (root / "city.toml").write_text(CITY)

        def run(*words: str) -> str:
            said = lamp(*words, cwd=root, env=env)
            assert said.code == 0, (words, said)
            return said.out

        def screen() -> str:
            return tmux(env, "capture-pane", "-p", "-t", "=mine:")

        def kept() -> list[Path]:
            return [path for path in home.glob(KEPT[name]) if WORD in path.read_text()]

        try:
            begins = BY_HAND[name].format(WORD)
            tmux(env, "new-session", "-d", "-s", "mine", "-c", str(work), "-x", "150", "-y", "50", begins)
            until(lambda: "Amber is noted." in screen(), screen)
            until(lambda: len(kept()) == 1, kept)  # an answer may be shown before it is written
            conversation = _ID.findall(kept()[0].name)[-1]
            tmux(env, "kill-server")
            until(lambda: processes_at_home(home) == set(), lambda: processes_at_home(home))
            told = ("session", "adopt", "Finish it now.", "--preset", name, "--id", conversation)
            made = json.loads(run(*told, "--directory", str(work), "--json"))["id"]
            model.by_text = {f"run_id: {made}": (completing(made), Say("Done."))}
            run("daemon", "start")

            def row() -> dict[str, str]:
                found = here("run", "show", made, "--json", "--city", str(root)).json
                assert isinstance(found, dict)
                return found

            until(
                lambda: row()["state"] not in {"running", "queued", "enriching", "ready"},
                lambda: run("run", "show", made),
            )
            assert (row()["state"], row()["grade"]) == ("succeeded", "claimed"), run("run", "show", made)
            assert heard(model, "Finish it now.")
            assert any(heard_in(one, "Finish it now.") and heard_in(one, WORD) for one in list(model.asked))
        finally:
            tmux(env, "kill-server")
            lamp("stop", cwd=root, env=env)
    until(lambda: processes_at_home(home) == set(), lambda: processes_at_home(home))
