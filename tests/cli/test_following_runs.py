"""Runs as they go on: what they print is shown as it comes, and their retries are followed to the end."""

import subprocess
import sys
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, one_sentence

from lamplighter.testing.processes import children

CONFIG = """
[workspace]
name = "town"
[api]
port = 0
[session]
provider = "subprocess"
"""
RETRY = '{"count": 1, "backoff": "10ms"}'


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("town")
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(CONFIG)
    at = ("--city", str(root), "automation", "create", "--manual")
    assert here(*at, "slow", "--exec", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done").code == 0
    broken = "echo tried; test -e second && exit 0; touch second; exit 3"
    assert here(*at, "stubborn", "--exec", broken, "--set", f"retry={RETRY}").code == 0
    assert lamp("daemon", "start", cwd=root).code == 0
    yield root
    here("stop", "--city", str(root))


def test_what_a_run_prints_is_shown_while_it_runs(city: Path) -> None:
    run = here("--city", str(city), "automation", "run", "slow", "--json").json["id"]
    with children() as started:
        call = (sys.executable, "-m", "lamplighter", "--city", str(city), "run", "logs", "-f", "last:slow")
        follower = started.start(*call, env=ENVIRONMENT)
        assert follower.line() == "begun"
        (city / "go").touch()
        assert follower.line() == "done"
        assert follower.line() == ""
    watched = here("--city", str(city), "run", "watch", run[-6:])
    assert (watched.code, watched.out.splitlines()[:2]) == (0, ["begun", "done"])
    assert watched.out.splitlines()[2].startswith(f"Run {run[-6:]} succeeded after")


def test_retries_are_followed_to_the_end(city: Path) -> None:
    (city / "second").unlink(missing_ok=True)
    said = here("--city", str(city), "automation", "run", "stubborn", "--wait")
    lines = said.out.splitlines()
    assert said.code == 0, said
    assert lines.count("tried") == 2
    assert "failed (exit 3)" in lines[1]
    assert "It is tried again" in lines[1]
    assert "attempt 2 of 2" in lines[1]
    assert "succeeded after" in lines[-1]
    shown = here("--city", str(city), "run", "show", "stubborn")
    assert "Attempt     2 of 2" in shown.out
    assert "Node" in shown.out
    first = here("--city", str(city), "run", "show", "stubborn", "--json").json["retry_of"]
    once = here("--city", str(city), "run", "follow", first, "--once")
    assert once.code == 1
    assert once.out.count("tried\n") == 1


def test_steps_only_with_verbose(city: Path) -> None:
    (city / "second").touch()
    assert "run created" not in here("--city", str(city), "automation", "run", "stubborn", "--wait").out
    assert "run created" in here("--city", str(city), "run", "watch", "last:stubborn", "--verbose").out


def test_a_run_that_worked_in_place_has_nothing_to_apply(city: Path) -> None:
    (city / "second").touch()
    here("--city", str(city), "automation", "run", "stubborn", "--wait")
    for verb in ("diff", "apply", "discard"):
        assert "has no worktree" in one_sentence(here("--city", str(city), "run", verb, "last"), 3)


def test_a_run_is_explained_in_sentences_a_line_each(city: Path) -> None:
    (city / "second").touch()
    here("--city", str(city), "automation", "run", "stubborn", "--wait")
    lines = here("--city", str(city), "run", "explain", "last").out.splitlines()
    assert lines[1].startswith("It was taken up ")
    assert lines[-1].startswith("It has succeeded")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lamp automation show s", "slow stubborn"),
        ("lamp run show la", "last"),
        ("lamp run list --automation st", "stubborn"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_are_completed(city: Path, shell: str, line: str, expected: str) -> None:
    (city / "second").touch()
    here("--city", str(city), "automation", "run", "stubborn", "--wait")
    words = line.split()
    env = {"LAMP_CITY": str(city), "_LAMP_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    env["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    program = Path(sys.executable).with_name("lamp")
    done = subprocess.run([program], env=ENVIRONMENT | env, capture_output=True, text=True, check=False, timeout=180)
    assert all(name in done.stdout for name in expected.split()), done


def test_a_city_that_cannot_be_read_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    env = {"_LAMP_COMPLETE": "bash_complete", "COMP_WORDS": "lamp run show x", "COMP_CWORD": "3"}
    program = Path(sys.executable).with_name("lamp")
    done = subprocess.run(
        [program], cwd=tmp_path, env=ENVIRONMENT | env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
