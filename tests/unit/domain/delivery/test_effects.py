from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.delivery.effects import (
    Absent,
    AlreadyDone,
    CannotAsk,
    Effect,
    EffectChanged,
    EffectState,
    Found,
    InDoubt,
    LookUp,
    Send,
    after_look_up,
    begin,
    done,
    effect_id,
    refused,
    request_of,
)

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
KEY = effect_id("notify", "run_1", "slack:#ops", "failed")
NEW = Effect(KEY, "notice", request_of({"text": "x", "to": "#ops"}), NOW, run="run_1")


def test_the_intent_is_recorded_before_anything_is_sent() -> None:
    assert begin(None, NEW) == Send(NEW)
    assert NEW.state is EffectState.INTENDED


def test_a_repeat_of_what_was_done_sends_nothing() -> None:
    finished = done(NEW, {"ts": "1.2"}, NOW)
    assert begin(finished, NEW) == AlreadyDone(finished)
    assert (finished.state, finished.result, finished.done_at) == (EffectState.DONE, {"ts": "1.2"}, NOW)


def test_an_intent_without_a_result_is_looked_up_first() -> None:
    assert begin(NEW, NEW) == LookUp(NEW)


def test_what_arrived_is_not_sent_again() -> None:
    later = NOW + timedelta(minutes=1)
    assert after_look_up(NEW, Found({"ts": "1.2"}), later) == AlreadyDone(done(NEW, {"ts": "1.2"}, later))


def test_what_did_not_arrive_is_sent_without_doubt() -> None:
    again = after_look_up(NEW, Absent(), NOW)
    assert isinstance(again, Send)
    assert (again.effect.tries, again.effect.doubts) == (2, 0)


def test_where_nobody_can_tell_it_is_sent_and_the_doubt_is_on_record() -> None:
    again = after_look_up(NEW, CannotAsk(), NOW)
    assert isinstance(again, Send)
    assert (again.effect.tries, again.effect.doubts) == (2, 1)


def test_where_people_would_be_told_too_often_it_is_not_sent_again() -> None:
    ask = CannotAsk(at_most=2)
    second = after_look_up(NEW, ask, NOW)
    assert isinstance(second, Send)
    assert after_look_up(second.effect, ask, NOW) == InDoubt(second.effect)
    assert isinstance(after_look_up(second.effect, Absent(), NOW), Send)
    said_no = refused(second.effect)  # then only the first of them may have arrived
    assert said_no is not None
    assert isinstance(after_look_up(said_no, ask, NOW), Send)


def test_one_id_stands_for_one_request() -> None:
    changed = Effect(KEY, "notice", request_of({"text": "y", "to": "#ops"}), NOW)
    with pytest.raises(EffectChanged):
        begin(NEW, changed)
    assert request_of({"a": 1, "b": 2}) == request_of({"b": 2.0, "a": 1})


def test_another_end_of_the_run_is_another_effect() -> None:
    assert KEY == "notify:run_1:slack:#ops:failed"
    assert effect_id("notify", "run_1", "slack:#ops", "succeeded") != KEY
