"""A city whose one agent is a real program in tmux, and what the scripted model heard from it."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamp_program import Said, here, lamp
from programs import Program, processes_at_home

from lamplighter.testing.model_server import Asked, ModelServer

WITHIN_S = 300
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


@contextlib.contextmanager
def a_tmux_town(program: Program, model: ModelServer, tmp_path: Path) -> Iterator[Town]:
    home, root = tmp_path / "home", tmp_path / "town"
    program.furnish(home, model.url)
    made = Town(root, home, program.env(model.url, home) | {"GOOSE_MODEL": "scripted-model"})
    assert lamp("init", str(root), cwd=tmp_path, env=made.env).code == 0
    (root / "city.toml").write_text(CITY.format(program=program.name))
    try:
        yield made
    finally:
        lamp("stop", cwd=root, env=made.env)


def until(check: Callable[[], object], told: Callable[[], object]) -> None:
    deadline, pause = time.monotonic() + WITHIN_S, 0.05
    while not check():
        assert time.monotonic() < deadline, told()
        time.sleep(pause)
        pause = min(pause * 1.2, 0.4)  # a look costs time that the program needs


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def heard_in(asked: Asked, *texts: str) -> bool:
    return any(text in asked.whole for text in texts)


def heard(model: ModelServer, text: str) -> bool:
    return any(text in asked.whole for asked in list(model.asked))


def texts(value: object) -> Iterator[str]:
    """Every text in the body of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def after(words: str, screen: str) -> str:
    return screen.rpartition(words)[2]
