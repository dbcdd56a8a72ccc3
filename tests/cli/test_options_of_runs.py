"""Options of commands about agents' runs: each is given inside a run, or about one, and what it leaves is looked at."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lamp_program import ENVIRONMENT, here, lamp, until

LAMP = f"{sys.executable} -m lamplighter"
PLANS = f"""#!/bin/sh
case "$*" in *"you only plan"*) ;; *) echo "$*" > "$LAMP_CITY/told" ;; esac
exec {LAMP} run complete --outcome succeeded --summary "1. Trim the wick."
"""
CITY = '[workspace]\nname = "town"\n[api]\nport = 0\n[session]\nprovider = "subprocess"\n'


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(CITY)
    return root


def ask(town: Path, *words: str) -> Any:
    said = here("--city", str(town), *words, "--json")
    assert said.code == 0, said
    return said.json


def worked(town: Path, name: str, script: str, *more: str) -> dict[str, Any]:
    """The run of an automation whose agent is a shell script, worked by the command itself."""
    words = ("--prompt", script, "--preset", "shell", "--mode", "full_access", "--manual", *more)
    ask(town, "automation", "create", name, *words)
    run: dict[str, Any] = lamp("automation", "run", name, "--json", cwd=town).json
    return run


def completed(town: Path, name: str, options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run, and what its completion says as it is kept."""
    run = worked(town, name, f"exec {LAMP} run complete {options}")
    kept = town / ".gc" / "artifacts" / "runs" / str(run["id"]) / "completion.json"
    return run, json.loads(kept.read_text())


def test_what_a_completion_says_is_kept(town: Path) -> None:
    plain, bare = completed(town, "plain", "--outcome succeeded --summary Lit.")
    assert (plain["state"], plain["summary"]) == ("succeeded", "Lit.")
    cases = {
        "run complete --citation": ("--citation a.txt --citation b.txt", "citations", ["a.txt", "b.txt"]),
        "run complete --diff-ref": ("--diff-ref branch", "diff_ref", "branch"),
        "run complete --test-report-ref": ("--test-report-ref report", "test_report_ref", "report"),
        "run complete --side-effect-ref": ("--side-effect-ref '#12'", "side_effect_refs", ["#12"]),
    }
    for number, (option, (words, key, value)) in enumerate(cases.items()):
        _, kept = completed(town, f"n{number}", f"--outcome succeeded {words}")
        assert (kept[key], bare[key]) == (value, [] if isinstance(value, list) else None), option
    failed, _ = completed(town, "failed", "--outcome failed --summary Dark.")
    assert failed["state"] == "failed", "run complete --outcome, run complete --summary"
    assert failed["summary"] == "Dark."
    said = f"{LAMP} run complete --outcome succeeded"
    for name, option, times in (("same", "", 0), ("other", "--completion-id other", 1)):
        run = worked(town, name, f"{said} {option}; {said} || echo refused")
        logs = here("--city", str(town), "run", "logs", run["id"]).out
        assert logs.split().count("refused") == times, "run complete --completion-id"


def test_what_a_question_says_is_kept(town: Path) -> None:
    plain = worked(town, "plain", f"exec {LAMP} run ask --question Which?")
    asks = worked(
        town, "asks",
        f"exec {LAMP} run ask --question Where? --choice left --choice right --summary 'Found two.'"
        " --without-answer Left.",
    )  # fmt: skip
    assert plain["question"]["text"] == "Which?", "run ask --question"
    assert asks["question"]["text"] == "Where?"
    assert (plain["question"]["choices"], asks["question"]["choices"]) == ([], ["left", "right"]), "run ask --choice"
    assert asks["summary"] == "Found two." != plain["summary"], "run ask --summary"
    shown = [here("--city", str(town), "run", "show", one["id"]).out for one in (plain, asks)]
    assert ["Left." in one for one in shown] == [False, True], "run ask --without-answer"


