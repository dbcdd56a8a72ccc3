"""Runs that people take over and give back, as transactions: what may be taken, whose it is, how its clock stands."""

from datetime import timedelta
from typing import Any

import pytest
from automation_city import City
from test_pipeline_cases import AGENT, a_completion, complete, running, timeline

from lamplighter.domain.runs.completion import Completion
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.kit.records import changed
from lamplighter.services.context import acting
from lamplighter.services.runs import continuing, review, taking, turns
from lamplighter.services.runs.taking import AlreadyTaken, NotHandedOver, NothingToTake, NotTaken

CLAUDE = PRESETS["claude"]
HOUR = timedelta(hours=1)
AT_WORK = """
    UPDATE runs SET session_id = 'ses_1', lease_owner = 'own_test', lease_expires_at = 9000000000000000
    WHERE id = :run"""


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT)
    run = city.run_now("sweep").run
    running(city, run)
    return run


def take(city: City, run: str, by: str = "ada") -> Run:
    found: Run = city.run(taking.take, run, ctx=acting(by, city.clock.now(), city.ids))
    return found


def hand_over(city: City, run: str) -> Run:
    found: Run = city.run(taking.hand_over, run, city.get(run).lease.version, ctx=city.context)
    return found


def asking(run: str) -> Completion:
    return changed(a_completion(run, outcome="needs_human"), question={"text": "Which lamp?", "choices": []})


def give(city: City, run: str, text: str = "", by: str = "ben") -> Run:
    found: Run = city.run(taking.give, run, text, ctx=acting(by, city.clock.now(), city.ids))
    return found


def turn(city: City, run: str, **fields: Any) -> turns.Turn:
    row = changed(city.get(run), **fields)
    found: turns.Turn = city.read(lambda tx: turns.turn_of(tx, row, CLAUDE))
    return found


def test_a_run_is_taken_by_one_person_handed_over_and_given_back_with_its_clock_put_off(city: City, run: str) -> None:
    before = city.get(run)
    assert not taking.handed_over(before)
    mine = take(city, run)
    assert (mine.taken_by, mine.taken_at, mine.session_id) == ("ada", city.clock.now(), "ses_1")
    assert take(city, run) == mine, "it may be repeated"
    with pytest.raises(AlreadyTaken, match="ada"):
        take(city, run, "ben")
    with pytest.raises(NotHandedOver):
        give(city, run)
    city.advance(hours=1)
    theirs = hand_over(city, run)
    assert (theirs.session_id, theirs.prompt_sent_at, theirs.lease.owner) == (None, None, None)
    assert taking.handed_over(theirs)
    back = give(city, run, "  The east lamp is lit.  ")
    assert (back.taken_by, back.taken_at, back.stood) == (None, None, HOUR)
    assert before.deadline_at is not None
    assert back.deadline_at == before.deadline_at + HOUR
    assert back.given == {"text": "The east lamp is lit.", "by": "ben"}
    assert back.last_activity_at == city.clock.now()
    with pytest.raises(NotTaken):
        give(city, run)
    told = timeline(city, run)
    assert [one for one in told if one in {"run_taken", "run_handed_over", "run_given"}] == [
        "run_taken", "run_handed_over", "run_given",
    ]  # fmt: skip
    assert [len(city.events(kind)) for kind in ("run.taken", "run.given")] == [1, 1]
    assert "The east lamp is lit." in turn(city, run).message


def test_the_clock_stands_as_long_as_it_was_taken_in_all(city: City, run: str) -> None:
    began = city.get(run)
    for hours in (1, 2):
        city.run(lambda tx: tx.db.execute(AT_WORK, {"run": run}))
        take(city, run)
        city.advance(hours=hours)
        hand_over(city, run)
        give(city, run)
    after = city.get(run)
    assert after.stood == 3 * HOUR
    assert began.deadline_at is not None
    assert after.deadline_at == began.deadline_at + 3 * HOUR
    assert after.given == {"text": "", "by": "ben"}


