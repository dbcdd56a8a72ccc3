"""Messages to runs at work: they wait, are told once and in order, and go on to whatever comes after."""

from typing import Any

import pytest
from automation_city import City
from test_pipeline_cases import AGENT, a_completion, complete, running

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import acting
from lamplighter.services.runs import continuing, review
from lamplighter.services.runs.continuing import AlreadyAnswered, NoConversation, NotAsking


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT)
    return city.run_now("sweep").run


def say(city: City, run: str, text: str, by: str = "ada") -> tuple[Run, bool]:
    ctx = changed(acting(by, city.clock.now(), city.ids), configured=city.configured)
    found: tuple[Run, bool] = city.run(continuing.send, run, text, ctx=ctx)
    city.advance(seconds=1)
    return found


def told(city: City, run: str) -> list[dict[str, Any]]:
    """What a run was told when it began."""
    row = city.get(run)
    event = city.read(lambda tx: tx.trigger_events.get(row.trigger_event))
    return [{key: one[key] for key in ("text", "by")} for one in event.payload["payload"]["messages"]]


def waiting(city: City, run: str) -> list[str]:
    return [one.text for one in city.read(lambda tx: tx.messages.waiting(run))]


def test_messages_to_a_run_at_work_wait_and_are_told_once_in_the_order_they_came(city: City, run: str) -> None:
    running(city, run)
    assert [say(city, run, text, by) for text, by in (("one", "ada"), ("two", "ben"), ("three", "ada"))] == [
        (city.get(run), True)
    ] * 3
    assert waiting(city, run) == ["one", "two", "three"]
    complete(city, a_completion(run))
    after = city.get(run)
    following = city.get(after.continued_by or "")
    assert following.continues == run
    assert told(city, following.id) == [
        {"text": "one", "by": "ada"}, {"text": "two", "by": "ben"}, {"text": "three", "by": "ada"},
    ]  # fmt: skip
    assert waiting(city, run) == []
    assert waiting(city, following.id) == []
    assert city.shown(run)["events"][-1]["data"]["by"] == following.id
    (event,) = city.events("run.continued")
    assert event.message == "message of ada, ben"
    assert len(city.runs_of("sweep")) == 2


def test_one_to_a_run_that_has_ended_is_told_to_a_run_that_goes_on_at_once(city: City, run: str) -> None:
    running(city, run)
    complete(city, a_completion(run))
    following, waits = say(city, run, "and the east?")
    assert (following.continues, waits) == (run, False)
    assert told(city, following.id) == [{"text": "and the east?", "by": "ada"}]
    last, waits = say(city, run, "and the west?")
    assert (last.id, waits) == (following.id, True), "to any run of a conversation means to its last"
    assert len(city.runs_of("sweep")) == 2


def test_what_waits_goes_on_to_what_comes_next(city: City, run: str) -> None:
    running(city, run)
    complete(city, a_completion(run))
    second, _ = say(city, run, "first")
    say(city, run, "later")
    city.run(review.cancel, second.id, ctx=city.context)
    third = city.get(city.get(second.id).continued_by or "")
    assert told(city, third.id) == [{"text": "later", "by": "ada"}]
    assert (third.continues, len(city.runs_of("sweep"))) == (second.id, 3)


def test_a_question_is_answered_once_and_nothing_else_is_asked(city: City, run: str) -> None:
    running(city, run)
    with pytest.raises(NotAsking):
        city.run(continuing.answer, run, "the east one", ctx=city.context)
    complete(city, a_completion(run, outcome="needs_human"))
    assert city.get(run).state is RunState.NEEDS_HUMAN
    with pytest.raises(UsageError):
        city.run(continuing.answer, run, "  ", ctx=city.context)
    ctx = changed(city.context, configured=city.configured)
    following = city.run(continuing.answer, run, "the east one", ctx=ctx)
    assert told(city, following.id) == [{"text": "the east one", "by": "tester"}]
    with pytest.raises(AlreadyAnswered):
        city.run(continuing.answer, run, "no, the west one", ctx=ctx)
    with pytest.raises(RunUnknown):
        city.run(continuing.answer, "run_none", "x", ctx=ctx)
    assert len(city.runs_of("sweep")) == 2


def test_nobody_speaks_to_a_command(city: City) -> None:
    city.add("count", exec="true")
    counted = city.run_now("count").run
    with pytest.raises(NoConversation):
        say(city, counted, "hello")
    with pytest.raises(RunUnknown):
        say(city, "run_none", "hello")
