"""Every agent program in every mode that its preset offers, and on tmux, started over and over."""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import seen
from programs import OPENHANDS, PROGRAMS, REFUSAL, Program, Town, a_town, completing, limit_until
from tmux_towns import ANSWER, a_tmux_town, heard_in, texts, until

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Mode
from lamplighter.testing.model_server import Asked, ModelServer, Refuse, Say

EVERY = {**PROGRAMS, **({"openhands": OPENHANDS} if (OPENHANDS.folder / "openhands").exists() else {})}
"""OpenHands is installed where a Python 3.12 is found."""


MATRIX = [(program, mode) for program in EVERY.values() for mode in Mode if mode not in PRESETS[program.name].refuses]
LIMITED, REFUSED = (RunState.FAILED, "provider_limit"), (RunState.FAILED, "login")
DONE = (RunState.SUCCEEDED, "succeeded")


@pytest.mark.parametrize(("program", "mode"), MATRIX, ids=[f"{program.name}-{mode}" for program, mode in MATRIX])
async def test_matrix_of_a_program_in_a_mode(
    program: Program, mode: Mode, tmp_path: Path, counts: dict[str, object]
) -> None:
    """Every case is done before any is judged."""
    home = tmp_path / "home"
    async with a_town(tmp_path / "town", program, home) as town, a_town(tmp_path / "other", program, home) as other:
        for case in ("complete", "again"):
            counts[case] = told(await completes(town, mode, case))
        counts["two at once"] = await side_by_side(mode, {"one": town, "another": town})
        counts["two cities"] = await side_by_side(mode, {"here": town, "there": other})
        counts["login refused"] = told(await refused(town, mode))
        counts["login again"] = told(await completes(town, mode, "signed-in"))
        counts["limit"] = told(await limited(other, mode))
        counts["processes left"] = len(town.processes())
    well = dict.fromkeys(("complete", "again", "two at once", "two cities", "login again"), word(DONE))
    expected = well | {"login refused": word(REFUSED), "limit": word(LIMITED), "processes left": 0}
    assert counts == expected
    seen.check(program.name, two_at_once=True, login=True, limit=True)
    seen.check_mode(program.name, mode.value)


def word(end: tuple[RunState, str]) -> str:
    return f"{end[0]}({end[1]})"


def told(run: Run) -> str:
    if run.state is not RunState.SUCCEEDED:
        print(run.automation, run.reason, run.error, run.output_tail)  # shown where the matrix fails
    return word((run.state, run.reason))


async def completes(town: Town, mode: Mode, name: str) -> Run:
    with ModelServer() as model:
        run = await town.fire(model, name=name, mode=mode.value)
        model.script = (completing(run), Say("All done."))
        return await town.work(run)


async def side_by_side(mode: Mode, places: Mapping[str, Town]) -> str:
    with ModelServer() as model:
        fired = [(town, await town.fire(model, name=name, mode=mode.value)) for name, town in places.items()]
        model.by_text = {f"run_id: {run}": (completing(run), Say("All done.")) for _, run in fired}
        each = {town.opened.paths.root: (town, run) for town, run in fired}
        await asyncio.gather(*(town.work(run) for town, run in each.values()))
        return " ".join(sorted({told(await town.get(run)) for town, run in fired}))


async def refused(town: Town, mode: Mode) -> Run:
    with ModelServer(Refuse(401, REFUSAL)) as model:
        return await town.work(await town.fire(model, name="refused", mode=mode.value))


async def limited(town: Town, mode: Mode) -> Run:
    lifted = (datetime.now(UTC) + timedelta(hours=2)).replace(second=0, microsecond=0)
    with ModelServer(limit_until(lifted, town.program.name)) as model:
        run = await town.work(await town.fire(model, name="limited", mode=mode.value))
    assert run.lifts_at is None or abs(run.lifts_at - lifted) <= timedelta(minutes=1), run.lifts_at
    return run


STARTS = 20


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_of_twenty_starts_on_tmux_every_prompt_and_nudge_arrives(
    program: Program, tmp_path: Path, counts: dict[str, object]
) -> None:
    """Run it beside something that keeps the machine busy: nothing here depends on how long anything takes."""
    with ModelServer(Say(ANSWER)) as model, a_tmux_town(program, model, tmp_path) as town:
        with (town.root / "city.toml").open("a") as city:
            city.write('nudge = "Trim every wick."\nresume = "never"\n')
        town.lamp("daemon", "start")
        for number in range(STARTS):
            until(lambda number=number: count(model, "Trim every wick.") > number, town.screen)
            for message in (f"Light lamp {number} now.", f"Put out lamp {number} now."):
                town.lamp("agent", "nudge", "mayor", message)
                until(lambda message=message: holding(model, message), town.screen)
            assert not mixed(model, "Trim every wick.", f"Light lamp {number} now.", f"Put out lamp {number} now.")
            counts["starts"] = number + 1
            town.lamp("agent", "restart", "mayor")


def holding(model: ModelServer, text: str) -> list[Asked]:
    """The requests of the agent itself that hold the text: those for a title or a rating offer no tools."""
    return [asked for asked in list(model.asked) if asked.tools and heard_in(asked, text)]


def mixed(model: ModelServer, *messages: str) -> list[str]:
    """The texts that hold more than one of the messages, the last of which is one of this start alone."""
    requests = holding(model, messages[-1])
    return [text for asked in requests for text in texts(asked.body) if sum(one in text for one in messages) > 1]


def count(model: ModelServer, text: str) -> int:
    """In how many conversations it was said: each begins with a line of its own."""
    begun = re.compile(r"\[town\] mayor \S+ (\S+Z)")
    requests = [asked.whole for asked in list(model.asked) if text in asked.whole]
    return len({found for request in requests for found in begun.findall(request)})
