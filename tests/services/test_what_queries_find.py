"""What the queries of the pipeline find: rows that differ in one thing from those they are about are left out."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.automations.state import TriggerState
from lamplighter.domain.delivery.outbox import Item, ItemState, NotClaimed, claim
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.inbox.items import COUNTING, InboxItem, Kind, State
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.records import changed
from lamplighter.store.engine.db import stamp
from lamplighter.store.owners import Owner
from lamplighter.store.triggers import BLOCKED, TriggerRow, hook_key

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def update(city: City, table: str, row: str, values: Mapping[str, Any]) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in values)
    statement = f"UPDATE {table} SET {columns} WHERE id = :row_id"
    assert city.run(lambda tx: tx.db.execute(statement, {**values, "row_id": row})) == 1


# ── runs at work ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def at_work(city: City) -> dict[str, str]:
    """Running runs on a node that is gone, without a lease since an hour, and some that differ in one thing."""
    gone = {
        "state": "running", "action": "agent", "node": "gone", "lease_owner": None, "lease_expires_at": None,
        "orphaned_at": stamp(city.clock.now() - HOUR), "session_id": "ses_1",
    }  # fmt: skip
    later = stamp(city.clock.now() + HOUR)
    kinds: dict[str, dict[str, Any]] = {
        "exec": gone | {"action": "exec"},
        "agent": gone,
        "formula": gone | {"action": "formula"},
        "ended": gone | {"state": "failed"},
        "late": gone | {"orphaned_at": stamp(city.clock.now() - SECOND)},
        "leased": gone | {"lease_owner": "own_1", "lease_expires_at": later, "orphaned_at": None},
        "expired": gone | {"lease_owner": "own_1", "lease_expires_at": stamp(city.clock.now() - SECOND)},
        "taken": gone | {"taken_by": "ada", "session_id": None},
        "being_taken": gone | {"taken_by": "ada"},
        "here": gone | {"node": "here"},
    }
    found = {}
    for name, values in kinds.items():
        rig = "web" if name == "exec" else None
        short = name.replace("_", "-")
        city.add(short, rig=rig)
        found[name] = city.run_now(f"{short}:rig:{rig}" if rig else short).run
        update(city, "runs", found[name], values)
    city.run(lambda tx: tx.owners.register(Owner("own_1", "worker", "host", 1, city.clock.now(), "here")))
    return found


def named(found: Any, runs: Mapping[str, str]) -> set[str]:
    names = {run: name for name, run in runs.items()}
    return {names[one if isinstance(one, str) else one.id] for one in found}


def test_orphans_are_the_runs_of_a_node_that_nobody_holds_and_that_are_not_a_person_s(
    city: City, at_work: dict[str, str]
) -> None:
    def orphans(**keys: Any) -> set[str]:
        found = city.run(lambda tx: tx.runs.orphans("gone", city.clock.now(), limit=99, **keys))
        assert city.read(lambda tx: tx.runs.has_orphans("gone", city.clock.now(), **keys)) == bool(found)
        return named(found, at_work)

    assert orphans() == {"exec", "agent", "late", "expired", "being_taken"}
    assert orphans(rigs=frozenset({"docs"})) == {"agent", "late", "expired", "being_taken"}
    assert "exec" in orphans(rigs=frozenset({"docs", "web"}))
    assert len(city.run(lambda tx: tx.runs.orphans("gone", city.clock.now(), limit=2))) == 2
    assert not city.read(lambda tx: tx.runs.has_orphans("nowhere", city.clock.now()))


def test_stranded_are_those_whose_node_has_had_no_process_for_long(city: City, at_work: dict[str, str]) -> None:
    before = city.clock.now() - 60 * SECOND
    assert named(city.read(lambda tx: tx.runs.stranded(before=before, limit=99)), at_work) == {"exec", "agent"}
    assert len(city.read(lambda tx: tx.runs.stranded(before=before, limit=1))) == 1


def test_what_is_held_and_by_whom_and_where_something_runs(city: City, at_work: dict[str, str]) -> None:
    update(city, "runs", at_work["ended"], {"lease_owner": "own_1"})
    held = city.read(lambda tx: tx.runs.held())
    assert held == {at_work["leased"]: "own_1", at_work["expired"]: "own_1"}
    assert city.read(lambda tx: tx.runs.busy_nodes()) == {"gone", "here"}
    for name in ("here",):
        update(city, "runs", at_work[name], {"state": "succeeded"})
    assert city.read(lambda tx: tx.runs.busy_nodes()) == {"gone"}
    called = city.read(lambda tx: tx.runs.called(at_work.values()))
    assert called == {at_work["taken"]: True, at_work["being_taken"]: True}
    update(city, "runs", at_work["agent"], {"pending": "cmp_1"})
    assert city.read(lambda tx: tx.runs.called([at_work["agent"], at_work["exec"]])) == {at_work["agent"]: False}


def test_leases_are_voided_save_those_that_are_spared_or_end_late(city: City, at_work: dict[str, str]) -> None:
    now = city.clock.now()
    void = lambda **keys: city.run(lambda tx: tx.runs.void_leases("own_1", now=now, **keys))  # noqa: E731
    assert void(spared=[at_work["leased"], at_work["expired"]]) == 0
    assert void(ending_until=now) == 1
    assert city.get(at_work["expired"]).lease.owner is None
    assert city.get(at_work["leased"]).lease.owner == "own_1"
    assert city.run(lambda tx: tx.runs.void_leases("own_2", now=now)) == 0
    assert void() == 1
    assert city.read(lambda tx: tx.runs.held()) == {}
    assert void() == 0


def test_a_lease_is_renewed_by_its_holder_alone_and_never_shortened(city: City, at_work: dict[str, str]) -> None:
    run, now = at_work["leased"], city.clock.now()
    version = city.get(run).lease.version
    for owner, number, hours in (("own_2", version, 2), ("own_1", version + 1, 2), ("own_1", version, 0)):
        city.run(lambda tx, o=owner, n=number, h=hours: tx.runs.renew(run, o, n, until=now + h * HOUR))
        assert city.get(run).lease.expires_at == now + HOUR
    city.run(lambda tx: tx.runs.renew(run, "own_1", version, until=now + 2 * HOUR))
    assert city.get(run).lease.expires_at == now + 2 * HOUR
    assert city.read(lambda tx: tx.runs.states([run])) == {run: (RunState.RUNNING, version, "own_1")}


def test_lost_are_those_that_nothing_moves_any_more(city: City) -> None:
    runs = {}
    for name in ("ready", "item", "claimed", "leased", "running", "wisp", "cooked", "young"):
        city.add(name)
        runs[name] = city.run_now(name).run
    for name in ("ready", "leased", "running", "wisp", "cooked", "young"):
        city.run(lambda tx, run=runs[name]: tx.db.execute("DELETE FROM outbox WHERE run_id = :run", {"run": run}))
    claimed = "UPDATE outbox SET state = 'claimed', claimed_by = 'o', claimed_at = 1 WHERE run_id = :run"
    city.run(lambda tx: tx.db.execute(claimed, {"run": runs["claimed"]}))
    later = stamp(city.clock.now() + HOUR)
    update(city, "runs", runs["leased"], {"lease_owner": "own_1", "lease_expires_at": later})
    update(city, "runs", runs["running"], {"state": "running"})
    update(city, "runs", runs["wisp"], {"state": "running", "action": "formula"})
    update(city, "runs", runs["cooked"], {"state": "running", "action": "formula", "wisp_id": "gc-1"})
    update(city, "runs", runs["young"], {"created_at": later})
    soon, before = city.clock.now() + 2 * SECOND, city.clock.now() + SECOND
    found = city.read(lambda tx: tx.runs.lost(soon, before=before, limit=99))
    assert {one[0] for one in found} == {runs["ready"], runs["wisp"]}
    update(city, "runs", runs["leased"], {"lease_expires_at": stamp(city.clock.now())})
    assert len(city.read(lambda tx: tx.runs.lost(soon, before=before, limit=99))) == 3
    assert len(city.read(lambda tx: tx.runs.lost(soon, before=before, limit=1))) == 1


# ── the outbox ────────────────────────────────────────────────────────────────────────────────────────────────────────


def item(city: City, number: int, **fields: Any) -> Item:
    made = Item(f"out_{number}", "notify_automation", {"n": number}, city.clock.now() + (number - 5) * SECOND)
    made = changed(made, **fields)
    city.run(lambda tx: tx.outbox.add(made))
    return made


def ids(found: Any) -> list[str]:
    return [getattr(one, "item", one).id for one in found]


def test_due_are_the_pending_items_whose_time_has_come_within_reach(city: City) -> None:
    for number in (1, 2, 3):
        item(city, number)
    item(city, 4, payload={"node": "here"})
    item(city, 5, kind="enqueue_execute", payload={"run": "run_1", "rig": "web"})
    item(city, 6)  # its time has not come
    now = city.clock.now()
    city.run(lambda tx: tx.outbox.swap(tx.outbox.lock("out_2"), claim(tx.outbox.lock("out_2"), "o", now), now=now))
    due = lambda **keys: ids(city.run(lambda tx: tx.outbox.due(city.clock.now(), limit=9, **keys)))  # noqa: E731
    assert due() == ["out_1", "out_3", "out_4", "out_5"]
    assert due(run="run_1") == ["out_5"]
    assert due(reach=Reach("there", frozenset())) == ["out_1", "out_3"]
    assert due(reach=Reach("here", frozenset())) == ["out_1", "out_3", "out_4"]
    assert due(reach=Reach("there", frozenset({"web"}))) == ["out_1", "out_3", "out_5"]
    assert due(reach=Reach("here", frozenset({"web"}), frozenset({"notify_automation"}))) == ["out_5"]
    assert ids(city.run(lambda tx: tx.outbox.due(city.clock.now(), limit=1))) == ["out_1"]
    assert city.read(lambda tx: tx.outbox.next_due_at()) == city.clock.now() - 4 * SECOND
    only_web = Reach("there", frozenset({"web"}), frozenset({"notify_automation"}))
    assert city.read(lambda tx: tx.outbox.next_due_at(reach=only_web)) == city.clock.now()
    assert city.read(lambda tx: tx.outbox.needed()) == {"node:here": 1, "rig:web": 1}
    assert city.read(lambda tx: tx.outbox.open_items()) == {"pending": 5, "claimed": 1}
    assert city.read(lambda tx: tx.outbox.pending()) == 5


def test_what_was_claimed_and_not_settled_is_found_by_its_owner_and_by_its_age(city: City) -> None:
    now = city.clock.now()
    found = [item(city, number, due_at=now - 2 * HOUR) for number in (1, 2, 3)]
    for one, owner, at in zip(found, ("o", "o", "p"), (now - HOUR, now, now - HOUR), strict=True):
        city.run(lambda tx, one=one, owner=owner, at=at: tx.outbox.swap(one, claim(one, owner, at), now=at))
    with pytest.raises(NotClaimed):
        city.run(lambda tx: tx.outbox.swap(found[0], claim(found[0], "late", now), now=now))
    assert ids(city.run(lambda tx: tx.outbox.claimed_by("o"))) == ["out_1", "out_2"]
    assert ids(city.run(lambda tx: tx.outbox.hung(now - SECOND, limit=9))) == ["out_1", "out_3"]
    mine = city.run(lambda tx: tx.outbox.lock("out_1"))
    for state, at in ((ItemState.FAILED, now - HOUR), (ItemState.DONE, now)):
        one = city.run(lambda tx, state=state: tx.outbox.lock("out_1" if state is ItemState.FAILED else "out_2"))
        city.run(lambda tx, one=one, state=state, at=at: tx.outbox.swap(one, changed(one, state=state), now=at))
    with pytest.raises(NotClaimed):
        city.run(lambda tx: tx.outbox.swap(mine, changed(mine, state=ItemState.DONE), now=now))
    assert ids(city.run(lambda tx: tx.outbox.hung(now + SECOND, limit=9))) == ["out_3"]
    assert ids(city.run(lambda tx: tx.outbox.claimed_by("o"))) == []
    assert ids(city.read(lambda tx: tx.outbox.given_up())) == ["out_1"]
    assert city.read(lambda tx: tx.outbox.given_up())[0].settled_at == now - HOUR
    pages = {state: ids(city.read(lambda tx, state=state: tx.outbox.page(state))) for state in ItemState}
    assert pages == {"pending": [], "claimed": ["out_3"], "done": ["out_2"], "failed": ["out_1"]}
    assert ids(city.read(lambda tx: tx.outbox.page(ItemState.DONE, before="out_2"))) == []
    prune = lambda before, last: city.run(lambda tx: tx.outbox.prune(before=before, before_id=last, limit=9))  # noqa: E731
    assert prune(now - HOUR, "out_9") == 0
    assert prune(now, "out_1") == 0
    assert prune(now, "out_9") == 1
    assert ids(city.read(lambda tx: tx.outbox.given_up())) == []
    assert prune(now + SECOND, "out_9") == 1
    assert city.read(lambda tx: tx.outbox.open_items()) == {"pending": 0, "claimed": 1}


# ── triggers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def trigger(city: City, automation: str, name: str, *, due: int | None = -1, **fields: Any) -> None:
    now = city.clock.now()
    at = None if due is None else now + due * SECOND
    state = TriggerState(registered_at=now, next_due_at=at, event_cursor=fields.pop("cursor", 0))
    row = TriggerRow(automation, name, fields.pop("kind", "cron"), 0, fields.pop("armed", True), state, **fields)
    city.run(lambda tx: tx.triggers.put(row))


@pytest.fixture
def automations(city: City) -> tuple[str, str]:
    """Two automations without triggers."""
    found = []
    for name in ("a", "b"):
        row = city.add(name)
        for one in city.read(lambda tx, row=row: tx.triggers.of(row.id)):
            city.run(lambda tx, one=one: tx.triggers.remove(one))
        found.append(row.id)
    return found[0], found[1]


def names(found: Any) -> set[str]:
    return {one.id for one in found}


def test_due_triggers_are_armed_unheld_and_their_time_has_come(city: City, automations: tuple[str, str]) -> None:
    a, b = automations
    trigger(city, a, "now", due=0)
    trigger(city, a, "late", due=-5)
    trigger(city, a, "soon", due=1)
    trigger(city, a, "never", due=None)
    trigger(city, b, "off", armed=False, due=-9)
    trigger(city, b, "held", held_by="run_1", due=-9)
    trigger(city, b, "blocked", held_by=BLOCKED, due=-9)
    due = lambda limit=9: [one.id for one in city.run(lambda tx: tx.triggers.due(city.clock.now(), limit=limit))]  # noqa: E731
    assert (due(), due(1)) == (["late", "now"], ["late"])
    assert city.read(lambda tx: tx.triggers.next_due_at()) == city.clock.now() - 5 * SECOND
    assert city.run(lambda tx: tx.triggers.release_blocked()) == 1
    assert due() == ["blocked", "late", "now"]
    assert city.run(lambda tx: tx.triggers.release([a])) == 0
    assert city.run(lambda tx: tx.triggers.release([a, b])) == 1
    assert due() == ["held", "blocked", "late", "now"] or due() == ["blocked", "held", "late", "now"]
    city.run(lambda tx: tx.triggers.disarm(b))
    assert due() == ["late", "now"]
    city.run(lambda tx: tx.triggers.disarm(a))
    assert city.read(lambda tx: tx.triggers.next_due_at()) is None


def test_events_mark_the_armed_triggers_of_their_keys_once_and_the_lowest_cursor_is_theirs(
    city: City, automations: tuple[str, str]
) -> None:
    a, b = automations
    event = {"kind": "event", "due": None}
    trigger(city, a, "wanted", **event, event_key="bead.*", cursor=7)
    trigger(city, a, "marked", kind="event", due=-1, event_key="bead.*", cursor=9)
    trigger(city, a, "off", **event, event_key="bead.*", armed=False, cursor=1)
    trigger(city, b, "other", **event, event_key="run.*", cursor=2)
    trigger(city, b, "timed", cursor=3)
    assert city.read(lambda tx: tx.triggers.lowest_cursor()) == 9
    now = city.clock.now()
    assert city.run(lambda tx: tx.triggers.mark_due(["bead.*", "mail.*"], now)) == 1
    assert city.run(lambda tx: tx.triggers.mark_due(["bead.*"], now)) == 0
    assert city.read(lambda tx: tx.triggers.lowest_cursor()) == 7
    trigger(city, b, "other", **event, event_key="run.*", cursor=2, held_by="run_1")
    assert city.read(lambda tx: tx.triggers.lowest_cursor()) == 2
    assert names(city.run(lambda tx: tx.triggers.due(now, limit=9))) == {"wanted", "marked", "timed"}


def test_triggers_are_found_by_kind_connection_and_zone(city: City, automations: tuple[str, str]) -> None:
    a, b = automations
    trigger(city, a, "asks", kind="condition")
    trigger(city, b, "asks", kind="condition", armed=False)
    trigger(city, a, "hook", kind="webhook", event_key=hook_key("gh"), armed=False)
    trigger(city, b, "hook", kind="webhook", event_key=hook_key("other"))
    trigger(city, b, "poll", kind="event", event_key=hook_key("gh"))
    trigger(city, a, "utc", zone="UTC")
    trigger(city, a, "rome", zone="Europe/Rome")
    found = city.read(lambda tx: tx.triggers.conditions())
    assert [(one.automation, one.id) for one in found] == [(a, "asks")]
    assert [(one.automation, one.id) for one in city.read(lambda tx: tx.triggers.of_connection("gh"))] == [(a, "hook")]
    assert names(city.read(lambda tx: tx.triggers.of_other_zone("UTC"))) == {"rome"}
    city.run(lambda tx: tx.triggers.checked(found[0], "exit 1", city.clock.now()))
    results = {(one.automation, one.id): one.check_result for one in city.read(lambda tx: tx.triggers.all())}
    assert {key for key, result in results.items() if result} == {(a, "asks")}
    city.run(lambda tx: tx.triggers.remove(found[0]))
    assert len(city.read(lambda tx: tx.triggers.all())) == len(results) - 1
    assert names(city.read(lambda tx: tx.triggers.of(b))) == {"asks", "hook", "poll"}
    assert {key: names(rows) for key, rows in city.read(lambda tx: tx.triggers.of_some([a])).items()} == {
        a: {"hook", "utc", "rome"}
    }


# ── the inbox ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def need(city: City, number: int, **fields: Any) -> InboxItem:
    now = city.clock.now()
    made = InboxItem(f"inb_{number}", Kind.FAILED, f"f{number}", "sweep", {}, now, now, now)
    made = changed(made, **fields)
    city.run(lambda tx: tx.inbox.open(made))
    if made.state is State.SETTLED or made.told:
        city.run(lambda tx: tx.inbox.save(made))
    return made


def test_of_each_fingerprint_there_is_one_open_item(city: City) -> None:
    first = need(city, 1)
    need(city, 2, fingerprint="f1")
    assert ids(city.read(lambda tx: tx.inbox.page())) == ["inb_1"]
    assert city.run(lambda tx: tx.inbox.lock_open("f1")) == first
    assert city.run(lambda tx: tx.inbox.lock_open("f2")) is None
    now = city.clock.now()
    city.run(lambda tx: tx.inbox.save(changed(first, state=State.SETTLED, settled_at=now, settled_by="ada")))
    assert city.run(lambda tx: tx.inbox.lock_open("f1")) is None
    again = changed(first, id="inb_3")
    assert not city.run(lambda tx: tx.inbox.open_left_out(again, since=now))
    assert city.run(lambda tx: tx.inbox.open_left_out(again, since=now + SECOND))
    assert not city.run(lambda tx: tx.inbox.open_left_out(again, since=now + SECOND))
    assert city.run(lambda tx: tx.inbox.open_left_out(changed(first, id="inb_4", fingerprint="f4"), since=now))
    assert city.read(lambda tx: tx.inbox.settled_until("f1")) == stamp(now)
    assert city.read(lambda tx: tx.inbox.settled_until("f4")) is None
    assert ids(city.read(lambda tx: tx.inbox.open_ones())) == ["inb_3", "inb_4"]
    assert ids(city.read(lambda tx: tx.inbox.open_ones(after="f1"))) == ["inb_4"]
    assert ids(city.read(lambda tx: tx.inbox.page(state=State.SETTLED))) == ["inb_1"]
    assert ids(city.read(lambda tx: tx.inbox.page(before="inb_4"))) == ["inb_3", "inb_1"]
    assert ids(city.read(lambda tx: tx.inbox.named("inb_"))) == ["inb_1", "inb_3"]


def test_items_about_a_subject_are_settled_by_their_kinds(city: City) -> None:
    now = city.clock.now()
    need(city, 1)
    need(city, 2, subject="other")
    need(city, 3, kind=Kind.TIMED_OUT)
    need(city, 4, kind=Kind.DISABLED)
    need(city, 5, state=State.SETTLED, settled_at=now - HOUR, settled_by="ben", settled_how="resolved")
    kinds = [Kind.FAILED, Kind.TIMED_OUT]
    settle = lambda: city.run(  # noqa: E731
        lambda tx: tx.inbox.settle_of_subject("sweep", kinds, by="system", how="succeeded", now=now)
    )
    assert (settle(), settle()) == (2, 0)
    assert ids(city.read(lambda tx: tx.inbox.open_ones())) == ["inb_2", "inb_4"]
    assert city.read(lambda tx: tx.inbox.get("inb_5")).settled_by == "ben"
    prune = lambda before: city.run(lambda tx: tx.inbox.prune(before=before, limit=9))  # noqa: E731
    assert (prune(now - HOUR), prune(now), prune(now), prune(now + SECOND)) == (0, 1, 0, 2)
    assert ids(city.read(lambda tx: tx.inbox.open_ones())) == ["inb_2", "inb_4"]


def test_items_are_told_once_in_each_state_and_counting_ones_apart(city: City) -> None:
    need(city, 1)
    need(city, 2, told="open")
    need(city, 3, told=COUNTING)
    need(city, 4, told="open", state=State.SETTLED)
    need(city, 5, told="settled", state=State.SETTLED)
    need(city, 6, told=COUNTING, state=State.SETTLED)
    assert ids(city.run(lambda tx: tx.inbox.to_tell(limit=9))) == ["inb_1", "inb_4", "inb_6"]
    assert ids(city.run(lambda tx: tx.inbox.counting(after="", limit=9))) == ["inb_3", "inb_6"]
    assert ids(city.run(lambda tx: tx.inbox.counting(after="inb_3", limit=9))) == ["inb_6"]
    assert ids(city.run(lambda tx: tx.inbox.to_tell(limit=1))) == ["inb_1"]
    now = city.clock.now()
    for item_id, person in (("inb_1", "ada"), ("inb_1", "ada"), ("inb_2", "ben")):
        city.run(lambda tx, item_id=item_id, person=person: tx.inbox.see(item_id, person, now))
    assert city.read(lambda tx: tx.inbox.seen(["inb_1", "inb_2"], "ada")) == {"inb_1"}
    assert city.read(lambda tx: tx.inbox.seen(["inb_2"], "ada")) == set()
