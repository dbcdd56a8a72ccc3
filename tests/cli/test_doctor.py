"""What was green and wrong: `lamp doctor` looks at it, tells it once, and says what mends it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, until

from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city
from lamplighter.domain.slack.manifest import SCOPES
from lamplighter.store.slack import Installation


def made(tmp_path: Path, text: str = "") -> Path:
    root = tmp_path / "town"
    root.mkdir()
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[session]\nprovider = "subprocess"\n' + text)
    assert here("init", str(root)).code == 0
    return root


def define(root: Path, name: str, text: str) -> None:
    file = root / ".gc" / "formulas" / "automations" / name / "automation.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f"[automation]\n{text}\n")


def examined(root: Path) -> list[dict[str, str]]:
    said = here("--city", str(root), "doctor", "--json")
    found: list[dict[str, str]] = json.loads(said.out)
    assert said.code == any(one["level"] == "problem" for one in found)
    return found


def problems(root: Path) -> list[str]:
    found = [one for one in examined(root) if one["level"] == "problem"]
    assert all(one["advice"] for one in found), found
    details = [one["detail"] for one in found]
    assert len(details) == len(set(details))
    return details


def test_a_new_city_has_no_problem(tmp_path: Path) -> None:
    assert problems(made(tmp_path)) == []


def test_names_that_lead_nowhere_are_told_with_their_automation(tmp_path: Path) -> None:
    town = made(tmp_path)
    define(town, "agentic", 'gate = "manual"\nagent = { prompt = "p", configuration = "nope", preset = "cluade" }')
    define(town, "cook", 'gate = "manual"\nformula = "wrong"')
    define(town, "lost", 'gate = "manual"\nformula = "gone"\npool = "nobody"')
    (town / ".gc" / "formulas" / "wrong.formula.toml").write_text('formula = "wrong"\n')
    told = problems(town)
    assert "agentic: agent.configuration: there is no configuration `nope`." in told
    assert any(one.startswith("agentic: agent.preset: there is no preset `cluade`; did you mean") for one in told)
    assert any(one.startswith("lost: formula: There is no formula `gone`") for one in told)
    assert any(one.startswith("cook: formula: ") for one in told)
    assert any("no agent of the city is the pool `nobody`" in one["detail"] for one in examined(town))
    listed = json.loads(here("--city", str(town), "automation", "list", "--json").out)
    assert {one["name"]: len(one["warnings"]) for one in listed} == {"agentic": 2, "cook": 1, "lost": 1}


def test_automations_that_failures_switched_off_are_a_problem_and_disabled_ones_a_note(tmp_path: Path) -> None:
    town = made(tmp_path)
    define(town, "bad", 'gate = "cooldown"\ninterval = "1ms"\nexec = "exit 3"\nauto_disable_after = 1')
    define(town, "off", 'gate = "manual"\nexec = "true"\nenabled = false')
    start = lamp("daemon", "start", cwd=town, env={"LAMP_API_PORT": "0"})
    try:
        assert start.code == 0, start
        until(lambda: _disabled(town, "bad"))
        told = problems(town)
    finally:
        lamp("stop", cwd=town)
    assert any(one.startswith("bad is disabled: it failed 1 times in a row") for one in told), told
    notes = [one["detail"] for one in examined(town) if one["level"] == "note"]
    assert "Disabled and never fired: off." in notes


def _disabled(town: Path, name: str) -> bool:
    listed = json.loads(here("--city", str(town), "automation", "list", "--json").out)
    return any(one["name"] == name and not one["enabled"] for one in listed)


def test_an_automation_that_is_quiet_is_told(tmp_path: Path) -> None:
    town = made(tmp_path)
    define(town, "still", 'gate = "cron"\nschedule = "0 3 1 1 *"\nexec = "true"\nquiet_after = "1ms"')
    assert here("--city", str(town), "automation", "list").code == 0
    assert any(one.startswith("still is quiet: nothing has fired") for one in problems(town))


def test_destinations_that_nobody_declares_are_told(tmp_path: Path) -> None:
    town = made(tmp_path, '[[notifications.destinations]]\nname = "desk"\nkind = "command"\ncommand = "cat"\n')
    define(town, "job", 'gate = "manual"\nexec = "true"\nnotify = ["desk", "ops", "none", "slack:C1"]')
    agent = 'gate = "manual"\nagent = { prompt = "p" }\nnotify = { thread = "talk" }'
    define(town, "thinks", agent)
    told = [one for one in problems(town) if one.startswith("There is no destination")]
    assert told == [
        "There is no destination `ops`, which job would tell.",
        "There is no destination `talk`, which thinks would tell.",
    ]


def test_what_slack_conversations_name_and_is_not_there_is_told(tmp_path: Path) -> None:
    town = made(tmp_path)
    opened = open_city(Settings(town, town, "ada", None, {}))
    now = opened.clock.now()
    row = Installation("T1", "City", "U1", "B1", "codex", "", "approval", 1, 0, now, "ada", '["gone"]')
    opened.store.transact(lambda tx: tx.slack.put(row))
    opened.close()
    assert "Conversations in City (T1) name configurations that are not there: gone." in problems(town)


def test_what_keeps_slack_s_conversations_from_being_as_they_could_is_noted(tmp_path: Path) -> None:
    town = made(tmp_path)
    opened = open_city(Settings(town, town, "ada", None, {}))
    now = opened.clock.now()
    for team, scopes in (("T1", "chat:write"), ("T2", ",".join(SCOPES)), ("T3", "")):
        row = Installation(team, team, "U1", "B1", "codex", "", "approval", 1, 0, now, "ada", scopes=scopes)
        opened.store.transact(lambda tx, row=row: tx.slack.put(row))
    opened.store.transact(lambda tx: tx.slack.unstreamed("T2", "missing_scope", now))
    opened.close()
    first, second, third = [one for one in examined(town) if one["check"] == "slack"]
    assert first["detail"].startswith("The app in T1 lacks scopes: app_mentions:read, assistant:write,")
    assert "lamp slack manifest" in first["advice"]
    assert "edited: Slack refused to stream one (missing_scope)" in second["detail"]
    assert third["detail"] == "Slack was not asked yet what the app in T3 may do."
    assert {one["level"] for one in (first, second, third)} == {"note"}


def test_a_destination_that_takes_no_notices_is_told(tmp_path: Path) -> None:
    text = '[notifications]\nto = ["desk"]\n[[notifications.destinations]]\nname = "desk"\nkind = "command"\n'
    town = made(tmp_path, f'{text}command = "echo no paper >&2; exit 1"\n')
    assert here("--city", str(town), "notify", "test", "desk").code != 0
    (told,) = problems(town)
    assert told.startswith("Destination desk takes no notices: ")
    assert "no paper" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[beads]\nprovider = "bd"\n', "`bd` is not on the PATH"),
        ('[beads]\nprovider = "exec:beads.sh"\n', "beads.sh is not there"),
        ('[mail]\nprovider = "exec:mail.sh"\n', "[mail] provider names "),
        ('[runs]\nprovider = "exec:run.sh"\n', "[runs] provider names "),
        ('[[agents]]\nname = "a"\nprovider = "codex"\n', "Agent `a` needs `codex`, which is not on the path."),
    ],
)
def test_what_the_configuration_names_and_is_not_installed_is_told(tmp_path: Path, text: str, told: str) -> None:
    town = made(tmp_path, text)
    said = lamp("doctor", "--json", cwd=town, env={"PATH": "/usr/bin:/bin"})
    found = [one for one in said.json if one["level"] == "problem"]
    assert sum(told in one["detail"] for one in found) == 1, found
    assert all(one["advice"] for one in found)


def test_k8s_is_refused_and_told_once(tmp_path: Path) -> None:
    town = made(tmp_path)
    (town / "city.toml").write_text('[session]\nprovider = "k8s"\n')
    assert sum("`k8s` is not one of" in one for one in problems(town)) == 1


def test_agent_programs_are_told_with_version_and_the_one_that_would_be_taken(tmp_path: Path) -> None:
    town = made(tmp_path, '[providers.mine]\ncommand = "mine"\ndisplay_name = "My program"\n')
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "codex": "echo WARNING: no PATH alias; echo codex-cli 9.8.7.",
        "mine": "exit 3",
        "claude": "echo 1.2.3; exit 0",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    said = lamp("doctor", "--json", cwd=town, env={"PATH": f"{programs}:/usr/bin:/bin"})
    told = [one["detail"] for one in said.json if one["check"] == "programs"]
    assert f"Codex (`codex`) is {programs}/codex: codex-cli 9.8.7." in told
    assert f"Claude Code (`claude`) is {programs}/claude: 1.2.3." in told
    assert f"My program (`mine`) is {programs}/mine: its version is unknown, because `--version` ended with 3." in told
    assert "Runs that name no preset take `mine`." in told


def test_a_low_limit_of_open_files_is_told(tmp_path: Path) -> None:
    town = made(tmp_path)
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 200; exec "$@"', "sh", sys.executable, "-m", "lamplighter", "doctor", "--json"],
        cwd=town, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    found = [one for one in json.loads(done.stdout) if one["check"] == "machine"]
    assert [one["detail"] for one in found] == ["A process here may open at most 200 files."]


def test_broken_files_are_in_the_status_of_a_running_city_and_told_once_by_the_doctor(tmp_path: Path) -> None:
    town = made(tmp_path)
    define(town, "bad", 'gate = "cron"\nschedule = "61 * * * *"\nexec = "true"')
    assert lamp("daemon", "start", cwd=town, env={"LAMP_API_PORT": "0"}).code == 0
    try:
        status = lamp("status", "--json", cwd=town).json
        told = problems(town)
    finally:
        lamp("stop", cwd=town)
    assert "bad/automation.toml: automation.schedule:" in status["controller"]["problems"]["automations"]
    assert sum("minutes go from 0 to 59" in one for one in told) == 1


CLOCKED = Path(__file__).parent.parent / "golden" / "clocked_lamp.py"
DAY_S = 24 * 3600


def looked_at(town: Path, *, ahead: float) -> list[str]:
    """What the doctor tells on a machine whose clock runs ahead by so many seconds, of the clock."""
    file = town.parent / "ahead"
    file.write_text(str(ahead))
    done = subprocess.run(
        [sys.executable, str(CLOCKED), "--city", str(town), "doctor", "--json"],
        env=ENVIRONMENT | {"CLOCK_AHEAD_FILE": str(file)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    found = [one for one in json.loads(done.stdout) if one["check"] in {"clock", "machine"}]
    assert all(one["level"] == "problem" and one["advice"] for one in found), found
    return [one["detail"] for one in found]


def test_a_clock_that_is_off_is_told_with_what_mends_it(tmp_path: Path) -> None:
    town = made(tmp_path)
    assert here("--city", str(town), "event", "emit", "lamp.lit").code == 0
    assert looked_at(town, ahead=0) == []
    assert looked_at(town, ahead=DAY_S) == [], "who knows the time?"
    (back,) = looked_at(town, ahead=-DAY_S)
    assert back.startswith("The clock was set back by ")
    assert any("which is long past" in one for one in looked_at(town, ahead=-20 * 365 * DAY_S))


def test_a_clock_that_differs_from_the_database_s_is_told(tmp_path: Path, postgres_url: str) -> None:
    town = made(tmp_path, f'[store]\nurl = "{postgres_url}"\n')
    assert looked_at(town, ahead=0) == []
    for seconds in (60, -60):
        (told,) = [one for one in looked_at(town, ahead=seconds) if "away from the database's" in one]
        assert f"{seconds:+.1f}"[:2] in told
