"""Events that people, programs and runs emit: what is refused, on each database."""

import psycopg
import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Caller, Forbidden, RunOver, Verb, of_run, owner
from lamplighter.domain.acts import Act
from lamplighter.domain.events import ProductFamily
from lamplighter.domain.runs.model import RunState
from lamplighter.services import events
from lamplighter.store.tx import Tx
from lamplighter.store.url import PostgresUrl


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent={"prompt": "Go."})
    return str(city.run_now("sweep").run)


def emit(city: City, caller: Caller, event_type: str = "deploy.finished") -> None:
    fact = Act(caller.actor, city.clock.now(), caller.run).event(event_type)
    city.run(events.emit, fact, caller=caller)


def test_nobody_emits_what_only_the_product_tells(city: City, run: str) -> None:
    for caller in (owner("ada"), owner("ada", run), of_run(run)):
        with pytest.raises(ProductFamily):
            emit(city, caller, "run.forged")
    assert city.events("run.forged") == []


def test_a_run_s_token_emits_until_its_run_has_ended(city: City, run: str) -> None:
    emit(city, of_run(run))
    end(city, run)
    with pytest.raises(RunOver, match="has ended as canceled"):
        emit(city, of_run(run))
    emit(city, owner("ada", run))  # a person, or a program of the city's user, is no token
    assert [event.run for event in city.events("deploy.finished")] == [run, run]


def test_the_token_of_a_run_that_is_gone_emits_nothing(city: City) -> None:
    with pytest.raises(RunOver, match="no run"):
        emit(city, of_run("run_" + "0" * 26))


def test_whoever_may_not_emit_is_refused_by_the_operation_itself(city: City) -> None:
    with pytest.raises(Forbidden):
        emit(city, Caller("reader", frozenset({Verb.READ})))


def test_a_run_cannot_end_between_the_judgement_and_the_event(city: City, run: str) -> None:
    def emit_and_look(tx: Tx) -> str | None:
        events.emit(tx, Act("x", city.clock.now(), run).event("deploy.finished"), caller=of_run(run))
        return locked_by_somebody(city, run)

    if not isinstance(city.place, PostgresUrl):
        return  # there a transaction that writes is alone from its beginning
    assert city.run(emit_and_look) == "LockNotAvailable"


def locked_by_somebody(city: City, run: str) -> str | None:
    assert isinstance(city.place, PostgresUrl)
    with psycopg.connect(city.place.url) as other:
        try:
            other.execute("SELECT 1 FROM runs WHERE city_id = %s AND id = %s FOR UPDATE NOWAIT", (CITY, run))
        except psycopg.errors.LockNotAvailable as error:
            return type(error).__name__
    return None


def end(city: City, run: str) -> None:
    from lamplighter.domain.runs.model import By, Mover
    from lamplighter.services.runs import review

    ending = review.Ending(RunState.CANCELED, "canceled")
    city.run(review.end, run, ending, By(Mover.PERSON, "ada"), ids=city.ids, act=city.act)
