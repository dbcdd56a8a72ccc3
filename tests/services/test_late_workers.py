"""What a worker that comes too late may no longer write, and what becomes of a run whose item is given up."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from automation_city import City

from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.delivery.outbox import Item, ItemKind, ItemState, NotClaimed
from lamplighter.domain.runs.lease import LEASE, void
from lamplighter.domain.runs.model import RunState
from lamplighter.services import outbox, owners
from lamplighter.services.beads import changes
from lamplighter.services.runs import cooking, review
from lamplighter.store.owners import Owner
from lamplighter.store.runs import StaleRun
from lamplighter.store.tx import Tx

LATE, NEW = review.Worker("own_late", "here"), review.Worker("own_new", "here")


@pytest.fixture
def taken_over(city: City) -> tuple[Item, Item]:
    """An item as the late worker claimed it, and as another has claimed it since."""
    city.add("a", gate="cooldown", interval="1h")
    city.tick()
    (late,) = city.run(outbox.claim_due, LATE.owner, city.clock.now(), limit=1)
    city.advance(minutes=6)
    assert city.run(outbox.take_back_hung, ctx=city.context) == 1
    (new,) = city.run(outbox.claim_due, NEW.owner, city.clock.now(), limit=1)
    assert (late.id, late.state, late.claims + 1) == (new.id, new.state, new.claims)
    return late, new


def test_a_late_worker_cannot_start_what_another_has_claimed_since(city: City, taken_over: tuple[Item, Item]) -> None:
    late, new = taken_over
    with pytest.raises(NotClaimed):
        city.run(review.start, late, LATE, city.clock.now())
    assert city.get(late.payload["run"]).state is RunState.READY
    assert city.run(review.start, new, NEW, city.clock.now()).row.lease.owner == NEW.owner


@pytest.mark.parametrize(
    "settle",
    [
        lambda tx, item, city: outbox.done(tx, item, city.clock.now()),
        lambda tx, item, city: outbox.later(tx, item, city.clock.now(), city.clock.now()),
        lambda tx, item, city: outbox.failed(tx, item, "no", permanent=True, ctx=city.context),
    ],
    ids=["done", "later", "failed"],
)
def test_a_late_worker_settles_nothing(
    city: City, taken_over: tuple[Item, Item], settle: Callable[[Tx, Item, City], object]
) -> None:
    late, new = taken_over
    with pytest.raises(NotClaimed):
        city.run(settle, late, city)
    assert city.run(lambda tx: tx.outbox.lock(late.id)) == new


def test_an_item_is_not_overwritten_by_whoever_knows_an_older_claim_of_it(
    city: City, taken_over: tuple[Item, Item]
) -> None:
    late, new = taken_over
    with pytest.raises(NotClaimed):
        city.run(lambda tx: tx.outbox.swap(late, replace(late, state=ItemState.DONE), now=city.clock.now()))
    assert city.run(lambda tx: tx.outbox.lock(late.id)) == new


@pytest.mark.parametrize("way", ["swap", "end"])
def test_a_run_is_not_overwritten_by_whoever_knows_an_older_lease_of_it(city: City, way: str) -> None:
    dead = Owner(LATE.owner, "worker", "here", 1, city.clock.now())
    city.run(owners.register, dead)
    city.add("a", gate="cooldown", interval="1h")
    before = city.start(city.tick().fired[0], LATE)
    city.run(owners.expire, dead, ctx=city.context)
    (adopted,) = city.run(review.adopt, NEW, city.clock.now())
    assert (adopted.state, adopted.lease.version) == (before.state, before.lease.version + 1)
    ended = replace(before, state=RunState.FAILED, ended_at=city.clock.now(), lease=void(before.lease))
    with pytest.raises(StaleRun):
        city.run(lambda tx: getattr(tx.runs, way)(before, ended))
    assert city.get(before.id) == adopted


def test_a_wisp_that_cannot_be_cooked_elsewhere_fails_its_run(city: City) -> None:
    city.add("cooks", formula="feature")
    run = city.run_now("cooks").run
    (item,) = city.run(outbox.claim_due, NEW.owner, city.clock.now(), limit=1, run=run)
    city.run(cooking.cook_elsewhere, item, NEW, ctx=city.context)
    (cook,) = city.run(outbox.claim_due, NEW.owner, city.clock.now(), limit=1, run=run)
    assert cook.kind == ItemKind.COOK
    city.run(outbox.failed, cook, "no such store", permanent=True, ctx=city.context)
    row = city.get(run)
    assert (row.state, row.reason, row.error) == (RunState.FAILED, "delivery_failed", "no such store")


def test_a_run_that_ended_while_its_wisp_was_cooked_elsewhere_names_the_wisp(city: City) -> None:
    city.add("cooks", formula="feature")
    run = city.run_now("cooks").run
    (item,) = city.run(outbox.claim_due, NEW.owner, city.clock.now(), limit=1, run=run)
    city.run(cooking.cook_elsewhere, item, NEW, ctx=city.context)
    (cook,) = city.run(outbox.claim_due, NEW.owner, city.clock.now(), limit=1, run=run)
    city.run(review.cancel, run, ctx=city.context)
    wisp = city.run(changes.create, NewBead("feature"), prefix="gc", ctx=city.context)
    city.run(cooking.cooked_elsewhere, cook, replace(wisp, id="ext-7"), city.context)
    row = city.get(run)
    assert (row.state, row.wisp, row.wisp_elsewhere) == (RunState.CANCELED, "ext-7", True)
    told = city.read(lambda tx: tx.runs.events(run))
    assert [event.data for event in told if event.type == "wisp_cooked"] == [{"wisp": "ext-7"}]
    item_now = city.run(lambda tx: tx.outbox.lock(cook.id))
    assert item_now.state is ItemState.DONE


def test_renewing_a_lease_never_shortens_it(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    started = city.start(city.tick().fired[0], NEW)
    held, run = {started.id: started.lease.version}, started.id
    earlier = city.clock.now() - timedelta(minutes=1)  # the clock of this machine was set back
    assert city.run(review.renew, held, NEW.owner, earlier) == set()
    assert city.get(run).lease.expires_at == started.lease.expires_at
    city.advance(minutes=1)
    assert city.run(review.renew, held, NEW.owner, city.clock.now()) == set()
    assert city.get(run).lease.expires_at == city.clock.now() + LEASE
