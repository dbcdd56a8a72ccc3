"""Real agent programs as agents of a city: in tmux, by their presets, on a home that nothing was ever run in."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lamp_program import Said, here, lamp
from programs import PROGRAMS, Program, processes_at_home

from lamplighter.testing.model_server import ModelServer, Say

pytestmark = pytest.mark.agents

WITHIN_S = 30
CITY = """
[workspace]
name = "town"
[session]
provider = "tmux"
[daemon]
shutdown_timeout = "5s"
[[agents]]
name = "mayor"
provider = "{program}"
env = {{ SCRIPTED_KEY = "dummy" }}
"""
ANSWER = "The lamps burn bright."
NUDGE = "Light the lamps of Mill KindLimit."


@dataclass(frozen=True)
class Town:
    """A city whose one agent is a real program, driven as a person would: by commands in processes of their own."""

    root: Path
    home: Path
    env: Mapping[str, str]

    def lamp(self, *words: str) -> Said:
        said = lamp(*words, cwd=self.root, env=self.env)
        assert said.code == 0, (words, said)
        return said

    @property
    def mayor(self) -> dict[str, Any]:
        (row,) = here("agent", "list", "--json", "--city", str(self.root)).json
        assert isinstance(row, dict)
        return row

    def screen(self) -> str:
        return here("agent", "peek", "mayor", "--city", str(self.root)).out

    def processes(self) -> dict[int, str]:
        """With the names of the programs: the daemon, the tmux server, the agent and all that it started."""
        return {pid: name_of(pid) for pid in processes_at_home(self.home)}


@pytest.fixture(params=["codex", "goose"])
def program(request: pytest.FixtureRequest) -> Program:
    found = PROGRAMS[request.param]
    if not (found.folder / found.name).exists():
        pytest.fail(f"{found.name} is not installed; `make test` installs it")
    return found


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(Say(ANSWER)) as server:
        yield server


@pytest.fixture
def town(program: Program, model: ModelServer, tmp_path: Path) -> Iterator[Town]:
    home, root = tmp_path / "home", tmp_path / "town"
    home.mkdir()
    program.furnish(home, model.url, deny=False)
    made = Town(root, home, program.env(model.url, home) | {"GOOSE_MODEL": "scripted-model"})
    assert lamp("init", str(root), cwd=tmp_path, env=made.env).code == 0
    (root / "city.toml").write_text(CITY.format(program=program.name))
    yield made
    made.lamp("stop")


def until(check: Callable[[], object], told: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not check():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def heard(model: ModelServer, text: str) -> bool:
    return any(text in json.dumps(asked.body) for asked in list(model.asked))


def after(words: str, screen: str) -> str:
    return screen.rpartition(words)[2]


def test_it_becomes_ready_takes_a_nudge_is_peeked_drained_and_stopped_with_nothing_left(
    town: Town, program: Program, model: ModelServer
) -> None:
    town.lamp("daemon", "start")
    until(lambda: town.mayor["state"] == "running" and heard(model, "lamp prime"), town.screen)

    town.lamp("agent", "nudge", "mayor", NUDGE)
    until(lambda: heard(model, NUDGE), town.screen)
    until(lambda: ANSWER in after(NUDGE, town.screen()), town.screen)

    before, at_work = town.mayor["session_id"], town.processes()
    assert {program.name, "tmux: server"} <= set(at_work.values())
    town.lamp("agent", "drain", "mayor")
    until(lambda: town.mayor["state"] == "draining", lambda: town.mayor)
    assert town.mayor["session_id"] == before, "it may finish what it does"
    town.lamp("agent", "drain-ack", "mayor")
    until(lambda: town.mayor["session_id"] not in {None, before}, lambda: town.mayor)
    drained = {pid for pid, name in at_work.items() if name in {program.name, "node", "node-MainThread"}}
    assert not drained & town.processes().keys(), "all of the drained session is gone"

    town.lamp("stop")
    until(lambda: not town.processes(), town.processes)
    assert town.mayor["state"] == "stopped"
    assert not (town.root / ".gc/controller.sock").exists()
