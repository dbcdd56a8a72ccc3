"""What was done is told in a sentence, not as the fields of an answer; a run that is followed ends with its outcome."""

from pathlib import Path

import pytest
from lamp_program import Said, here

CITY = """
[workspace]
name = "town"

[[rigs]]
name = "shop"
path = "shop"
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A city without a daemon, in which one automation of a rig has failed."""
    root = tmp_path / "town"
    (root / "shop").mkdir(parents=True)
    (root / "city.toml").write_text(CITY)
    assert here("init", str(root)).code == 0
    created = at(root, "automation", "create", "lint", "--rig", "shop", "--exec", "echo 3 errors; exit 1", "--manual")
    assert created.code == 0, created
    assert at(root, "automation", "run", "lint", "--wait").code == 1
    return root


def at(root: Path, *words: str) -> Said:
    return here(*words, "--city", str(root))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("automation", "pin", "lint"), "lint:rig:shop stands on top of your lists in the console.\n"),
        (("automation", "unpin", "lint"), "lint:rig:shop stands on top no longer.\n"),
        (("automation", "pins"), "You keep none on top. `lamp --city {root} automation pin NAME` does.\n"),
        (("view", "save", "bad", "--query", "state:failed"), "Kept bad: state:failed.\n"),
        (("view", "save", "bad", "--query", "state:failed", "--shared", "--first"),
         "Kept bad: state:failed (everybody sees it and you see it first).\n"),
        (("run", "claim", "lint"), "Run {run} of lint:rig:shop is claimed by {actor}.\n"),
        (("run", "unclaim", "lint"), "Run {run} of lint:rig:shop is claimed by nobody now.\n"),
        (("run", "resolve", "lint", "--outcome", "succeeded"),
         "Run {run} of lint:rig:shop is resolved: it succeeded.\n"),
    ],
)  # fmt: skip
def test_a_deed_is_told_in_a_sentence(town: Path, words: tuple[str, ...], told: str) -> None:
    run = at(town, "run", "show", "lint", "--json").json["id"][-6:]
    if words[1] == "unclaim":
        at(town, "run", "claim", "lint")
    said = at(town, *words)
    assert said.code == 0, said
    actor = said.out.removesuffix(".\n").rpartition(" by ")[2]
    assert said.out == told.format(root=town, run=run, actor=actor)


def test_a_kept_view_is_forgotten_in_a_sentence(town: Path) -> None:
    assert at(town, "view", "save", "bad", "--query", "state:failed").code == 0
    assert at(town, "view", "delete", "bad").out == "Forgot bad.\n"


def test_logs_that_are_followed_end_with_how_the_run_ended(town: Path) -> None:
    said = at(town, "run", "logs", "-f", "lint")
    assert (said.code, said.out) == (0, "3 errors\n")
    assert "failed (exit 1) after" in said.err


def test_an_automation_of_a_rig_is_found_by_its_short_name_in_every_command(town: Path) -> None:
    for words in (("automation", "show"), ("automation", "explain"), ("automation", "next"), ("automation", "history"),
                  ("automation", "export"), ("automation", "notes"), ("run", "list", "--automation")):  # fmt: skip
        said = at(town, *words, "lint")
        assert (said.code, said.err) == (0, ""), (words, said)
    assert at(town, "automation", "check", "lint").code == 1
    assert "lint:rig:shop" in at(town, "automation", "disable", "lint").out
    assert at(town, "automation", "delete", "lint").out == "Deleted lint:rig:shop.\n"
