"""A real city, made by commands and files, whose every answer is captured with what is never the same twice masked."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from golden_masking import masked
from lamp_program import ENVIRONMENT, Said, here, lamp, until

import lamplighter

WITHIN_S = 120
WAITING = ("artifact_written", "prompt_sent")
"""The last events of an agent's run whose program is at work."""
FINALISED = ("artifact_written", "artifact_written", "worktree_kept")
"""The last events of an agent's run that worked in a worktree and was completed."""
PROGRAM = (sys.executable, "-m", "lamplighter")
AGENT_PROGRAM = Path(__file__).with_name("scripted_agent.py")
CONFIG = """
[workspace]
name = "town"
timezone = "UTC"

[api]
port = 0

[session]
provider = "subprocess"

[daemon]
shutdown_timeout = "2s"
max_restarts = 50

[[rigs]]
name = "web"
path = "web"
prefix = "we"

[[agents]]
name = "mayor"
start_command = '''echo ready; while read -r line; do echo "heard $line"; done'''

[[agents]]
name = "deputy"
start_command = "exec sleep 600"
suspended = true

[[agents]]
name = "coder"
dir = "web"
start_command = "exec sleep 600"
[agents.pool]
min = 1
max = 2

[[configurations]]
name = "site"
rig = "web"
description = "The web site."
env = { API_TOKEN = "secret", LANG = "C" }
"""
AGENT = 'gate = "manual"\n[automation.agent]\npreset = "claude"\n'
AUTOMATIONS = {
    "sweep": 'description = "Sweeps the streets."\ngate = "manual"\nexec = "echo swept"\n',
    "fail": 'gate = "manual"\nexec = "echo no oil >&2; exit 3"\n',
    "leap-day": 'gate = "cron"\nschedule = "30 3 29 2 *"\nexec = "true"\ntimeout = "10m"\ndeadline = "1h"\n',
    "guard": 'gate = "condition"\ncheck = "exit 1"\nexec = "true"\n',
    "broken": 'gate = "never-heard-of"\nexec = "true"\n',
    "light": f'{AGENT}prompt = "Light the lamps."\nconfiguration = "site"\n',
    "wait": f'{AGENT}prompt = "Wait."\nmodel = "patient"\n',
}


