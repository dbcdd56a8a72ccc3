"""Commands as people type them: exit codes, JSON shapes, where the city is looked for, what is never overwritten."""

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, one_sentence

EVENT = ["seq", "type", "at", "actor", "subject", "message", "payload"]
BEAD = ["id", "title", "type", "status", "labels", "assignee", "parent", "needs", "description", "metadata",
        "created_at", "closed_at"]  # fmt: skip
STATUS = ["city", "paused", "suspended", "controller", "agents", "runs", "attention", "next"]
CONTROLLER = ["running", "pid", "since", "last_tick_at", "config_error"]


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in list(os.environ):
        if name.startswith(("LAMP_", "GC_")):
            monkeypatch.delenv(name)
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    return str(root)


class TestExitCodes:
    def test_what_works_gives_zero(self, town: str) -> None:
        assert here("event", "list", "--city", town).code == 0

    def test_usage_gives_two(self, town: str) -> None:
        for arguments in (
            ["event", "emit"], ["event", "list", "--limit", "0"], ["event", "list", "--nonsense"], ["nonsense"],
            ["event", "emit", "not-a-type", "--city", town], ["event", "emit", "run.succeeded", "--city", town],
            ["event", "emit", "a.b", "--payload", "{", "--city", town],
            ["event", "list", "--since", "soon", "--city", town], ["init", "--name", "no spaces", town],
            ["event", "list", "--after", "99999999999999999999"], ["stop", "--within", "soon", "--city", town], [],
        ):  # fmt: skip
            assert here(*arguments).code == 2, arguments

    def test_what_is_not_there_gives_three(self, town: str, tmp_path: Path) -> None:
        assert one_sentence(here("bead", "show", "nope-1", "--city", town), 3)
        assert one_sentence(here("event", "list", "--city", str(tmp_path / "away")), 3)

    def test_a_conflict_gives_four(self, town: str) -> None:
        bead = here("bead", "create", "work", "--city", town, "--json").json["id"]
        assert here("bead", "claim", bead, "--assignee", "ann", "--city", town).code == 0
        assert "ann" in one_sentence(here("bead", "claim", bead, "--assignee", "ben", "--city", town), 4)

    def test_what_is_away_gives_five(self, town: str) -> None:
        (Path(town) / ".gc" / "lamp.db").unlink()
        assert one_sentence(here("event", "list", "--city", town), 5)

    def test_errors_are_json_on_standard_error_where_asked_for(self, town: str) -> None:
        said = here("bead", "show", "nope-1", "--city", town, "--json")
        assert said.problem["type"] == "not_found"
        assert said.out == ""
        assert here("event", "emit", "--json").problem["type"] == "usage"
        assert here("nonsense", "--json").problem["title"] == "UsageError"


class TestShapes:
    def test_an_event_has_its_fields(self, town: str) -> None:
        here("event", "emit", "deploy.finished", "--subject", "web", "--message", "Done.", "--actor", "ann",
             "--payload", '{"ok": true}', "--city", town)  # fmt: skip
        event = here("event", "list", "--type", "deploy.*", "--json", "--city", town).json[0]
        assert list(event)[: len(EVENT)] == EVENT
        assert event["at"].endswith("Z")
        assert {key: event[key] for key in ("type", "actor", "subject", "message", "payload")} == {
            "type": "deploy.finished", "actor": "ann", "subject": "web", "message": "Done.", "payload": {"ok": True},
        }  # fmt: skip

    def test_a_bead_has_its_fields(self, town: str) -> None:
        bead = here("bead", "create", "work", "--label", "a", "--city", town, "--json").json
        assert set(BEAD) <= set(bead)
        assert here("bead", "list", "--city", town, "--json").json[0]["labels"] == ["a"]

    def test_status_has_its_fields_also_when_nothing_runs(self, town: str) -> None:
        status = here("status", "--city", town, "--json").json
        assert set(STATUS) <= set(status)
        assert set(CONTROLLER) <= set(status["controller"])
        assert status["controller"]["running"] is False
        assert status["city"] == "town"

    def test_absent_values_are_null(self, town: str) -> None:
        here("event", "emit", "a.b", "--city", town)
        event = here("event", "list", "--type", "a.b", "--json", "--city", town).json[0]
        assert (event["subject"], event["message"], event["payload"]) == (None, None, None)

    def test_tail_prints_an_object_a_line(self, town: str) -> None:
        for number in range(3):
            here("event", "emit", "a.b", "--subject", str(number), "--city", town)
        said = here("event", "tail", "--type", "a.b", "--after", "0", "--count", "3", "--json", "--city", town)
        assert [json.loads(line)["subject"] for line in said.out.splitlines()] == ["0", "1", "2"]


