"""Building an agent: command, prompt, environment, directory, hook files; nothing of a person's is overwritten."""

import json
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.workshop import FileWorkshop, branches_of
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import SessionSpec
from lamplighter.kit.errors import LampError
from lamplighter.testing.clock import FakeClock

HEAD = '[workspace]\nname = "town"\n'


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.home = root / "home"
        self.home.mkdir()
        (root / ".gc").mkdir()

    def program(self, name: str) -> None:
        path = self.bin / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    def build(self, text: str, instance: str = "mayor", head: str = HEAD, **env: str) -> SessionSpec:
        (self.root / "city.toml").write_text(head + text)
        loaded = load_city(self.root, env={})
        parent = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home)} | env
        agent = next(one for one in loaded.city.agents if instance.startswith(one.qualified_name))
        return FileWorkshop(self.root / ".gc", parent, FakeClock(), {"TMUX": "/s,0,0"}).build(loaded, agent, instance)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_command_of_its_own_is_a_template_and_gets_no_prompt_it_did_not_ask_for(bench: Bench) -> None:
    spec = bench.build('[[agents]]\nname = "mayor"\nstart_command = "run {{.Agent}} {{.CityName}} {{.Session}}"\n')
    assert spec.command == ("/bin/sh", "-c", "run mayor town gc-town-mayor")
    assert (spec.readiness.delay, spec.dialogs, spec.process_names) == (timedelta(0), (), ())


@pytest.mark.parametrize(
    ("more", "tail"),
    [("", " '[town] mayor"), ('prompt_mode = "flag"\nprompt_flag = "--say"\n', " --say '[town] mayor"),
     ('prompt_mode = "none"\n', "")],
)  # fmt: skip
def test_a_rendered_prompt_follows_the_command_as_its_mode_says(bench: Bench, more: str, tail: str) -> None:
    (bench.root / "p.md").write_text("You are {{.AgentName}}; it's {{.TEAM}}.")
    spec = bench.build(
        f'[[agents]]\nname = "mayor"\nstart_command = "run"\nprompt_template = "p.md"\nenv = {{ TEAM = "web" }}\n{more}'
    )
    command = spec.command[2]
    assert command.startswith(f"run{tail}")
    assert ("You are mayor; it'\"'\"'s web." in command) is bool(tail)


def test_a_program_gets_no_prompt_if_its_agent_wants_none(bench: Bench) -> None:
    bench.program("claude")
    spec = bench.build('[[agents]]\nname = "mayor"\nprovider = "claude"\nprompt_mode = "none"\n')
    assert not any("[town] mayor" in word for word in spec.command)


def test_a_preset_drives_its_program_and_seeds_what_it_must_find(bench: Bench) -> None:
    bench.program("claude")
    spec = bench.build('[[agents]]\nname = "mayor"\nprovider = "claude"\nnudge = "Check mail."\n')
    assert spec.command[:2] == ("claude", "--dangerously-skip-permissions")
    assert spec.command[2] == "--session-id", "its conversation has a name from the first second"
    assert ("--settings", str(bench.root / ".gc/settings.json")) == spec.command[4:6]
    assert spec.command[-1].startswith("[town] mayor \N{BULLET} ")
    assert spec.dialogs
    assert "claude" in spec.process_names
    assert spec.nudge == "Check mail."
    hooks = json.loads((bench.root / ".gc/settings.json").read_text())["hooks"]
    assert hooks["SessionStart"][0]["hooks"][0]["command"] == "lamp prime"
    seeded = bench.home / ".claude.json"
    assert json.loads(seeded.read_text())["hasCompletedOnboarding"] is True
    assert stat.S_IMODE(seeded.stat().st_mode) == 0o600


@pytest.mark.parametrize("more", ["", '[providers.goose]\ncommand = "goose"\n'])
def test_a_program_gets_the_keys_it_reads_from_whoever_starts_it_unless_the_agent_has_its_own(
    bench: Bench, more: str
) -> None:
    bench.program("goose")
    spec = bench.build(
        '[[agents]]\nname = "mayor"\nprovider = "goose"\nenv = { GOOSE_MODEL = "small" }\n' + more,
        GOOSE_PROVIDER="openai", GOOSE_MODEL="large", LLM_API_KEY="of another program",
    )  # fmt: skip
    assert (spec.env["GOOSE_PROVIDER"], spec.env["GOOSE_MODEL"]) == ("openai", "small")
    assert "LLM_API_KEY" not in spec.env


def test_arguments_of_the_agent_replace_those_of_the_preset(bench: Bench) -> None:
    bench.program("claude")
    spec = bench.build('[[agents]]\nname = "mayor"\nprovider = "claude"\nargs = ["--careful"]\nprompt_mode = "none"\n')
    assert spec.command[:2] == ("claude", "--careful")
    assert "--dangerously-skip-permissions" not in spec.command


def test_a_program_of_the_city_is_started_as_declared(bench: Bench) -> None:
    bench.program("house-bot")
    spec = bench.build(
        '[[agents]]\nname = "mayor"\nprovider = "house"\n[providers.house]\ncommand = "house-bot"\nargs = ["--auto"]\n'
        'ready_delay_ms = 3000\nprocess_names = ["house-bot"]\nenv = { MODE = "agent" }\n'
    )
    assert spec.command[:2] == ("house-bot", "--auto")
    assert (spec.readiness.delay, spec.process_names) == (timedelta(seconds=3), ("house-bot",))
    assert spec.env["MODE"] == "agent"


