"""Verified runs, questions, notes and worktrees as commands see them, without a daemon."""

import subprocess
from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

SCRIPT = """
touch work
lamp automation notes --text "Mind the oil." --version "$LAMP_NOTES_VERSION" || exit 1
lamp automation notes --text "Lost." --version 0 && exit 1
lamp run ask "$LAMP_RUN_ID" --question "Which lamp?" --choice left --choice right || exit 1
"""


@pytest.fixture
def city(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    (root / ".gitignore").write_text(".gc\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=root, check=True)
    return root


def make(city: Path, name: str, script: str, *more: str) -> None:
    words = (
        "automation",
        "create",
        name,
        "--manual",
        "--preset",
        "shell",
        "--mode",
        "full_access",
        "--prompt",
        script,
        *more,
    )
    assert here("--city", str(city), *words).code == 0


def test_a_question_leaves_its_worktree_which_is_listed_and_removed_only_by_name(city: Path) -> None:
    make(city, "asks", SCRIPT)
    done = lamp("automation", "run", "asks", "--json", cwd=city)
    run = done.json
    assert run["state"] == "needs_human", run["output_tail"]
    assert (run["state"], run["reason"], run["question"]["choices"]) == ("needs_human", "question", ["left", "right"])
    to = ("--city", str(city))
    assert "Which lamp?" in here(*to, "run", "show", run["id"]).out
    assert here(*to, "automation", "notes", "asks", "--json").json["text"] == "Mind the oil."
    (left,) = here(*to, "worktree", "list", "--json").json
    assert (left["run"], left["waits"]) == (run["id"], True)
    assert "waits for an answer" in here(*to, "worktree", "list").out
    assert here(*to, "worktree", "clean", "--json").json == []
    (kept,) = here(*to, "worktree", "clean", run["id"], "--json").json
    assert (kept["removed"], "uncommitted" in kept["why"]) == (False, True)
    assert "Kept" in here(*to, "worktree", "clean", run["id"]).out
    (gone,) = here(*to, "worktree", "clean", run["id"], "--discard", "--json").json
    assert gone["removed"]
    assert not Path(left["path"]).exists()
    assert "has no worktree" in one_sentence(here(*to, "worktree", "clean", run["id"]), 3)
    made = here(*to, "run", "answer", run["id"], "left", "--json").json
    assert (made["continues"], made["state"], made["trigger"]["kind"]) == (run["id"], "queued", "message")
    assert made["id"][-6:] in one_sentence(here(*to, "run", "answer", run["id"], "right"), 4)
    sent = here(*to, "session", "send", run["id"], "Hurry.", "--json").json
    assert sent == {"how": "queued", "run": made["id"], "agent": None}


def test_a_success_shows_how_it_is_known(city: Path) -> None:
    claim = 'lamp run complete --outcome succeeded --summary "Round $LAMP_ROUND."'
    make(city, "mends", claim, "--verify", 'test "$LAMP_ROUND" = 2', "--rounds", "3", "--verify-timeout", "1m")
    done = lamp("automation", "run", "mends", cwd=city)
    assert done.code == 0, done
    assert "succeeded (verified)" in done.out
    make(city, "claims", claim)
    assert lamp("automation", "run", "claims", "--json", cwd=city).json["grade"] == "claimed"
    make(city, "never", claim, "--verify", "echo dark; false", "--rounds", "0")
    failed = lamp("automation", "run", "never", cwd=city)
    assert (failed.code, "failed (verify)" in failed.out, "dark" in failed.out) == (1, True, True)
    for wrong in (("--rounds", "2"), ("--verify-timeout", "1m")):
        words = ("automation", "create", "wrong", "--manual", "--prompt", "x", *wrong)
        refused = here("--city", str(city), *words)
        assert (refused.code, "goes with `verify` only" in refused.err) == (2, True)
