"""Real agent programs as agents of a city: in tmux, by their presets, on a home that nothing was ever run in."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import seen
from programs import PROGRAMS, Program
from tmux_towns import ANSWER, Town, a_tmux_town, after, heard, heard_in, texts, until

from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.testing.model_server import ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

NUDGE = "Light the lamps of Mill Lane."
QUIET_S = 1.5


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Program:
    """Parametrised by `only` with the name of the program."""
    return PROGRAMS[request.param]


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", names, indirect=True)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(Say(ANSWER)) as server:
        yield server


@pytest.fixture
def town(program: Program, model: ModelServer, tmp_path: Path) -> Iterator[Town]:
    with a_tmux_town(program, model, tmp_path) as made:
        yield made


def written_down(home: Path, program: Program, said: str) -> bool:
    """Whether the kept conversation holds what was said, and is no longer written: a program does both moments after
    it showed the answer.
    """
    store = PRESETS[program.name].conversations
    assert store is not None
    kept = list((home / store.root).glob(store.path.replace("{id}", "*")))
    files = {file for path in kept for file in (path, *path.parent.glob(f"{path.name}*"), *path.rglob("*"))}
    files = {file for file in files if file.is_file()}
    if not any(said.encode() in file.read_bytes() for file in files):
        return False
    return time.time() - max(file.stat().st_mtime for file in files) > QUIET_S


@only(*(name for name in PROGRAMS if PRESETS[name].conversations is not None))
def test_each_message_arrives_by_itself_and_an_agent_that_died_is_relit_with_all_of_them(
    town: Town, program: Program, model: ModelServer
) -> None:
    said = ["Trim every wick in Mill Lane.", "Now light the lamps of Mill Lane.", "Then count them:\n\nall of them."]
    with (town.root / "city.toml").open("a") as city:
        city.write(f'nudge = "{said[0]}"\n')
    town.lamp("daemon", "start")
    until(lambda: heard(model, "[town] mayor") and heard(model, said[0]), town.screen)
    first = next(json.dumps(asked.body) for asked in model.asked if heard_in(asked, "[town] mayor", said[0]))
    assert "[town] mayor" in first, "who it is comes first"
    for message in said[1:]:
        town.lamp("agent", "nudge", "mayor", message)
        until(lambda words=message: heard(model, words.split()[-1]), town.screen)
    last = said[-1].splitlines()[-1]
    until(lambda: town.mayor["state"] == "running" and ANSWER in after(last, town.screen()), town.screen)
    until(lambda: written_down(town.home, program, last), town.screen)
    for request in list(model.asked):
        for text in texts(request.body):
            assert sum(one[:12] in text for one in said) < 2, text

    before = town.mayor["session_id"]
    ours = ("tmux", "lamp", "python")
    for pid in [pid for pid, name in town.processes().items() if not name.startswith(ours)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: town.mayor["session_id"] not in {None, before}, lambda: town.mayor)
    until(lambda: heard(model, "Your program was started again"), town.screen)
    again = next(asked for asked in model.asked if heard_in(asked, "Your program was started again"))
    assert all(heard_in(again, *one.splitlines()[:1]) for one in said), "what was said before is part of the request"
    seen.check(program.name, relit=True)


@only("codex", "goose")
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
