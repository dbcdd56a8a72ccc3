"""Beads as transactions, on both databases: events, causes, trees, wisps, and what happens side by side."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from lamplighter.domain.beads.formulas import Plan, decode, plan
from lamplighter.domain.beads.model import BeadChange, BeadFilter, BeadNotFound, BeadStatus, NeedsCycle, NewBead
from lamplighter.domain.events import Event
from lamplighter.kit.errors import UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.shapes import to_json
from lamplighter.services import formulas
from lamplighter.services.beads import changes as service
from lamplighter.services.beads.views import view
from lamplighter.services.context import acting
from lamplighter.services.own_beads import OwnBeads
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.tx import DirectStore
from lamplighter.store.url import Place, PostgresUrl, open_direct
from lamplighter.testing.clock import FakeClock

CITY = "cty_beads"
DAY = timedelta(days=1)


@pytest.fixture
def store(place: Place, fake_clock: FakeClock) -> Iterator[DirectStore]:
    opened = open_direct(place, CITY)
    opened.transact(lambda tx: tx.cities.ensure("beads", fake_clock.now()))
    yield opened
    opened.close()


@pytest.fixture
def own(store: DirectStore, ids: IdSource, fake_clock: FakeClock) -> Callable[..., OwnBeads]:
    def as_amber(run: str | None = None) -> OwnBeads:
        return OwnBeads(
            store, prefix=lambda _rig: "lc", context=lambda: acting("amber", fake_clock.now(), ids).inside(run)
        )

    return as_amber


@pytest.fixture
def beads(own: Callable[..., OwnBeads]) -> OwnBeads:
    return own()


@pytest.fixture
def told(store: DirectStore, place: Place) -> Callable[[], list[Event]]:
    """The events since it was last asked."""
    seen = 0

    def news() -> list[Event]:
        nonlocal seen
        if isinstance(place, PostgresUrl):
            store.transact(lambda tx: number_committed(tx.db))
        found = store.read(lambda tx: tx.events.after(seen))
        seen = max([seen, *(event.seq for event in found)])
        return found

    return news


def kinds(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.type, event.subject) for event in events]


def test_every_change_tells_one_event_with_the_bead_as_it_now_is(
    beads: OwnBeads, told: Callable[[], list[Event]], fake_clock: FakeClock
) -> None:
    made = beads.create(NewBead("Build", labels=("x",)))
    assert kinds(told()) == [("bead.created", made.id)]
    fake_clock.advance(1)
    changed = beads.change(made.id, BeadChange(title="Build it", add_labels=("y",)))
    (event,) = told()
    assert (event.type, event.actor, event.message, event.at) == (
        "bead.updated",
        "amber",
        "Build it",
        fake_clock.now(),
    )
    assert event.payload == to_json(view(changed))
    beads.claim(made.id, "amber")
    beads.claim(made.id, "amber")
    beads.close(made.id)
    beads.close(made.id)
    assert kinds(told()) == [("bead.updated", made.id), ("bead.closed", made.id)]


def test_a_change_that_changes_nothing_tells_nothing(
    beads: OwnBeads, told: Callable[[], list[Event]], fake_clock: FakeClock
) -> None:
    made = beads.create(NewBead("Build", labels=("x",), metadata={"k": "v"}))
    told()
    fake_clock.advance(1)
    assert beads.change(made.id, BeadChange(title="Build", add_labels=("x",), metadata={"k": "v"})) == made
    assert told() == []


def test_a_refused_change_tells_nothing(beads: OwnBeads, told: Callable[[], list[Event]]) -> None:
    made = beads.create(NewBead("Build"))
    told()
    with pytest.raises(NeedsCycle):
        beads.change(made.id, BeadChange(title="New", add_needs=(made.id,)))
    assert told() == []
    assert beads.get(made.id) == made


def test_bookkeeping_tells_nothing_and_is_never_ready(beads: OwnBeads, told: Callable[[], list[Event]]) -> None:
    made = beads.create(NewBead("Run 1", type="run", labels=("automation-run:sweep",)))
    beads.change(made.id, BeadChange(add_labels=("exec",)))
    beads.close(made.id)
    assert told() == []
    assert beads.ready() == []
    assert [bead.id for bead in beads.matching(BeadFilter(label="automation-run:sweep"), limit=5)] == [made.id]


def test_the_last_child_tells_of_everything_that_closed(beads: OwnBeads, told: Callable[[], list[Event]]) -> None:
    convoy = beads.create(NewBead("Convoy", type="convoy"))
    molecule = beads.create(NewBead("Molecule", type="molecule", parent=convoy.id))
    step = beads.create(NewBead("Step", parent=molecule.id))
    told()
    beads.close(step.id)
    assert kinds(told()) == [
        ("bead.closed", step.id),
        ("bead.closed", molecule.id),
        ("bead.closed", convoy.id),
        ("convoy.closed", convoy.id),
    ]


def test_the_run_that_caused_a_bead_is_on_record_and_so_on_what_happens_to_it_later(
    own: Callable[..., OwnBeads], told: Callable[[], list[Event]]
) -> None:
    root = own("run_1").cook(tea())
    (step,) = own().children(root.id)
    own().claim(step.id, "amber")
    added = own().create(NewBead("Also", parent=root.id))
    own("run_2").close(step.id)
    mine = own().create(NewBead("Unrelated"))
    assert (root.run, step.run, added.run, mine.run) == ("run_1", "run_1", "run_1", None)
    assert [(event.subject, event.run) for event in told()] == [
        (root.id, "run_1"),
        (step.id, "run_1"),
        (step.id, "run_1"),
        (added.id, "run_1"),
        (step.id, "run_2"),
        (mine.id, None),
    ]


def test_a_bead_given_back_is_open_for_all(beads: OwnBeads, store: DirectStore, fake_clock: FakeClock) -> None:
    made = beads.create(NewBead("Build"))
    beads.claim(made.id, "amber")
    ctx = acting("patrol", fake_clock.now())
    freed = store.transact(service.release, made.id, ctx=ctx)
    assert (freed.status, freed.assignee) == (BeadStatus.OPEN, None)
    assert store.transact(service.release, made.id, ctx=ctx) == freed
    with pytest.raises(BeadNotFound):
        store.transact(service.release, "zz-404", ctx=ctx)


def test_a_moved_tree_belongs_to_its_new_root(beads: OwnBeads) -> None:
    old, new = (beads.create(NewBead(name, type="epic")) for name in ("Old", "New"))
    branch = beads.create(NewBead("Branch", parent=old.id))
    leaf = beads.create(NewBead("Leaf", parent=branch.id))
    stays = beads.create(NewBead("Beside it", parent=old.id))
    assert (beads.get(branch.id).root, beads.get(leaf.id).root) == (old.id, old.id)
    beads.change(branch.id, BeadChange(parent=new.id))
    assert (beads.get(branch.id).root, beads.get(leaf.id).root) == (new.id, new.id)
    beads.change(branch.id, BeadChange(parent=""))
    assert (beads.get(branch.id).root, beads.get(leaf.id).root) == (branch.id, branch.id)
    assert [beads.get(one.id).root for one in (old, stays, new)] == [old.id, old.id, new.id], "what is not moved stays"


def test_open_work_moved_below_a_closed_convoy_opens_it(beads: OwnBeads) -> None:
    convoy = beads.create(NewBead("Convoy", type="convoy"))
    beads.close(beads.create(NewBead("Child", parent=convoy.id)).id)
    assert beads.get(convoy.id).status is BeadStatus.CLOSED
    stray = beads.create(NewBead("Stray"))
    beads.change(stray.id, BeadChange(parent=convoy.id))
    assert beads.get(convoy.id).status is BeadStatus.OPEN


def test_cooking_that_fails_at_its_last_step_leaves_nothing(beads: OwnBeads, told: Callable[[], list[Event]]) -> None:
    made = Plan(NewBead("Bad", type="molecule"), (NewBead("Good", ref="a"), NewBead(" ", ref="b", needs=("a",))))
    with pytest.raises(UsageError):
        beads.cook(made)
    assert beads.matching(BeadFilter(), limit=10) == []
    assert told() == []


def test_wisps_are_collected_with_their_steps_some_time_after_they_close(
    beads: OwnBeads, store: DirectStore, fake_clock: FakeClock
) -> None:
    host = beads.create(NewBead("Host", type="epic"))
    wisp = beads.cook(tea())
    nested = beads.cook(tea(parent=host.id))
    other = beads.cook(tea())
    waiting = beads.create(NewBead("Waits for a step", needs=(beads.children(wisp.id)[0].id,)))
    kept = beads.create(NewBead("No wisp", type="molecule"))
    fake_clock.advance(5 * DAY)
    for root in (wisp, nested):
        beads.close(beads.children(root.id)[0].id)
    beads.close(kept.id)
    gone = [bead.id for root in (wisp, nested) for bead in (root, *beads.children(root.id))]
    assert collect(store, fake_clock) == 0, "what counts is when it closed, not when it was made"
    fake_clock.advance(2 * DAY)
    assert collect(store, fake_clock) == 2
    assert collect(store, fake_clock) == 0
    for bead in gone:
        with pytest.raises(BeadNotFound):
            beads.get(bead)
    left = {bead.id for bead in beads.matching(BeadFilter(), limit=20)}
    assert left == {host.id, other.id, beads.children(other.id)[0].id, waiting.id, kept.id}
    assert beads.get(waiting.id).needs == ()


def collect(store: DirectStore, clock: FakeClock) -> int:
    return store.transact(formulas.collect, closed_before=clock.now() - DAY)


def test_short_ids_grow_when_they_are_taken(store: DirectStore, fake_clock: FakeClock) -> None:
    always_zero = IdSource(fake_clock, bytes)
    beads = OwnBeads(store, prefix=lambda _rig: "lc", context=lambda: acting("amber", fake_clock.now(), always_zero))
    assert [beads.create(NewBead("B")).id for _ in range(3)] == ["lc-000", "lc-0000", "lc-00000"]


def test_needs_added_side_by_side_never_close_a_circle(place: Place, beads: OwnBeads, fake_clock: FakeClock) -> None:
    """Four beads in a ring whose every other link is there: the two missing ones may not both be added."""
    for _ in range(5):
        ring = [beads.create(NewBead(f"Bead {number}")).id for number in range(4)]
        beads.change(ring[1], BeadChange(add_needs=(ring[2],)))
        beads.change(ring[3], BeadChange(add_needs=(ring[0],)))
        links = [(ring[0], ring[1]), (ring[2], ring[3])]
        outcomes = side_by_side(
            place,
            fake_clock,
            [lambda own, link=link: own.change(link[0], BeadChange(add_needs=(link[1],))) for link in links],
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Bead", "NeedsCycle"]


def test_the_last_steps_closed_side_by_side_close_the_wisp_once(
    place: Place, beads: OwnBeads, fake_clock: FakeClock, told: Callable[[], list[Event]]
) -> None:
    root = beads.create(NewBead("Wisp", type="molecule"))
    steps = [beads.create(NewBead(f"Step {number}", parent=root.id)).id for number in range(6)]
    told()
    outcomes = side_by_side(place, fake_clock, [lambda own, step=step: own.close(step) for step in steps])
    assert {outcome.status for outcome in outcomes} == {BeadStatus.CLOSED}
    assert beads.get(root.id).status is BeadStatus.CLOSED
    assert sorted(kinds(told())) == sorted(("bead.closed", bead) for bead in (*steps, root.id))


def test_trees_moved_below_one_another_side_by_side_make_no_circle(
    place: Place, beads: OwnBeads, fake_clock: FakeClock
) -> None:
    for _ in range(5):
        tops = [beads.create(NewBead(f"Top {number}", type="epic")).id for number in range(2)]
        leaves = [beads.create(NewBead("Leaf", type="epic", parent=top)).id for top in tops]
        moves = [(tops[0], leaves[1]), (tops[1], leaves[0])]
        outcomes = side_by_side(
            place,
            fake_clock,
            [lambda own, move=move: own.change(move[0], BeadChange(parent=move[1])) for move in moves],
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Bead", "BelowItself"]
        assert len({beads.get(bead).root for bead in (*tops, *leaves)}) == 1


def side_by_side(place: Place, clock: FakeClock, calls: list[Callable[[OwnBeads], Any]]) -> list[Any]:
    """What each call gave or raised, each on a connection and thread of its own, all begun together."""
    together = Barrier(len(calls))

    def run(call: Callable[[OwnBeads], Any]) -> Any:
        store = open_direct(place, CITY)
        own = OwnBeads(store, prefix=lambda _rig: "lc", context=lambda: acting("amber", clock.now(), IdSource(clock)))
        try:
            together.wait(30)
            return call(own)
        except Exception as error:  # noqa: BLE001  the test judges it
            return error
        finally:
            store.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls, timeout=180))


def tea(parent: str | None = None) -> Plan:
    made = plan(decode({"formula": "tea", "steps": [{"id": "boil", "title": "Boil"}]}, "tea"), title=None, values={})
    return replace(made, root=replace(made.root, parent=parent))
