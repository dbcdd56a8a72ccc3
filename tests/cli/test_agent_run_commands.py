"""An agent's run as commands see it: worked without a daemon, completed by its own program, shown with all it left."""

from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

SCRIPT = """
echo "asked: $#"
lamp run complete --outcome succeeded --summary "Two lamps are lit." --citation agents/lamp.sh || exit 1
lamp run complete run_00000000000000000000000000 --outcome succeeded && exit 1
exit 0
"""


@pytest.fixture
def city(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    (root / "agent.sh").write_text(SCRIPT)
    with (root / "city.toml").open("a") as file:
        file.write('\n[providers.scripted]\ncommand = "sh"\nargs = ["agent.sh"]\n')
    folder = root / ".gc" / "formulas" / "automations" / "light"
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(
        '[automation]\ngate = "manual"\n\n[automation.agent]\nprompt = "Go."\npreset = "scripted"\n'
    )
    return root


def test_a_run_is_worked_and_completed_without_a_daemon(city: Path) -> None:
    done = lamp("automation", "run", "light", "--json", cwd=city)
    assert done.code == 0, done
    run = done.json["id"]
    assert (done.json["state"], done.json["summary"]) == ("succeeded", "Two lamps are lit.")
    shown = here("--city", str(city), "run", "show", run)
    assert "Two lamps are lit." in shown.out
    assert "completion.json" in shown.out
    logs = here("--city", str(city), "run", "logs", run).out
    assert "asked: 1" in logs
    assert "may not complete run 000000" in logs, "its token is for its own run"
    sessions = here("--city", str(city), "session", "list", "--all", "--json").json
    assert [(one["run"], one["outcome"], one["exit_status"]) for one in sessions] == [(run, "succeeded", 0)]
    again = here("--city", str(city), "run", "complete", run, "--outcome", "failed")
    assert "already completed" in one_sentence(again, 4)


def test_a_completion_needs_a_run_that_is_there(city: Path) -> None:
    flags = ("--outcome", "succeeded")
    assert "No run is named" in one_sentence(here("--city", str(city), "run", "complete", *flags), 2)
    unknown = "run_" + "0" * 26
    assert "no run" in one_sentence(here("--city", str(city), "run", "complete", unknown, *flags), 3)
    one_sentence(here("--city", str(city), "run", "complete", "rubbish", *flags), 2)


def test_a_token_that_is_not_the_runs_is_refused(city: Path, tmp_path: Path) -> None:
    false = tmp_path / "token"
    false.write_text("lrt_run_1.00\n")
    env = {"LAMP_RUN_TOKEN_FILE": str(false)}
    said = lamp("run", "complete", "run_" + "0" * 26, "--outcome", "succeeded", cwd=city, env=env)
    assert "No valid token" in one_sentence(said, 1)