def test_every_preset_may_be_named_and_a_shell_is_never_meant_by_silence(bench: Bench) -> None:
    bench.program("goose")
    spec = bench.build('[[agents]]\nname = "mayor"\nprovider = "goose"\n')
    assert spec.command[:2] == ("goose", "session")
    (bench.bin / "goose").unlink()
    with pytest.raises(LampError, match="names no provider, and none is on the path"):
        bench.build('[[agents]]\nname = "mayor"\n', PATH=f"{bench.bin}:/bin")


def test_a_missing_program_is_told_by_name(bench: Bench) -> None:
    with pytest.raises(LampError, match="needs `codex`, which is not on the path"):
        bench.build('[[agents]]\nname = "mayor"\nprovider = "codex"\n')


def test_an_agent_is_started_again_with_its_conversation_unless_it_is_not_to_be(bench: Bench) -> None:
    bench.program("claude")
    text = '[[agents]]\nname = "mayor"\nprovider = "claude"\n'
    name = bench.build(text).command[3]
    (bench.home / ".claude/projects/town").mkdir(parents=True)
    (bench.home / f".claude/projects/town/{name}.jsonl").write_text("{}")
    assert "--resume" not in bench.build(text + 'resume = "never"\n').command
    again = bench.build(text)
    assert again.command[2:4] == ("--resume", name)
    assert "started again" in again.command[-1]
    assert "--resume" not in bench.build(text).command, "it died twice within a minute, and begins anew"


def test_hook_files_of_a_person_stay(bench: Bench) -> None:
    (bench.root / ".gemini").mkdir()
    (bench.root / ".gemini/settings.json").write_text('{"mine": true}')
    (bench.root / ".gc/settings.json").write_text('{"hooks": {}}')
    text = (
        '[[agents]]\nname = "mayor"\nstart_command = "run"\n'
        'install_agent_hooks = ["claude", "gemini", "opencode", "copilot"]\n'
    )
    bench.build(text)
    assert (bench.root / ".gemini/settings.json").read_text() == '{"mine": true}'
    assert (bench.root / ".gc/settings.json").read_text() == '{"hooks": {}}'
    assert "lamp prime" in (bench.root / ".opencode/plugins/lamplighter.js").read_text()
    assert "lamp hook" in (bench.root / ".github/copilot-instructions.md").read_text()


def test_an_agent_of_a_rig_works_in_the_rig_and_a_rig_that_is_gone_is_not_made(bench: Bench, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    rig = f'[[rigs]]\nname = "shop"\npath = "{elsewhere}"\n'
    text = '[[agents]]\nname = "smith"\ndir = "shop"\nstart_command = "run"\n' + rig
    with pytest.raises(LampError, match=r"rig `shop`.*is not there"):
        bench.build(text, "shop/smith")
    assert not elsewhere.exists()
    elsewhere.mkdir()
    spec = bench.build(text, "shop/smith")
    assert (spec.work_dir, spec.env["GC_DIR"], spec.env["GC_RIG"]) == (str(elsewhere), str(elsewhere), "shop")
    assert spec.name == "gc-town-shop--smith"


def test_setup_and_marks_of_a_pool_instance(bench: Bench) -> None:
    (bench.root / "after.sh").write_text("#!/bin/sh\n")
    spec = bench.build(
        '[[agents]]\nname = "hand"\nstart_command = "run"\noverlay_dir = "over"\npre_start = ["fetch {{.WorkDir}}"]\n'
        'session_setup = ["tmux rename {{.Session}}"]\nsession_setup_script = "after.sh"\n[agents.pool]\nmax = 3\n',
        "hand-2",
    )
    assert spec.setup.before == (f"fetch {bench.root}",)
    assert spec.setup.after[0] == "export TMUX=/s,0,0; tmux rename gc-town-hand-2"
    assert spec.setup.after[1].endswith(str(bench.root / "after.sh"))
    assert spec.setup.overlay_dir == str(bench.root / "over")
    assert (spec.meta[meta.AGENT], spec.meta[meta.POOL]) == ("hand-2", "hand")


def test_fingerprints_hold_no_time_and_no_instance(bench: Bench) -> None:
    text = '[[agents]]\nname = "hand"\nstart_command = "run"\n[agents.pool]\nmax = 3\n'
    first, second = bench.build(text, "hand-1"), bench.build(text, "hand-2")
    assert first.meta[meta.FINGERPRINT] == second.meta[meta.FINGERPRINT]


def test_agents_find_lamp_itself(bench: Bench) -> None:
    spec = bench.build('[[agents]]\nname = "mayor"\nstart_command = "run"\n')
    assert any((Path(folder) / "lamp").exists() for folder in spec.env["PATH"].split(os.pathsep))


def test_branches_are_read_without_git(tmp_path: Path) -> None:
    assert branches_of(tmp_path / "none") == branches_of(tmp_path)
    git = tmp_path / "shop/.git"
    (git / "refs/remotes/origin").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/feature/lamps\n")
    (git / "refs/remotes/origin/HEAD").write_text("ref: refs/remotes/origin/main\n")
    found = branches_of(tmp_path / "shop")
    assert (found.current, found.default) == ("feature/lamps", "main")
    (git / "HEAD").write_text("0123456789abcdef\n")
    assert branches_of(tmp_path / "shop").current == ""