def test_worktrees_are_listed_up_to_a_number(town: Path) -> None:
    (town / ".gitignore").write_text(".gc\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=town, check=True)
    for name in ("one", "two"):
        worked(town, name, f"touch work; exec {LAMP} run ask --question Which?")
    assert len(ask(town, "worktree", "list")) == 2
    assert len(ask(town, "worktree", "list", "--limit", "1")) == 1, "worktree list --limit"


def test_a_plan_is_decided_upon_with_words(town: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(PLANS)
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    words = ("--prompt", "Light it.", "--preset", "claude", "--mode", "full_access", "--approve", "plan", "--manual")
    ask(town, "automation", "create", "planned", *words)

    def planned() -> str:
        run = lamp("automation", "run", "planned", "--json", cwd=town, env=env).json
        assert (run["state"], run["reason"]) == ("needs_human", "plan"), run
        return str(run["id"])

    def item(run: str) -> str:
        return next(str(one["id"]) for one in ask(town, "inbox", "list") if run in one["runs"])

    for command, named in (("run reject", str), ("inbox reject", item)):
        run = planned()
        ask(town, *command.split(), named(run), "--reason", f"Not by {command}.")
        events = ask(town, "run", "show", run)["events"]
        told = [one["data"] for one in events if f"Not by {command}." in json.dumps(one)]
        assert told, "run reject --reason, inbox reject --reason"
    for command, named in (("run approve", str), ("inbox approve", item)):
        run = planned()
        ask(town, *command.split(), named(run), "--text", f"Mind the curtains by {command}.")
        after = ask(town, "run", "show", run)["continued_by"]
        shown = here("--city", str(town), "run", "inputs", after).out
        assert f"Mind the curtains by {command}." in shown, "run approve --text, inbox approve --text"


def test_one_subscription_of_two_is_ended(town: Path) -> None:
    with (town / "city.toml").open("a") as file:
        file.write('[[agents]]\nname = "mayor"\nstart_command = "exec sleep 600"\n')
        for name in ("desk", "door"):
            file.write(f'[[notifications.destinations]]\nname = "{name}"\nkind = "command"\ncommand = "cat"\n')
    assert lamp("daemon", "start", cwd=town).code == 0
    try:
        session = until(lambda: ask(town, "session", "list"))[0]["id"]
        for name in ("desk", "door"):
            ask(town, "session", "subscribe", session, "--to", name)
        ask(town, "session", "unsubscribe", session, "--to", "door")
        left = [one["destination"] for one in ask(town, "session", "subscriptions")]
        assert left == ["desk"], "session unsubscribe --to"
    finally:
        assert lamp("stop", cwd=town).code == 0


def test_events_are_followed_from_a_time_on_and_of_one_actor(town: Path) -> None:
    for name, actor in (("first", "ann"), ("second", "ben")):
        ask(town, "event", "emit", f"lamp.{name}", "--actor", actor)

    def first(*words: str) -> str:
        return str(ask(town, "event", "tail", "--type", "lamp.*", "--count", "1", *words)["type"])

    assert first("--after", "0") == "lamp.first"
    assert first("--after", "0", "--actor", "ben") == "lamp.second", "event tail --actor"
    assert first("--since", "1h") == "lamp.first", "event tail --since"
    line = [sys.executable, "-m", "lamplighter", "--city", str(town), "event", "tail", "--count", "1", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as waits:
        try:
            until(lambda: _emitted_until_seen(town, waits))
            assert waits.stdout is not None
            assert json.loads(waits.stdout.readline())["type"] == "lamp.third", "without it, only what comes"
        finally:
            waits.kill()


def _emitted_until_seen(town: Path, waits: "subprocess.Popen[str]") -> bool:
    ask(town, "event", "emit", "lamp.third")
    with contextlib.suppress(subprocess.TimeoutExpired):
        waits.wait(0.2)
    return waits.poll() is not None


def test_a_browser_is_started_unless_the_link_is_only_printed(town: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    env = {"PATH": path, "DISPLAY": ":99", "BROWSER": str(program)}
    assert lamp("daemon", "start", cwd=town).code == 0
    try:
        assert _on_a_terminal(town, env, "open", "--print") == 0
        assert not (tmp_path / "opened").exists(), "open --print"
        assert _on_a_terminal(town, env, "open") == 0
        assert until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text()).startswith("http")
    finally:
        assert lamp("stop", cwd=town).code == 0


def _on_a_terminal(town: Path, env: dict[str, str], *words: str) -> int:
    leader, follower = pty.openpty()
    try:
        line = [sys.executable, "-m", "lamplighter", *words]
        return subprocess.run(
            line, cwd=town, stdout=follower, env=ENVIRONMENT | env, check=False, timeout=120
        ).returncode
    finally:
        os.close(leader)
        os.close(follower)
