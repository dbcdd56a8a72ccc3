"""What a program is told in each turn, and which session goes on: by rounds, messages, retries and other programs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City
from test_pipeline_cases import AGENT, a_completion, complete, running

from lamplighter.domain.runs.model import MESSAGE, Run
from lamplighter.domain.runs.target import FAILED_SELECTION, How
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.kit.records import changed
from lamplighter.services.context import acting
from lamplighter.services.runs import continuing, turns
from lamplighter.store.cursors import Cursor
from lamplighter.store.notes import Notes
from lamplighter.store.rounds import Round
from lamplighter.store.sessions import SessionRow

CLAUDE = PRESETS["claude"]
SECOND = timedelta(seconds=1)


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT, verify="make test")
    run = city.run_now("sweep").run
    running(city, run)
    return run


def turn(city: City, run: str, **fields: Any) -> turns.Turn:
    row = changed(city.get(run), **fields)
    found: turns.Turn = city.read(lambda tx: turns.turn_of(tx, row, CLAUDE))
    return found


def following(city: City, run: str, text: str = "and the gate?") -> Run:
    """The run ends, and somebody says something to it."""
    complete(city, a_completion(run, outcome="failed"))
    ctx = changed(acting("ada", city.clock.now(), city.ids), configured=city.configured)
    made, _ = city.run(continuing.send, run, text, ctx=ctx)
    found: Run = made
    return found


def resumed(city: City, row: Run, preset: Any = CLAUDE) -> str:
    found: str = city.read(lambda tx: turns.resumed(tx, row, preset))
    return found


def session(city: City, number: int, run: str, program: str | None, *, after: int = 0) -> None:
    row = SessionRow(
        f"ses_{number}", f"s-{number}", None, run, "tmux", "here", number, city.clock.now() + after * SECOND
    )
    city.run(lambda tx: tx.sessions.add(row))
    named = "UPDATE sessions SET program_session = :program WHERE id = :id"
    city.run(lambda tx: tx.db.execute(named, {"program": program, "id": f"ses_{number}"}))


def test_each_round_is_told_what_was_wrong_with_the_one_before_it(city: City, run: str) -> None:
    now = city.clock.now()
    for number, said in ((1, "the east lamp is dark"), (2, "the west lamp is dark")):
        claim = Round(run, number, f"c{number}", "{}", now)
        city.run(lambda tx, claim=claim: tx.rounds.add(claim))
        judged = replace(claim, judged_at=now, passed=False, exit_code=number, output_tail=said)
        city.run(lambda tx, judged=judged: tx.rounds.judge(judged))
    second, third = turn(city, run, round=2), turn(city, run, round=3)
    assert (second.round, third.round) == (2, 3)
    assert "the east lamp" in second.message
    assert "the west lamp" not in second.message
    assert "the west lamp" in third.message
    assert "`make test`: it ended with exit code 2" in third.message
    assert "lamp" not in turn(city, run, round=4).message.replace("lamplighter", "")


def test_who_speaks_first_begins_and_who_was_asked_nothing_before_is_told_the_message_alone(
    city: City, run: str
) -> None:
    first = turn(city, run, trigger_kind=MESSAGE)
    assert (first.round, first.message, first.begins, first.resume) == (1, "Go on.", True, "")
    after = following(city, run)
    assert turn(city, after.id).message == "You are answered:\n\nand the gate?"
    city.run(lambda tx: tx.db.execute("UPDATE runs SET reason = :r WHERE id = :id", {"r": FAILED_SELECTION, "id": run}))
    began = turn(city, after.id)
    assert (began.message, began.begins, began.files) == ("and the gate?", True, ())
    assert city.read(lambda tx: turns.target_of(tx, after)) is None


def test_a_conversation_goes_on_in_the_last_session_that_its_own_program_named(city: City, run: str) -> None:
    after = following(city, run)
    assert resumed(city, after) == "", "it told no name, and does not go by ours"
    session(city, 2, run, "second", after=2)
    session(city, 3, run, "first", after=1)
    session(city, 4, run, None, after=3)
    assert resumed(city, after) == "second"
    assert resumed(city, after, replace(CLAUDE, can_resume=False)) == ""
    session(city, 5, after.id, "third")
    assert resumed(city, after) == "third"
    other = changed(after, in_force={"preset": "codex"})
    assert resumed(city, other) == "second", "what another program named is not its own"


def test_a_program_that_goes_by_our_name_is_resumed_by_the_run_in_which_it_began(city: City, run: str) -> None:
    named = replace(CLAUDE, named=True)
    assert resumed(city, city.get(run), named) == run
    assert resumed(city, city.get(run), replace(CLAUDE, named=False)) == ""
    assert resumed(city, changed(city.get(run), trigger_kind=MESSAGE), named) == ""
    after = following(city, run)
    assert resumed(city, after, named) == run
    city.run(
        lambda tx: tx.db.execute(
            "UPDATE runs SET in_force = :f WHERE id = :id", {"f": '{"preset": "codex"}', "id": run}
        )
    )
    assert resumed(city, after, named) == "", "all before it were another program's"
    assert resumed(city, changed(after, in_force={"preset": "claude"}), named) == after.id


def test_a_message_tried_again_goes_on_where_the_first_try_was(city: City, run: str) -> None:
    session(city, 2, run, "tried")
    again = changed(city.get(run), id="run_again", trigger_kind=MESSAGE, retries=run)
    assert resumed(city, again) == "tried"
    assert resumed(city, changed(again, trigger_kind="cron")) == ""
    city.run(
        lambda tx: tx.db.execute(
            "UPDATE runs SET in_force = :f WHERE id = :id", {"f": '{"preset": "codex"}', "id": run}
        )
    )
    assert resumed(city, again) == ""


def test_a_run_waits_for_those_that_it_goes_on_with_or_tries_again(city: City, run: str) -> None:
    waits = lambda row, node="here": city.read(lambda tx: turns.must_wait(tx, row, node))  # noqa: E731
    after = following(city, run)
    city.run(lambda tx: tx.db.execute("UPDATE sessions SET ended_at = 1", {}))
    city.add("other", agent=AGENT)
    busy = city.run_now("other").run
    assert not waits(after)
    assert waits(changed(after, retries=busy)), "what it repeats has not ended"
    assert waits(changed(after, continues=busy))
    assert not waits(changed(after, continues=None, retries=busy)), "it goes on with nothing"
    city.run(lambda tx: tx.db.execute("UPDATE runs SET node = NULL WHERE id = :id", {"id": run}))
    assert not waits(after, "there")
    assert not waits(changed(after, continues="run_gone"))


def test_it_works_where_the_one_before_it_worked_and_is_named_after_the_first(city: City, run: str) -> None:
    after = following(city, run)
    target = city.read(lambda tx: turns.target_of(tx, after))
    assert (target.how, target.configuration) == (How.DEFAULT, city.get(run).configuration)
    assert city.read(lambda tx: turns.target_of(tx, changed(after, continues=None))) is None
    assert city.read(lambda tx: turns.target_of(tx, changed(after, continues="run_gone"))) is None
    by_hand = lambda row: city.read(lambda tx: turns.began_by_hand(tx, row))  # noqa: E731
    assert not by_hand(after)
    assert by_hand(changed(after, continues=None))
    city.run(lambda tx: tx.db.execute("UPDATE runs SET trigger_kind = 'message' WHERE id = :id", {"id": run}))
    assert by_hand(after)
    assert city.read(lambda tx: turns.first_of(tx, after)) == run


def test_notes_and_cursor_are_those_of_its_automation(city: City, run: str) -> None:
    row, now = city.get(run), city.clock.now()
    known = lambda: city.read(lambda tx: (turns.notes_of(tx, row), turns.cursor_of(tx, row)))  # noqa: E731
    assert known() == ((0, ""), "")
    for number, text in ((1, "Mind the oil."), (2, "Mind the wick.")):
        one = Notes(row.automation_id, number, text, "ann", now)
        city.run(lambda tx, one=one: tx.notes.add(one))
    other = city.add("other").id
    city.run(lambda tx: tx.notes.add(Notes(other, 1, "Not this.", "ann", now)))
    assert city.run(lambda tx: tx.cursors.put(Cursor(row.automation_id, "text", "page-7", 1, "ann", now)))
    assert known() == ((2, "Mind the wick."), "page-7")