@dataclass
class GoldenCity:
    """`commands` is what each command answered, by the name of its golden file."""

    root: Path
    env: dict[str, str]
    own_texts: dict[str, str] = field(default_factory=dict)
    commands: dict[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """Texts of this machine, and what stands for them."""
        return self.own_texts | {
            str(self.root): "<city>",
            str(self.root.parent): "<directory>",
            sys.executable: "<python>",
            str(Path(sys.executable).parent): "<bin>",
            os.uname().nodename: "<host>",
            lamplighter.__version__: "<version>",
            self.env["PATH"]: "<path>",
            **{path: f"<{name}>" for name in ("git", "tmux") if (path := shutil.which(name))},
        }

    def masked(self, value: Any) -> Any:
        return masked(value, self.texts)

    def call(self, *words: str) -> Said:
        """A command within this process."""
        return here(*words, "--json", "--city", str(self.root))

    def program(self, *words: str, **env: str) -> Said:
        """A command as a program of its own: one that starts processes, sets up the log or needs another `env`."""
        return lamp(*words, "--json", cwd=self.root, env=self.env | env)

    def json(self, *words: str) -> Any:
        said = self.call(*words)
        assert said.code == 0, said
        return said.json

    def record(self, command: str, *arguments: str, case: str = "", by_program: bool = False) -> Any:
        """Capture what a command answers; `case` tells it from other golden files of the same command."""
        call = self.program if by_program else self.call
        return self.keep(command, call(*command.split(), *arguments), case=case)

    def keep(self, command: str, said: Said, *, case: str = "") -> Any:
        name = command.replace(" ", "-") + (f"--{case}" if case else "")
        assert name not in self.commands, f"{name} is captured twice"
        out = parsed(said.out)
        self.commands[name] = {"exit": said.code, "out": self.masked(out), "err": self.masked(parsed(said.err))}
        return out

    def bus(self, after: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("event", "list", "--after", str(after), "--limit", "10000")
        return found

    def last_seq(self) -> int:
        newest = self.json("event", "list", "--limit", "1")
        return newest[0]["seq"] if newest else 0

    def agent(self, name: str) -> dict[str, Any]:
        return next(row for row in self.json("agent", "list") if row["name"] == name)

    def started(self, name: str, *, after: str | None = None) -> str:
        """Waits for a session of the agent other than `after`, and for its start to be on record."""

        def found() -> str | None:
            row = next((row for row in self.json("agent", "list") if row["name"] == name), None)
            if row is None or row["state"] != "running" or row["session_id"] in {None, after}:
                return None
            told = [one["payload"]["session_id"] for one in self.bus() if one["type"] == "agent.started"]
            return row["session_id"] if row["session_id"] in told else None

        session: str = until(found)
        return session

    def fired(self, automation: str, *, until_events: Sequence[str]) -> str:
        """Fires it by hand and waits for these events of its run."""
        run: str = self.json("automation", "run", automation)["id"]

        def told() -> bool:
            events = [event["type"] for event in self.json("run", "show", run)["events"]]
            return all(events.count(one) >= until_events.count(one) for one in until_events)

        until(told)
        return run

    def release(self, run: str) -> None:
        """Waits for the end of the run's session to be on record."""
        until(lambda: (run, "ended") in [(one["run"], one["state"]) for one in self.json("session", "list", "--all")])


def parsed(text: str) -> Any:
    """JSON, or an object a line; nothing is null. Lines of the log, which go to standard error too, are left out."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")] or None


@contextmanager
def a_city(parent: Path, *, store: str = "") -> Iterator[GoldenCity]:
    """Made and furnished, on SQLite or on the database that `store` names; what still runs at the end is stopped."""
    with pytest.MonkeyPatch.context() as patch:
        env = _surroundings(parent)
        for name in [name for name in os.environ if name.startswith(("LAMP_", "GC_"))]:
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        city = GoldenCity(parent / "town", env, {store: "<store>"} if store else {})
        if store:
            city.root.mkdir()
            _configure(city.root, store)
        city.keep("init", lamp("init", str(city.root), "--json", cwd=parent, env=env))
        _configure(city.root, store)
        _furnish(city.root)
        try:
            yield city
        finally:
            assert city.program("stop").code == 0


@contextmanager
def running(city: GoldenCity, *command: str, program: Sequence[str] = PROGRAM) -> Iterator[Said]:
    """A process of the city in the foreground, such as `lamp up`, for as long as the block; what it said first."""
    process = subprocess.Popen(
        [*program, *command, "--json", "--city", str(city.root)],
        env=ENVIRONMENT | city.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield Said(0, process.stdout.readline(), "")
    finally:
        process.terminate()
        process.stdout.close()
        _ended(process)


def _ended(process: "subprocess.Popen[str]") -> None:
    try:
        process.wait(timeout=WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def _surroundings(parent: Path) -> dict[str, str]:
    """A home of its own, and an agent program on the path that does as it is told."""
    home, programs = parent / "home", parent / "programs"
    home.mkdir()
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{AGENT_PROGRAM}" "$@"\n')
    claude.chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    who = {f"GIT_{who}_{what}": "ann@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"HOME": str(home), "PATH": path, "TZ": "UTC", "XDG_CONFIG_HOME": str(home / "config"), **who}


def _configure(root: Path, store: str) -> None:
    (root / "city.toml").write_text(CONFIG + (f'\n[store]\nurl = "{store}"\n' if store else ""))


def _furnish(root: Path) -> None:
    for name, text in AUTOMATIONS.items():
        folder = root / ".gc" / "formulas" / "automations" / name
        folder.mkdir(parents=True)
        (folder / "automation.toml").write_text(f"[automation]\n{text}")
    (root / "web").mkdir()
    (root / "web" / "index.html").write_text("lamps\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=root / "web", check=True, timeout=WITHIN_S)