def test_only_what_an_agent_works_on_can_be_taken(city: City, run: str) -> None:
    city.add("count", exec="true")
    with pytest.raises(NothingToTake, match="no agent's"):
        take(city, city.run_now("count").run)
    city.add("waits", agent=AGENT)
    with pytest.raises(NothingToTake, match="only a running one"):
        take(city, city.run_now("waits").run)
    for fields, why in (({"session_id": None}, "only being started"), ({"pending": "cmp_1"}, "being verified")):
        city.run(lambda tx, fields=fields: tx.runs.swap(tx.runs.lock(run), changed(tx.runs.lock(run), **fields)))
        with pytest.raises(NothingToTake, match=why):
            take(city, run)
    assert city.events("run.taken") == []


def test_one_that_has_ended_meanwhile_is_not_handed_over_and_another_s_lease_is_kept(city: City, run: str) -> None:
    take(city, run)
    version = city.get(run).lease.version
    with pytest.raises(LeaseLost):
        city.run(taking.hand_over, run, version + 1, ctx=city.context)
    city.run(review.cancel, run, ctx=city.context)
    ended = city.get(run)
    assert hand_over(city, run) == ended
    assert (ended.state, ended.session_id, ended.taken_by) == (RunState.CANCELED, "ses_1", None)
    assert "run_handed_over" not in timeline(city, run)


def test_what_a_program_is_told_in_each_turn(city: City, run: str) -> None:
    assert turn(city, run) == turns.Turn()
    assert turn(city, run, given={"text": "", "by": "ada"}).message == turns.GIVEN_BACK
    again = turn(city, run, round=2)
    assert (again.round, again.message != "") == (2, True)
    complete(city, asking(run))
    ctx = changed(city.context, configured=city.configured)
    following = city.run(continuing.answer, run, "the east one", ctx=ctx)
    new = turn(city, following.id)
    assert (new.round, new.resume) == (1, "")
    assert new.message == "You are answered:\n\nthe east one"
    assert dict(new.files) == {"summary.md": "Lit.", "question.md": "Which lamp?", "answer.md": "the east one"}
    known = "UPDATE sessions SET program_session = 'abc' WHERE id = 'ses_1'"
    city.run(lambda tx: tx.db.execute(known, {}))
    assert turn(city, following.id) == turns.Turn(1, "the east one", "abc")
    assert turn(city, following.id, round=2).round == 2
    fired = turn(city, following.id, trigger_kind="cron")
    assert (fired.round, fired.message, fired.resume, fired.tells_trigger) == (1, turns.MORE, "abc", True)
    other = turn(city, following.id, in_force={"preset": "codex"})
    assert other.resume == "abc", "those before it were the preset's own"
    elsewhere = PRESETS["codex"]
    row = changed(city.get(following.id), continues=None)
    assert city.read(lambda tx: turns.turn_of(tx, row, elsewhere)).files == ()


def test_the_turns_of_a_conversation_are_kept_apart_and_its_first_run_names_its_place(city: City, run: str) -> None:
    assert city.read(lambda tx: turns.first_of(tx, tx.runs.get(run))) == run
    complete(city, asking(run))
    ctx = changed(city.context, configured=city.configured)
    following = city.run(continuing.answer, run, "the east one", ctx=ctx)
    assert city.read(lambda tx: turns.first_of(tx, tx.runs.get(following.id))) == run
    assert not city.read(lambda tx: turns.began_by_hand(tx, tx.runs.get(following.id)))
    waits = lambda node: city.read(lambda tx: turns.must_wait(tx, tx.runs.get(following.id), node))  # noqa: E731
    assert waits("here"), "the session of the one before has not been stopped"
    city.run(lambda tx: tx.db.execute("UPDATE sessions SET ended_at = 1", {}))
    assert not waits("here")
    assert waits("there")
    assert not city.read(lambda tx: turns.must_wait(tx, tx.runs.get(run), "there"))
    city.run(lambda tx: tx.db.execute("UPDATE runs SET state = 'running', ended_at = NULL WHERE id = :r", {"r": run}))
    assert waits("here")
