"""Claims, leases and recoveries: one holder, nothing lost with a dead one, records pruned by age."""

from datetime import timedelta

import pytest
from automation_city import City

from lamplighter.domain.delivery.outbox import (
    MOST_ATTEMPTS,
    MOST_RECOVERIES,
    REQUIRED,
    ItemKind,
    NotClaimed,
    new_item,
)
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import By, IllegalMove, Mover, RunState
from lamplighter.services import outbox, owners, retention
from lamplighter.services.automations import editing
from lamplighter.services.runs import review
from lamplighter.store.owners import Owner


def owner(city: City, name: str) -> Owner:
    found = Owner(name, "worker", "here", 1, city.clock.now())
    city.run(owners.register, found)
    return found


def test_a_dead_owner_loses_leases_and_claims_at_once_and_at_no_cost(city: City) -> None:
    dead = owner(city, "own_dead")
    city.add("a", gate="cooldown", interval="1h")
    city.add("b", gate="cooldown", interval="1h")
    fired = city.tick().fired
    worker = review.Worker(dead.id, "here")
    running = city.start(fired[0], worker)
    (claimed,) = city.run(outbox.claim_due, dead.id, city.clock.now(), limit=5)
    assert city.run(owners.expire, dead, ctx=city.context) == owners.TakenBack(leases=1, items=1)
    (lost,) = city.events("owner.lost")
    assert (lost.payload["leases"], lost.payload["items"]) == (1, 1)
    (again,) = city.run(outbox.claim_due, "own_new", city.clock.now(), limit=5)
    assert (again.id, again.attempts, again.recoveries) == (claimed.id, 0, 1)
    (adopted,) = city.run(review.adopt, review.Worker("own_new", "here"), city.clock.now())
    assert adopted.id == running.id
    assert adopted.lease.version == running.lease.version + 1
    by = By(Mover.WORKER, "worker", running.lease.version)
    with pytest.raises(LeaseLost):
        city.run(review.end, running.id, review.Ending(RunState.SUCCEEDED), by, ctx=city.context)


def test_another_machine_does_not_adopt_what_it_cannot_see(city: City) -> None:
    dead = owner(city, "own_dead")
    city.add("a", gate="cooldown", interval="1h")
    city.start(city.tick().fired[0], review.Worker(dead.id, "there"))
    city.run(owners.expire, dead, ctx=city.context)
    assert city.run(review.adopt, review.Worker("own_new", "here"), city.clock.now()) == []
    assert len(city.run(review.adopt, review.Worker("own_new", "there"), city.clock.now())) == 1


