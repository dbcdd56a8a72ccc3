"""What a process takes from the outbox: what needs nothing but the database is done in the same transaction."""

import json

import pytest
from automation_city import City

from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.model import RunState
from lamplighter.services import outbox
from lamplighter.services.runs import claiming, enriching, review
from lamplighter.services.runs.starting import Taken

ME = review.Worker("own_test", "here")
OTHER = review.Worker("own_other", "here")
AGENT = {"prompt": "Light the lamps."}


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT, overlap="allow")
    return city.run_now("sweep").run


def take(city: City, **keys: object) -> Taken:
    taken: Taken = city.run(claiming.take_due, ME, limit=20, ctx=city.context, **keys)
    return taken


def items(city: City, run: str) -> list[tuple[str, str, str | None]]:
    sql = "SELECT kind, state, claimed_by FROM outbox WHERE run_id = :run"
    rows = city.read(lambda tx: tx.db.rows(sql, {"run": run}))
    return sorted((row["kind"], row["state"], row["claimed_by"]) for row in rows)


def test_a_run_is_enriched_as_it_is_taken_and_what_follows_is_claimed(city: City, run: str) -> None:
    taken = take(city)
    assert (taken.enriched, [item.kind for item in taken.items]) == (1, ["write_artifact", "enqueue_execute"])
    row = city.get(run)
    assert (row.state, row.lease.owner, row.lease.version) == (RunState.READY, None, 1)
    assert city.read(enriching.payload_of, run)["summary"]["title"] == "Manual run of sweep"
    moves = [(one["type"], one["from"], one["to"]) for one in city.shown(run)["events"]]
    assert moves[1:] == [
        ("status_transition", "queued", "enriching"),
        ("enrichment_saved", "enriching", "enriching"),
        ("status_transition", "enriching", "ready"),
    ]
    mine = "own_test"
    assert items(city, run) == [
        ("enqueue_enrich", "done", None), ("enqueue_execute", "claimed", mine), ("write_artifact", "claimed", mine),
    ]  # fmt: skip
    city.run(outbox.done, taken.items[0], city.clock.now())
    assert len(take(city)) == 0


def test_several_are_enriched_together_and_one_that_cannot_be_holds_up_no_other(city: City, run: str) -> None:
    others = [city.run_now("sweep").run for _ in range(3)]
    bad = {"provider": "github", "events": 3, "context": {"title": "  "}}
    event = city.get(others[0]).trigger_event
    sql = "UPDATE trigger_events SET payload = :said WHERE id = :id"
    city.run(lambda tx: tx.db.execute(sql, {"id": event, "said": json.dumps(bad)}))
    taken = take(city)
    assert taken.enriched == 3
    (left,) = [item for item in taken.items if item.kind == ItemKind.ENQUEUE_ENRICH]
    assert left.payload["run"] == others[0]
    assert [city.get(one).state for one in (run, *others)] == ["ready", "queued", "ready", "ready"]
    failed = city.run(enriching.enrich, left, ME, ctx=city.context)
    assert (failed.state, failed.reason) == (RunState.FAILED, "enrichment_failed")


def test_a_run_that_another_worker_enriches_is_left_to_its_own_handling(city: City, run: str) -> None:
    (item,) = city.run(outbox.claim_due, OTHER.owner, city.clock.now(), limit=1)
    city.run(enriching.begin, item, OTHER, city.clock.now())
    city.run(outbox.later, item, city.clock.now(), city.clock.now())
    taken = take(city)
    assert (taken.enriched, [one.kind for one in taken.items]) == (0, ["enqueue_enrich"])
    assert city.run(enriching.enrich, taken.items[0], ME, ctx=city.context) is None
    assert city.get(run).lease.owner == "own_other"


def test_a_run_of_a_dead_worker_is_taken_up_without_telling_its_start_again(city: City, run: str) -> None:
    (item,) = city.run(outbox.claim_due, OTHER.owner, city.clock.now(), limit=1)
    city.run(enriching.begin, item, OTHER, city.clock.now())
    city.run(lambda tx: tx.runs.void_leases(OTHER.owner, now=city.clock.now()))
    city.run(outbox.later, item, city.clock.now(), city.clock.now())
    assert take(city).enriched == 1
    moves = [(one["from"], one["to"]) for one in city.shown(run)["events"] if one["type"] == "status_transition"]
    assert moves == [("queued", "enriching"), ("enriching", "ready")]


def test_what_a_process_cannot_take_stays_for_another_one(city: City, run: str) -> None:
    taken = take(city, reach=Reach("here", frozenset(), frozenset({ItemKind.ENQUEUE_EXECUTE.value})))
    assert [item.kind for item in taken.items] == ["write_artifact"]
    assert ("enqueue_execute", "pending", None) in items(city, run)
    assert [item.kind for item in take(city).items] == ["enqueue_execute"]


@pytest.mark.parametrize(
    ("more", "settled"), [({}, True), ({"kept": True}, False), ({"node": "there"}, False), ({"node": "here"}, True)]
)
def test_a_session_that_was_released_here_needs_no_stop(
    city: City, run: str, more: dict[str, object], *, settled: bool
) -> None:
    take(city)
    payload = {"session": run, "run": run} | more
    made = new_item(city.ids.make("out"), ItemKind.STOP_SESSION, payload, city.clock.now())
    city.run(lambda tx: tx.outbox.add(made))
    taken = take(city, released=frozenset({run}))
    assert (taken.over, len(taken.items), len(taken)) == ((1, 0, 1) if settled else (0, 1, 1))
    found: Item = city.read(lambda tx: tx.outbox.get(made.id))
    assert (found.state, found.claims) == (("done", 1) if settled else ("claimed", 1))
