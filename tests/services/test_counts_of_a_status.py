"""The numbers of a status: what is not there counts nothing, and what has no reason tells none."""

from datetime import timedelta

from automation_city import City

from lamplighter.services import records
from lamplighter.store.summary import Summary

ANSWERED = "UPDATE runs SET state = 'needs_human', continued_by = :by WHERE city_id = :city AND id = :id"


def test_a_city_at_rest_has_no_active_runs(city: City) -> None:
    counted = city.read(lambda tx: Summary(tx.db, tx.city).active_runs())
    assert counted == {"queued": 0, "enriching": 0, "ready": 0, "running": 0}
    city.add("tidy", overlap="allow")
    city.run_now("tidy")
    city.start(city.run_now("tidy").run)
    counted = city.read(lambda tx: Summary(tx.db, tx.city).active_runs())
    assert counted == {"queued": 0, "enriching": 0, "ready": 1, "running": 1}


def test_the_next_deadline_is_one_of_a_run_that_waits_and_not_later_than_asked_for(city: City) -> None:
    city.add("slow", deadline="1h")
    city.run_now("slow")
    at = city.clock.now() + timedelta(hours=1)
    found = [
        city.read(lambda tx, before=before: tx.runs.next_deadline(before=before))
        for before in (at - timedelta(seconds=1), at, at + timedelta(days=1))
    ]
    assert found == [None, at, at]


def test_a_run_without_a_reason_tells_none(city: City) -> None:
    city.add("tidy", overlap="allow")
    city.finish(city.run_now("tidy").run, "failed", "exit_1")
    city.start(city.run_now("tidy").run)
    told = city.read(lambda tx: records.recorded(Summary(tx.db, tx.city), "test", city.clock.now()))
    assert [one["reason"] for one in (*told["under_way"], *told["failures"])] == [None, "exit_1"]


def test_of_each_state_no_more_are_counted_than_asked_for(city: City) -> None:
    city.add("tidy", overlap="allow")
    for state in ("failed", "failed", "failed", "succeeded"):
        run = city.run_now("tidy").run
        city.start(run)
        city.finish(run, state)
    city.run_now("tidy")
    counted = {
        most: city.read(lambda tx, most=most: Summary(tx.db, tx.city).runs(since="", most=most))
        for most in (None, 9, 2)
    }
    assert counted[None] == counted[9] == {"failed": 3, "succeeded": 1, "ready": 1}
    assert counted[2] == {"failed": 2, "succeeded": 1, "ready": 1}


def test_answered_questions_do_not_hide_those_that_wait_where_not_all_are_counted(city: City) -> None:
    city.add("ask", overlap="allow")
    for answered in ("another", "one more", None, None, None):
        run = city.run_now("ask").run
        city.start(run)
        city.finish(run, "failed", "asks")
        city.run(lambda tx, given={"by": answered, "id": run}: tx.db.execute(ANSWERED, {**given, "city": tx.city}))
    counted = [
        city.read(lambda tx, most=most: Summary(tx.db, tx.city).runs(since="", most=most)["needs_human"])
        for most in (None, 9, 2)
    ]
    assert counted == [3, 3, 2]