def test_an_item_that_kills_worker_after_worker_fails_its_run(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    for number in range(MOST_RECOVERIES):
        dead = owner(city, f"own_{number}")
        city.run(outbox.claim_due, dead.id, city.clock.now(), limit=1)
        city.run(owners.expire, dead, ctx=city.context)
    assert (city.get(run).state, city.get(run).reason) == (RunState.FAILED, "delivery_failed")


def test_a_hung_worker_loses_its_claim_after_five_minutes_and_its_result_does_not_count(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    city.tick()
    (item,) = city.run(outbox.claim_due, "own_hung", city.clock.now(), limit=1)
    assert city.run(outbox.take_back_hung, ctx=city.context) == 0
    city.advance(minutes=6)
    assert city.run(outbox.take_back_hung, ctx=city.context) == 1
    with pytest.raises(NotClaimed):
        city.run(review.start, item, review.Worker("own_hung", "here"), city.clock.now())
    (again,) = city.run(outbox.claim_due, "own_new", city.clock.now(), limit=1)
    assert again.attempts == 1


def test_an_item_that_gives_up_fails_its_run_in_the_same_transaction(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    for _ in range(MOST_ATTEMPTS):
        city.advance(minutes=6)
        (item,) = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=1)
        city.run(outbox.failed, item, "no disk", permanent=False, ctx=city.context)
    row = city.get(run)
    assert (row.state, row.reason, row.error) == (RunState.FAILED, "delivery_failed", "no disk")


def test_a_lost_item_comes_back(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    city.run(lambda tx: tx.db.execute("DELETE FROM outbox", {}))
    assert city.run(review.sweep, ctx=city.context) == 0
    city.advance(minutes=2)
    assert city.run(review.sweep, ctx=city.context) == 1
    assert city.run(review.sweep, ctx=city.context) == 0
    city.finish(run)


def test_cancel_ends_it_and_a_late_worker_is_refused(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    started = city.start(run)
    held = {run: started.lease.version}
    assert city.read(review.lost_among, held, "own_test") == set()
    city.run(review.cancel, run, ctx=city.context)
    assert city.read(review.lost_among, held, "own_test") == {run}
    by = By(Mover.WORKER, "worker", started.lease.version)
    with pytest.raises(IllegalMove):
        city.run(review.end, run, review.Ending(RunState.SUCCEEDED), by, ctx=city.context)
    with pytest.raises(IllegalMove):
        city.run(review.cancel, run, ctx=city.context)
    again = city.run(review.retry, run, ctx=city.context)
    assert again.retries == run
    assert again.trigger_event != started.trigger_event, "a repetition has an entry of its own in the history"


def test_a_paused_city_begins_no_work(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    city.tick()
    city.run(editing.pause, ctx=city.context)
    assert city.run(outbox.claim_due, "own_1", city.clock.now(), limit=5) == []
    assert city.read(outbox.next_due_at) is None, "nobody is to look again before it is resumed"
    city.run(editing.resume, ctx=city.context)
    assert len(city.run(outbox.claim_due, "own_1", city.clock.now(), limit=5)) == 1


def test_what_ends_stops_and_tells_goes_on_in_a_paused_city(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    city.tick()
    city.run(editing.pause, ctx=city.context)
    for kind in ItemKind:
        payload = dict.fromkeys(REQUIRED[kind], "x") | {"deliveries": ["x"]}
        city.run(lambda tx, item: tx.outbox.add(item), new_item(f"out_{kind}", kind, payload, city.clock.now()))
    claimed = {item.kind for item in city.run(outbox.claim_due, "own_1", city.clock.now(), limit=50)}
    stages = {ItemKind.ENQUEUE_ENRICH, ItemKind.ENQUEUE_EXECUTE, ItemKind.COOK}
    begin = {*stages, ItemKind.PROCESS_DELIVERY, ItemKind.BULK_PART}
    assert claimed == set(ItemKind) - begin


def test_a_lease_is_renewed_by_its_holder_only(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    started = city.start(run)
    held = {run: started.lease.version}
    city.advance(minutes=4)
    assert city.run(review.renew, held, "own_test", city.clock.now()) == set()
    assert city.get(run).lease.expires_at == city.clock.now() + timedelta(minutes=5)
    assert city.run(review.renew, held, "own_other", city.clock.now()) == {run}


def test_old_records_go_with_their_tracking_beads_and_what_is_under_way_stays(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h", overlap="allow")
    old = city.tick().fired[0]
    city.finish(old)
    city.advance(hours=2)
    active = city.tick().fired[0]
    city.advance(days=100)
    before = city.clock.now() - timedelta(days=90)
    bead = city.get(old).bead
    assert city.run(retention.prune_runs, before=before) == 1
    assert city.run(retention.prune_trigger_events, before=before) == 1
    assert city.run(retention.prune_outbox, before=before) == 1
    assert [row.id for row in city.runs_of("a")] == [active]
    assert city.read(lambda tx: tx.beads.get(bead)) is None
    assert city.read(lambda tx: tx.runs.events(old)) == []


def test_events_that_a_held_trigger_has_still_to_read_are_spared(city: City) -> None:
    city.add("hears", gate="event", on="x.y")
    city.emit("x.y")
    (run,) = city.tick().fired
    city.emit("x.y")
    city.tick()
    unread = city.read(lambda tx: tx.events.after_of_type("x.y", 0))[-1].seq
    assert city.read(retention.unread_events) < unread
    city.finish(run)
    city.finish(city.tick().fired[0])
    city.run(lambda tx: tx.cities.scanned(tx.events.head()))
    assert city.read(retention.unread_events) < unread, "the rollups have not read it"
    city.run(lambda tx: tx.rollups.advance(tx.events.head(), expected=tx.rollups.position()))
    assert city.read(retention.unread_events) >= unread