class TestWhere:
    def test_the_city_may_be_named_anywhere_on_the_line(self, town: str) -> None:
        for line in (["--city", town, "event", "list"], ["event", "--city", town, "list"],
                     ["event", "list", "--city", town], ["event", "list", f"--city={town}"]):  # fmt: skip
            assert here(*line, "--json").json is not None

    def test_the_environment_names_it_and_the_flag_wins(self, town: str, tmp_path: Path) -> None:
        assert lamp("status", "--json", cwd=tmp_path, env={"LAMP_CITY": town}).json["city"] == "town"
        said = lamp("status", "--city", town, "--json", cwd=tmp_path, env={"LAMP_CITY": "/nowhere"})
        assert said.json["city"] == "town"

    def test_it_is_found_by_walking_up(self, town: str) -> None:
        deep = Path(town) / "a" / "b" / "c"
        deep.mkdir(parents=True)
        assert lamp("status", "--json", cwd=deep).json["root"] == town

    def test_no_city_around_says_what_to_do(self, tmp_path: Path) -> None:
        assert "lamp init" in one_sentence(lamp("status", cwd=tmp_path), 3)

    def test_a_working_directory_that_is_gone_is_told(self, tmp_path: Path) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        code = "import os, sys; os.rmdir(os.getcwd()); from lamplighter.cli.main import run; sys.exit(run(['status']))"
        done = subprocess.run(
            # -P: as in the installed program, modules are not looked for in the working directory.
            [sys.executable, "-P", "-c", code], cwd=gone, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 5
        assert "Traceback" not in done.stderr

    def test_who_acts_comes_from_the_session(self, town: str, tmp_path: Path) -> None:
        lamp("event", "emit", "a.b", "--city", town, cwd=tmp_path, env={"LAMP_AGENT": "coder", "LAMP_RUN_ID": "run_1"})
        event = here("event", "list", "--type", "a.b", "--city", town, "--json").json[0]
        assert (event["actor"], event["run"]) == ("coder", "run_1")


class TestInit:
    def test_what_is_there_stays_as_it_is(self, town: str) -> None:
        config = Path(town) / "city.toml"
        config.write_text('[workspace]\nname = "mine"\n', encoding="utf-8")
        files = [path for path in Path(town).rglob("*") if path.is_file() and "lamp.db" not in path.name]
        before = {path: path.read_bytes() for path in files}
        said = here("init", town)
        assert said.code == 0
        assert "nothing was changed" in said.out
        assert {path: path.read_bytes() for path in before} == before

    def test_what_is_missing_is_made(self, town: str) -> None:
        (Path(town) / ".gc" / "formulas" / "feature.formula.toml").unlink()
        (Path(town) / "city.toml").unlink()
        said = here("init", town, "--json")
        assert "city.toml" in said.json["made"]

    def test_a_name_counts_for_the_demo_too_and_is_refused_where_it_would_change_nothing(self, tmp_path: Path) -> None:
        root = tmp_path / "lane"
        assert here("init", str(root), "--demo", "--name", "lantern-street", "--json").json["city"] == "lantern-street"
        assert here("init", str(root), "--name", "lantern-street").code == 0
        said = here("init", str(root), "--name", "other")
        assert said.code == 2
        assert "is named `lantern-street`" in said.err
        assert here("init", str(tmp_path / "bad"), "--demo", "--name", "no spaces").code == 2
        assert not (tmp_path / "bad").exists()

    def test_a_city_keeps_its_id(self, town: str) -> None:
        before = (Path(town) / ".gc" / "city-id").read_text(encoding="ascii")
        here("init", town)
        assert (Path(town) / ".gc" / "city-id").read_text(encoding="ascii") == before

    def test_secrets_and_state_are_the_owners_alone(self, town: str) -> None:
        runtime = Path(town) / ".gc"
        assert runtime.stat().st_mode & 0o077 == 0
        assert (runtime / "lamp.db").stat().st_mode & 0o077 == 0

    def test_the_owners_token_is_made_before_any_daemon_runs(self, town: str) -> None:
        token = Path(town) / ".gc" / "owner.token"
        assert token.read_text(encoding="ascii").startswith("lot_")
        assert token.stat().st_mode & 0o777 == 0o600
        before = token.read_bytes()
        assert here("init", town, "--json").json["made"] == []
        assert token.read_bytes() == before
        token.unlink()
        assert here("init", town, "--json").json["made"] == [".gc/owner.token"]
        assert token.read_bytes() != before

    def test_a_city_without_an_owners_token_gets_one_at_its_start(self, town: str) -> None:
        token = Path(town) / ".gc" / "owner.token"
        token.unlink()
        assert here("start", "--city", town).code == 0
        assert token.stat().st_mode & 0o777 == 0o600
        assert here("stop", "--city", town).code == 0

    def test_a_directorys_odd_name_becomes_a_name(self, tmp_path: Path) -> None:
        root = tmp_path / "Ünïted städte! of here"
        said = here("init", str(root), "--json")
        assert said.code == 0
        assert here("event", "emit", "a.b", "--city", str(root)).code == 0
        assert here("status", "--city", str(root), "--json").json["root"] == str(root)


class TestAudit:
    def test_effects_of_a_command_without_a_daemon_are_on_record(self, town: str) -> None:
        assert here("suspend", "--city", town).code == 0
        assert here("resume", "--city", town).code == 0
        assert here("rig", "suspend", "nowhere", "--city", town).code != 0
        rows = here("audit", "list", "--json", "--city", town).json
        told = [(row["operation"], row["surface"], row["object"]) for row in rows]
        assert told == [("rig.suspend", "cli", "nowhere"), ("city.resume", "cli", None), ("city.suspend", "cli", None)]

    def test_what_changes_nothing_is_not_on_record(self, town: str) -> None:
        for line in ("config check", "agent list", "doctor", "status"):
            here(*line.split(), "--city", town)
        assert here("audit", "list", "--json", "--city", town).json == []


class TestFace:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_scripts_are_printed(self, shell: str) -> None:
        said = here("completion", shell)
        assert said.code == 0
        assert "_LAMP_COMPLETE" in said.out

    def test_completion_completes(self, tmp_path: Path) -> None:
        env = {"_LAMP_COMPLETE": "bash_complete", "COMP_WORDS": "lamp ev", "COMP_CWORD": "1"}
        program = Path(sys.executable).with_name("lamp")
        done = subprocess.run(
            [program], cwd=tmp_path, env=ENVIRONMENT | env, capture_output=True, text=True, check=False
        )
        assert "event" in done.stdout

    @pytest.mark.parametrize(
        ("line", "breaks", "expected"),
        [
            ("automation explain dusk:rig:sh", ": =", "shop"),
            ("automation explain dusk:", ": =", "rig:shop"),
            ("automation explain dusk:r", "", "dusk:rig:shop"),
            ("run list --automation=dusk:rig", ": =", "rig:shop"),
            ("automation expl", ": =", "explain"),
        ],
    )
    def test_bash_completes_names_with_colons(self, tmp_path: Path, line: str, breaks: str, expected: str) -> None:
        root = tmp_path / "town"
        here("init", str(root))
        (tmp_path / "shop").mkdir()
        here("rig", "add", str(tmp_path / "shop"), "--city", str(root))
        made = here("automation", "create", "dusk", "--rig", "shop", "--exec", "true", "--manual", "--city", str(root))
        assert made.code == 0, made
        spaced = "".join(f" {letter} " if letter in breaks.split() else letter for letter in f"lamp {line}")
        words = spaced.split()
        script = (
            f'eval "$(lamp completion bash)"; COMP_LINE={shlex.quote("lamp " + line)}; COMP_POINT=${{#COMP_LINE}};'
            f" COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1};"
            ' _lamp_completion lamp; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        env = ENVIRONMENT | {"LAMP_CITY": str(root), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        done = subprocess.run(["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, check=False)
        assert (done.stdout.split(), done.stderr) == ([expected], "")

    def test_an_unknown_command_suggests_the_nearest(self) -> None:
        assert "did you mean `status`?" in here("statsu").err
        assert "did you mean `list`?" in here("event", "lsit").err

    def test_the_version_is_told(self, tmp_path: Path) -> None:
        said = lamp("--version", cwd=tmp_path)
        assert said.out.startswith("lamp ")
        assert here("version", "--json").json["version"] == said.out.split()[1]

    def test_help_lists_every_command(self) -> None:
        said = here("--help")
        assert said.code == 0
        for name in ("init", "up", "start", "stop", "status", "event", "bead", "formula", "store"):
            assert name in said.out

    def test_there_is_no_colour_in_a_pipe(self, town: str, tmp_path: Path) -> None:
        here("bead", "create", "work", "--city", town)
        for arguments in (["bead", "list"], ["event", "list"], ["status"], ["bead", "show", "nope"], ["event", "-h"]):
            said = lamp("--city", town, *arguments, cwd=tmp_path)
            assert said.out + said.err
            assert "\x1b" not in said.out + said.err

    def test_there_is_colour_on_a_terminal(self, town: str) -> None:
        main, terminal = pty.openpty()
        try:
            subprocess.run(
                [sys.executable, "-m", "lamplighter", "status", "--city", town],
                env=ENVIRONMENT | {"TERM": "xterm"}, stdout=terminal, check=True, timeout=180,
            )  # fmt: skip
            assert b"\x1b[1m" in os.read(main, 4096)
        finally:
            os.close(main)
            os.close(terminal)

    def test_an_event_cannot_steer_the_readers_terminal(self, town: str) -> None:
        here("event", "emit", "a.b", "--message", "\x1b[2J\x07evil", "--city", town)
        for command in (["list"], ["tail", "--after", "0", "--type", "a.b", "--count", "1"]):
            said = here("event", *command, "--city", town).out
            assert "evil" in said
            assert "\x1b" not in said

    def test_a_reader_that_leaves_is_no_error(self, town: str) -> None:
        for number in range(3):
            here("event", "emit", "a.b", "--message", "x" * 60_000, "--subject", str(number), "--city", town)
        program = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", "event", "list", "--json", "--city", town],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert program.stdout is not None
        program.stdout.read(1)
        program.stdout.close()
        assert program.stderr is not None
        assert program.stderr.read() == ""
        program.stderr.close()
        assert program.wait(timeout=180) == 0
