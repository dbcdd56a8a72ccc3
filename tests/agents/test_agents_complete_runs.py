"""Real agent programs finish runs, or fail to, from firing to the end of all that follows."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import seen
from programs import OPENCODE_SETTINGS, PROGRAMS, REFUSAL, THOROUGHLY, Town, completing, limit_until, only

from lamplighter.adapters.files.secrets import city_key
from lamplighter.app.automations import rules_of
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Counts
from lamplighter.domain.tokens import run_token
from lamplighter.services import logins
from lamplighter.services.automations import firing
from lamplighter.services.context import acting
from lamplighter.services.runs.views import view
from lamplighter.testing.model_server import Hang, ModelServer, Raw, Refuse, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LAST_WORDS = "All the lamps are lit now."


async def completed(town: Town, name: str = "light", effort: str | None = None) -> str:
    """One run of the program that completes; returns its id."""
    with ModelServer() as model:
        run = await town.fire(model, name=name, effort=effort)
        model.script = (completing(run), Say(LAST_WORDS))
        row = await town.work(run)
    told = await town.transcript(run)
    assert (row.state, row.summary) == (RunState.SUCCEEDED, "All lamps are lit."), (told, row.output_tail)
    return run


def files_with(text: str, root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def side_by_side(town: Town) -> None:
    """Two runs at once; not the first ones, for opencode makes its database at its first start."""
    with ModelServer() as model:
        first, second = await town.fire(model, name="first"), await town.fire(model, name="second")
        model.by_text = {f"run_id: {run}": (completing(run), Say(LAST_WORDS)) for run in (first, second)}
        rows = [await town.work(first), await town.get(second)]
    assert [row.state for row in rows] == [RunState.SUCCEEDED] * 2, [row.output_tail for row in rows]


@only(*PROGRAMS)
async def test_the_program_completes_a_run_another_in_the_same_home_and_two_at_once(town: Town) -> None:
    effort = "high" if PRESETS[town.program.name].efforts else None
    first, second = await completed(town), await completed(town, "again", effort)
    for run in (first, second):
        told = await town.transcript(run)
        said = [event.body["text"] for event in told if event.kind == "text"]
        assert LAST_WORDS in said, "what it says comes in pieces and is kept whole"
        kinds = {event.kind for event in told}
        assert {"tool_started", "tool_ended", "turn_ended"} <= kinds
        assert any("automation_complete" in json.dumps(event.body) for event in told if event.kind == "tool_started")
        counts = PRESETS[town.program.name].counts
        assert ("usage" in kinds) == (counts is not Counts.NOTHING)
        row = await town.get(run)
        assert bool(row.tokens) == (counts is not Counts.NOTHING)
        assert (row.cost is not None) == (counts is Counts.COST)
        (session,) = await town.store.read(lambda tx, run=run: tx.sessions.of_run(run))
        assert (session.outcome, session.exit_status) == ("succeeded", 0), "it said its last words and left by itself"
        assert len(await town.store.read(lambda tx, run=run: tx.artifacts.of(run))) == 2
        token = run_token(city_key(town.opened.paths.runtime), run)
        assert not files_with(token, town.opened.paths.root), "no token is left behind"
    if town.program.name in THOROUGHLY:
        await side_by_side(town)
    assert town.processes() == set()
    seen.check(town.program.name, tells=PRESETS[town.program.name].counts.value, effort=effort is not None)


@only(*THOROUGHLY)
async def test_a_model_that_just_stops_leaves_the_run_without_completion(town: Town) -> None:
    with ModelServer(Say("I have nothing more to say.")) as model:
        settings = json.dumps(OPENCODE_SETTINGS).replace("{url}", model.url)
        mine = {"OPENCODE_CONFIG_CONTENT": settings} if town.program.name == "opencode" else None
        row = await town.work(await town.fire(model, env=mine, furnished=mine is None))
        assert model.with_tool("automation_complete"), "the tool was offered, beside settings of the person's own too"
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion")
    assert row.exit_code == 0, "which says nothing about the run"


@only(*THOROUGHLY)
async def test_a_model_service_that_fails_leaves_the_run_without_completion(town: Town) -> None:
    with ModelServer(Refuse(500, headers={"retry-after-ms": "50"})) as model:  # to try again at once
        row = await town.work(await town.fire(model))
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion"), row.output_tail


@only(*THOROUGHLY)
async def test_a_model_that_hangs_is_ended_at_the_deadline_with_the_whole_tree(town: Town) -> None:
    """A machine that is busy may need longer than the first deadline to get as far as asking its model."""
    for seconds in (12, 60, 180) if town.program.name == "opencode" else (5, 20, 60, 180):
        with ModelServer(Hang()) as model:
            row = await town.work(await town.fire(model, name=f"within-{seconds}", deadline=f"{seconds}s"))
        assert (row.state, row.reason) == (RunState.TIMED_OUT, "deadline_exceeded")
        assert town.processes() == set()
        if model.first.is_set():
            return
    pytest.fail("it never asked its model")


@only(*PROGRAMS)
async def test_a_limit_of_the_provider_is_told_with_the_time_it_is_lifted(town: Town) -> None:
    lifted = (datetime.now(UTC) + timedelta(hours=2)).replace(second=0, microsecond=0)
    with ModelServer(limit_until(lifted, town.program.name)) as model:
        row = await town.work(await town.fire(model))
    assert (row.state, row.reason) == (RunState.FAILED, "provider_limit"), row.output_tail
    assert row.lifts_at is not None
    assert abs(row.lifts_at - lifted) <= timedelta(minutes=1), "Codex tells minutes, and others how long it takes"
    (held,) = await town.store.read(logins.held)
    assert (held.preset, held.state, held.until) == (town.program.name, "provider_limit", row.lifts_at)
    assert town.processes() == set()
    seen.check(town.program.name, limit=True)


WAIT = "Rate limit reached for scripted-model. Please try again in 7200s."
FOR_HOURS = {"type": "error", "error": {"type": "rate_limit_exceeded", "code": "rate_limit_exceeded", "message": WAIT}}
FAILED = {"type": "response.failed", "response": {"id": "r1", "error": FOR_HOURS["error"]}}
WAITS = {
    "codex": Raw(f"event: response.failed\ndata: {json.dumps(FAILED)}\n\n".encode(), "text/event-stream"),
    "goose": Refuse(429, FOR_HOURS, {"retry-after": "7200"}),
}
"""After these a program would sit there for hours without a word, before it asks once more."""


@only(*WAITS)
async def test_a_program_that_would_wait_for_hours_is_ended_with_the_time_the_limit_is_lifted(town: Town) -> None:
    with ModelServer(WAITS[town.program.name]) as model:
        row = await town.work(await town.fire(model))
        heard = len([asked for asked in model.asked if asked.tools])
    assert (row.state, row.reason, heard) == (RunState.FAILED, "provider_limit", 1), row.output_tail
    assert row.lifts_at is not None
    assert row.ended_at is not None
    assert timedelta(minutes=55) < row.lifts_at - row.ended_at <= timedelta(hours=2)
    assert town.processes() == set()


@only(*THOROUGHLY)
async def test_a_login_that_is_refused_is_told_and_works_again_when_it_does(town: Town) -> None:
    with ModelServer(Refuse(401, REFUSAL)) as model:
        row = await town.work(await town.fire(model))
        assert (row.state, row.reason) == (RunState.FAILED, "login"), row.output_tail
        (held,) = await town.store.read(logins.held)
        assert (held.preset, held.state) == (town.program.name, "login")
        assert held.sign_in
        ctx = acting("tester", town.opened.clock.now(), town.opened.ids)
        rules = rules_of(town.opened.config.city, town.opened.settings.env)
        again = await town.store.transact(firing.run_by_hand, firing.ByHand("light"), rules=rules, ctx=ctx)
        model.script = (completing(again.run), Say(LAST_WORDS))
        row = await town.work(again.run)
    assert row.state is RunState.SUCCEEDED, row.output_tail
    assert await town.store.read(logins.held) == []
    told = view(row).in_force
    assert told is not None
    assert (told.preset, told.version, told.mode) == (town.program.name, seen.version(town.program.name), "full_access")
    seen.check(town.program.name, login=True)


@only("claude", "codex", "opencode")
async def test_a_completion_call_that_is_denied_completes_nothing(town: Town) -> None:
    with ModelServer() as model:
        run = await town.fire(model, deny=True)
        model.script = (completing(run), Say("I was not allowed."))
        row = await town.work(run)
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion"), await town.transcript(run)
