"""Deliveries from their receipt to their runs, on both databases: the acceptance cases by their numbers, and more."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.access import Actor as Person
from lamplighter.domain.access import Forbidden, Role
from lamplighter.domain.delivery.outbox import HUNG_AFTER, Item, ItemKind, ItemState, new_item
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.services import outbox
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import Context
from lamplighter.services.deliveries import processing
from lamplighter.services.deliveries.operations import (
    LIST,
    REPLAY,
    SHOW,
    DeliveryUnknown,
    ListDeliveries,
    ReplayDeliveries,
    ShowDelivery,
)
from lamplighter.services.deliveries.receiving import (
    FLOOD_WAIT,
    JUDGED_AT_ONCE,
    Keeping,
    Pace,
    Received,
    SourceChanged,
    keep,
    keep_many,
    processed_by,
)
from lamplighter.services.operation import judged
from lamplighter.services.retention import prune_deliveries
from lamplighter.services.runs import review
from lamplighter.services.runs.operations import (
    CLAIM_RUN,
    RESOLVE_RUN,
    UNCLAIM_RUN,
    ClaimRun,
    Resolved,
    ResolveRun,
    UnclaimRun,
)
from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import Deliveries, DeliveryRow

HOOK = {"gate": "webhook", "connection": "gh"}


def connect(city: City, name: str = "gh", **keys: Any) -> None:
    row = ConnectionRow(name, Provider.GITHUB, "", (), (), (), city.clock.now(), "tester")
    assert city.run(lambda tx: tx.connections.add(replace(row, **keys)))


def issue(action: str = "opened", number: int = 12, author: str = "ada", **more: Any) -> dict[str, Any]:
    thing = {"number": number, "title": "The lamp is out", "labels": [], "html_url": "https://github.com/a/w/issues/12"}
    return {
        "action": action,
        "issue": thing,
        "repository": {"full_name": "acme/web"},
        "sender": {"login": author},
    } | more


def deliver(city: City, external: str | None = "d-1", body: Any = None, connection: str = "gh") -> Received:
    """What the route does once it has verified a delivery."""
    headers = {"x-github-event": "issues"} | ({} if external is None else {"x-github-delivery": external})
    text = json.dumps(issue() if body is None else body, ensure_ascii=False)
    row = DeliveryRow(city.ids.make("dlv"), connection, external, headers, text, city.clock.now())
    got: Received = city.run(keep, row, city.context)
    return got


def work(city: City, limit: int = 100) -> int:
    """Process what is due, as the dispatcher does; returns how many items."""
    items = city.run(outbox.claim_due, "own_test", city.clock.now(), limit=limit)
    mine = [item for item in items if item.kind == ItemKind.PROCESS_DELIVERY]
    for item in mine:
        city.run(processing.process, item, rules=city.rules, ctx=city.context)
    for item in items:
        if item not in mine:
            city.run(outbox.later, item, city.clock.now(), city.clock.now())
    return len(mine)


def verdicts(city: City, delivery: str) -> list[tuple[str, str]]:
    found = city.do(SHOW, ShowDelivery(delivery))
    return [(one.automation, one.verdict) for one in found.verdicts]


def items_of(city: City, kind: ItemKind) -> list[Item]:
    rows = city.read(lambda tx: tx.outbox.page(ItemState.PENDING, limit=1000))
    return [one.item for one in rows if one.item.kind == kind]


# ── cases of the pipeline ─────────────────────────────────────────────────────────────────────────────────────────


def test_case_1_a_matched_delivery_makes_event_run_and_item_together(city: City) -> None:
    connect(city)
    city.add("fix", agent={"prompt": "Mend it."}, **HOOK)
    got = deliver(city)
    work(city)
    (run,) = city.runs_of("fix")
    assert (run.state, run.trigger_kind) == (RunState.QUEUED, "webhook")
    assert run.deadline_at == city.clock.now() + timedelta(hours=2)
    event = city.read(lambda tx: tx.trigger_events.get(run.trigger_event))
    assert (event.status, event.dedup_key, event.run) == ("fired", "github:d-1", run.id)
    assert event.payload["context"]["title"] == "acme/web#12 opened: The lamp is out"
    assert [item.payload["run"] for item in items_of(city, ItemKind.ENQUEUE_ENRICH)] == [run.id]
    assert verdicts(city, got.id) == [("fix", "fired")]


def test_case_1_when_any_insert_fails_none_of_them_exists(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(city)
    city.add("fix", agent={"prompt": "Mend it."}, **HOOK)
    got = deliver(city)
    monkeypatch.setattr(firing, "add_run", _fails)
    with pytest.raises(RuntimeError):
        work(city)
    assert city.runs_of("fix") == []
    assert city.history("fix") == []
    assert verdicts(city, got.id) == []
    assert city.do(SHOW, ShowDelivery(got.id)).state == "waiting"


def _fails(*_args: Any, **_keys: Any) -> Any:
    raise RuntimeError("the disk is full")


def test_case_2_the_same_delivery_twice_makes_no_second_event_run_or_item(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, overlap="allow")
    first = deliver(city)
    again = deliver(city)
    assert (first.repeated, again) == (False, Received(first.id, repeated=True))
    assert work(city) == 1
    assert deliver(city) == Received(first.id, repeated=True)
    assert work(city) == 0
    assert len(city.runs_of("fix")) == len(city.history("fix")) == 1
    assert city.do(SHOW, ShowDelivery(first.id)).repeats == 2
    assert deliver(city, "d-2", issue("edited")).repeated is False
    assert deliver(city, "d-3", issue("edited")).repeated is False
    work(city)
    assert len(city.runs_of("fix")) == 3, "later edits of one issue are distinct"


def test_case_2_a_key_that_fired_before_is_a_duplicate_even_when_its_delivery_is_forgotten(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, overlap="allow")
    deliver(city)
    work(city)
    (run,) = city.runs_of("fix")
    city.advance(days=15)
    assert city.run(prune_deliveries, before=city.clock.now() - timedelta(days=14)) == 1
    got = deliver(city)
    work(city)
    (told,) = city.do(SHOW, ShowDelivery(got.id)).verdicts
    assert (told.verdict, told.run) == ("duplicate", run.id)
    assert city.runs_of("fix") == [city.get(run.id)]


def test_case_3_two_triggers_that_match_one_delivery_make_two_runs(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK)
    city.add("tell", **HOOK)
    got = deliver(city)
    work(city)
    assert (len(city.runs_of("fix")), len(city.runs_of("tell"))) == (1, 1)
    assert verdicts(city, got.id) == [("fix", "fired"), ("tell", "fired")]


def test_case_4_a_disabled_automation_skips_and_the_delivery_can_fire_when_it_is_enabled(city: City) -> None:
    connect(city)
    city.add("fix", enabled=False, **HOOK)
    got = deliver(city)
    work(city)
    (entry,) = city.history("fix")
    assert (entry["status"], entry["reason"], entry["run"]) == ("skipped", "disabled", None)
    assert city.runs_of("fix") == []
    city.run(editing.set_enabled, "fix", enabled=True, rules=city.rules, ctx=city.context)
    assert deliver(city).repeated
    work(city)
    assert verdicts(city, got.id) == [("fix", "fired")]


def test_case_5_a_filter_that_does_not_match_is_told_and_the_payload_is_kept(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, filter={"repo": "other/*"})
    got = deliver(city)
    work(city)
    found = city.do(SHOW, ShowDelivery(got.id))
    (told,) = found.verdicts
    assert (told.verdict, told.run) == ("filtered", None)
    assert told.reason == 'filter: `repo` is "acme/web"; wanted is "other/*"'
    assert found.payload == issue()
    city.run(
        editing.edit, "fix", {"triggers": [HOOK | {"filter": {"repo": "acme/*"}}]}, rules=city.rules, ctx=city.context
    )
    assert city.do(REPLAY, ReplayDeliveries([got.id])).replayed == 1
    work(city)
    assert verdicts(city, got.id) == [("fix", "fired")]


def test_case_6_two_pollers_that_claim_fifty_each_hold_a_hundred_distinct_items(
    city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]
) -> None:
    connect(city)
    for number in range(100):
        deliver(city, f"d-{number}")
    now = city.clock.now()
    asked = [lambda tx, owner=owner: outbox.claim_due(tx, owner, now, limit=50) for owner in ("own_a", "own_b")]
    claimed = [item.id for items in ask_at_once(asked) for item in items]
    while len(claimed) < 100:  # who came second may have found the first fifty locked
        claimed += [item.id for item in city.run(outbox.claim_due, "own_c", now, limit=50)]
    assert len(set(claimed)) == len(claimed) == 100


@pytest.mark.parametrize(("attempts", "state"), [(0, ItemState.PENDING), (4, ItemState.FAILED)])
def test_case_7_and_8_an_item_that_hangs_is_taken_back_or_given_up(city: City, attempts: int, state: ItemState) -> None:
    connect(city)
    deliver(city)
    for _ in range(attempts):
        _fail(city)
        city.advance(minutes=6)
    (item,) = city.run(outbox.claim_due, "own_hung", city.clock.now(), limit=1)
    city.clock.advance(HUNG_AFTER + timedelta(seconds=1))
    assert city.run(outbox.take_back_hung, ctx=city.context) == 1
    found = city.run(lambda tx: tx.outbox.lock(item.id))
    assert (found.state, found.attempts) == (state, attempts + 1)


def test_case_9_errors_put_an_item_off_and_the_fifth_fails_it(city: City) -> None:
    connect(city)
    deliver(city)
    delays = []
    for _ in range(5):
        after = _fail(city)
        delays.append(round((after.due_at - city.clock.now()).total_seconds()))
        city.clock.advance(timedelta(minutes=6))
    assert delays[:4] == [30, 60, 120, 240]
    assert after.state is ItemState.FAILED


def _fail(city: City) -> Item:
    (item,) = city.run(outbox.claim_due, "own_test", city.clock.now(), limit=1)
    failed: Item = city.run(outbox.failed, item, "it went wrong", permanent=False, ctx=city.context)
    return failed


def by(city: City, name: str, role: Role) -> Context:
    return Context(Person(name, role), city.clock.now(), city.ids, "api", city.configured)


def test_case_32_a_run_is_claimed_by_one_and_freed_by_anyone(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK)
    deliver(city)
    work(city)
    (run,) = city.runs_of("fix")
    ann, ben = by(city, "ann", Role.MEMBER), by(city, "ben", Role.MEMBER)
    assert city.run(judged, CLAIM_RUN, ClaimRun(run.id), ann).assigned_to == "ann"
    with pytest.raises(Conflict):
        city.run(judged, CLAIM_RUN, ClaimRun(run.id), ben)
    assert city.run(judged, CLAIM_RUN, ClaimRun(run.id), ann).assigned_to == "ann"
    assert city.run(judged, UNCLAIM_RUN, UnclaimRun(run.id), ben).assigned_to is None
    assert city.run(judged, CLAIM_RUN, ClaimRun(run.id), ben).assigned_to == "ben"


def test_case_33_a_member_may_not_resolve_and_an_admin_may(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK)
    deliver(city)
    work(city)
    (run,) = city.runs_of("fix")
    city.start(run.id)
    ending = review.Ending(RunState.NEEDS_HUMAN, "needs_human")
    ended = city.run(review.end, run.id, ending, By(Mover.COMPLETION, "agent"), ctx=city.context)
    ask = ResolveRun(run.id, outcome=Resolved.SUCCEEDED)
    with pytest.raises(Forbidden):
        city.run(judged, RESOLVE_RUN, ask, by(city, "ann", Role.MEMBER))
    city.run(judged, RESOLVE_RUN, ask, by(city, "root", Role.ADMIN))
    after = city.get(run.id)
    assert (after.state, after.ended_at) == (RunState.SUCCEEDED, ended.ended_at)
    told = [one for one in city.shown(run.id)["events"] if one["type"] == "manual_resolution"]
    assert [one["actor"] for one in told] == ["root"]


def test_case_34_a_run_at_work_is_not_resolved_and_two_admins_resolve_once(
    city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]
) -> None:
    connect(city)
    city.add("fix", **HOOK)
    deliver(city)
    work(city)
    (run,) = city.runs_of("fix")
    city.start(run.id)
    ask, admins = (
        ResolveRun(run.id, outcome=Resolved.SUCCEEDED),
        [by(city, name, Role.ADMIN) for name in ("eve", "root")],
    )
    with pytest.raises(Conflict):
        city.run(judged, RESOLVE_RUN, ask, admins[0])
    city.finish(run.id, "failed", "exit_1")

    def resolve(tx: Any, who: Context) -> str:
        try:
            judged(tx, RESOLVE_RUN, ask, who)
        except Conflict:
            return "refused"
        return "resolved"

    done = ask_at_once([lambda tx, who=who: resolve(tx, who) for who in admins])
    assert sorted(done) == ["refused", "resolved"]
    assert [one["type"] for one in city.shown(run.id)["events"]].count("manual_resolution") == 1


def test_case_35_run_now_twice_makes_two_runs_with_deadlines_by_one_manual_trigger(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, overlap="allow")
    runs = [city.get(city.run_now("fix").run) for _ in range(2)]
    assert {run.trigger for run in runs} == {"manual"}
    assert len({run.id for run in runs}) == 2
    assert all(run.deadline_at == city.clock.now() + timedelta(hours=2) for run in runs)
    fix = city.row("fix").id
    assert [row.id for row in city.read(lambda tx: tx.triggers.of(fix))] == ["webhook"]


# ── more of deliveries ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_delivery_waits_for_the_run_under_way_and_then_fires(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK)
    first, second = deliver(city, "d-1"), deliver(city, "d-2")
    work(city)
    assert verdicts(city, second.id) == [("fix", "held")]
    city.finish(city.runs_of("fix")[0].id)
    city.advance(seconds=6)
    work(city)
    assert (verdicts(city, first.id), verdicts(city, second.id)) == ([("fix", "fired")], [("fix", "fired")])
    assert len(city.runs_of("fix")) == 2


def test_a_burst_about_one_thing_becomes_one_run_with_all_deliveries(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, gather="30s", gather_most="60s")
    got = [deliver(city, "d-0"), deliver(city, "other", issue(number=99))]
    work(city)
    for number in range(1, 4):
        city.advance(seconds=20)
        got.append(deliver(city, f"d-{number}", issue("edited")))
        work(city)
    assert len(city.runs_of("fix")) == 1, "the other issue was quiet for long enough"
    city.finish(city.runs_of("fix")[0].id)
    city.advance(seconds=6)
    work(city)
    (_, run) = city.runs_of("fix")
    assert run.created_at == city.clock.now(), "after `gather_most`, though it was never quiet"
    event = city.read(lambda tx: tx.trigger_events.get(run.trigger_event))
    assert [one["delivery"] for one in event.payload["events"]] == [one.id for one in got if one is not got[1]]
    assert {verdict for one in got for _, verdict in verdicts(city, one.id)} == {"fired"}
    assert deliver(city, "d-1", issue("edited")).repeated
    city.advance(minutes=5)
    work(city)
    assert len(city.runs_of("fix")) == 2


def test_a_burst_of_two_conversations_makes_a_run_for_each(city: City) -> None:
    """About one issue, and of two authors: the conversation is by author."""
    connect(city)
    city.add(
        "fix", **HOOK, agent={"prompt": "Fix it."}, gather="30s", overlap="allow", continue_by="payload.sender.login"
    )
    came = [
        deliver(city, f"d-{number}", issue(author=author)).id for number, author in enumerate(["ada", "ben", "ada"])
    ]
    work(city)
    city.advance(seconds=31)
    work(city)
    events = [city.read(lambda tx, run=run: tx.trigger_events.get(run.trigger_event)) for run in city.runs_of("fix")]
    told = {frozenset(one["delivery"] for one in event.payload["events"]) for event in events}
    assert told == {frozenset({came[0], came[2]}), frozenset({came[1]})}


@pytest.mark.parametrize(("count", "size"), [(100, 0), (4, 1 << 20)], ids=["a hundred", "4 MB"])
def test_a_burst_ends_when_it_is_full_and_the_next_ones_make_another(city: City, count: int, size: int) -> None:
    connect(city)
    city.add("fix", **HOOK, gather="1h")
    got = [deliver(city, f"d-{number}", issue("edited", text="é" * (size // 2))) for number in range(count + 2)]
    work(city, 200)
    assert city.runs_of("fix") == []
    made = {one.id: verdicts(city, one.id)[0][1] for one in got}
    gathered = sorted(one for one, verdict in made.items() if verdict == "gathered")
    held = [one for one, verdict in made.items() if verdict == "held"]
    assert (len(gathered), len(held)) == (count, 2)
    work(city, 200)
    (run,) = city.runs_of("fix")
    event = city.read(lambda tx: tx.trigger_events.get(run.trigger_event))
    assert [one["delivery"] for one in event.payload["events"]] == gathered
    city.finish(run.id)
    city.advance(seconds=6)
    work(city, 200)
    assert [verdicts(city, one)[0][1] for one in held] == ["gathered"] * 2
    city.advance(hours=2)
    work(city, 200)
    assert len(city.runs_of("fix")) == 2
    assert {verdict for one in got for _, verdict in verdicts(city, one.id)} == {"fired"}


def test_what_was_gathered_is_kept_beyond_its_retention_until_it_has_fired(city: City) -> None:
    connect(city)
    city.add("fix", **HOOK, gather="30s")
    for external in ("d-1", "d-2"):
        last = deliver(city, external)
        work(city)
        city.advance(minutes=1)
        work(city)
    (run,) = city.runs_of("fix")
    assert verdicts(city, last.id) == [("fix", "held")], "the first run is under way"
    city.advance(days=20)
    before = city.clock.now() - timedelta(days=14)
    assert city.run(prune_deliveries, before=before) == 1
    city.finish(run.id)
    work(city)
    assert verdicts(city, last.id) == [("fix", "fired")]
    assert city.run(prune_deliveries, before=before) == 1


def test_what_our_own_runs_did_does_not_fire_them_again(city: City) -> None:
    connect(city, own=("our-bot",))
    city.add("fix", **HOOK, overlap="allow")
    city.add("tell", **HOOK, overlap="allow")
    deliver(city, "d-1")
    work(city)
    (run,) = city.runs_of("fix")
    by_branch = deliver(city, "d-2", issue(ref=f"refs/heads/lamp/{run.id}"))
    by_name = deliver(city, "d-3", issue(author="Our-Bot"))
    work(city)
    assert verdicts(city, by_branch.id) == [("fix", "loop"), ("tell", "fired")]
    assert city.runs_of("tell")[-1].causes == ("fix",)
    assert "act as" in (city.do(SHOW, ShowDelivery(by_name.id)).problem or "")
    assert verdicts(city, by_name.id) == []


def test_only_named_authors_fire(city: City) -> None:
    connect(city, authors=("ada", "grace-*"))
    city.add("fix", **HOOK, overlap="allow")
    got = [deliver(city, f"d-{name}", issue(author=name)) for name in ("ada", "mallory", "grace-2")]
    work(city)
    assert [bool(verdicts(city, one.id)) for one in got] == [True, False, True]


def test_a_range_is_replayed_and_what_fired_fires_no_more(city: City) -> None:
    connect(city)
    got = [deliver(city, f"d-{number}") for number in range(3)]
    work(city)
    city.advance(hours=1)
    late = deliver(city, "d-late")
    work(city)
    city.add("fix", **HOOK, overlap="allow")
    assert city.do(REPLAY, ReplayDeliveries(since="2h", until="30m")).deliveries == [one.id for one in got]
    work(city)
    assert city.do(REPLAY, ReplayDeliveries(since="2h", connection="gh")).replayed == 4
    work(city)
    assert len(city.runs_of("fix")) == 4
    assert verdicts(city, late.id) == [("fix", "fired")]
    listed = city.do(LIST, ListDeliveries(limit=2))
    assert [one.id for one in listed] == [late.id, got[2].id]
    assert [one.id for one in city.do(LIST, ListDeliveries("gh", before=got[2].id))] == [got[1].id, got[0].id]
    with pytest.raises(UsageError):
        city.do(REPLAY, ReplayDeliveries())


def test_a_delivery_is_listed_and_found_without_reading_bodies(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(city)
    got = [deliver(city, f"d-{number}", issue("Schnüffel")) for number in range(3)]
    size = city.read(lambda tx: tx.deliveries.size([one.id for one in got[:2]]))
    assert size == 2 * len(json.dumps(issue("Schnüffel"), ensure_ascii=False).encode())
    with monkeypatch.context() as patched:
        for name in ("get", "some"):
            patched.setattr(Deliveries, name, _fails)
        listed = city.do(LIST, ListDeliveries())
        assert [one.id for one in listed] == [one.id for one in reversed(got)]
        assert not hasattr(city.read(lambda tx: tx.deliveries.page(connection=None, before=None, limit=1))[0], "body")
        assert city.do(REPLAY, ReplayDeliveries(["last", got[0].id[-8:]])).deliveries == [got[2].id, got[0].id]
        with pytest.raises(DeliveryUnknown):
            city.do(SHOW, ShowDelivery("dlv_mistyped"))
    assert city.do(SHOW, ShowDelivery("last")).payload["action"] == "Schnüffel"


def test_runs_are_found_by_what_was_delivered(city: City) -> None:
    connect(city, fields=("repo", "issue.number", "labels"))
    city.add("fix", **HOOK, overlap="allow")
    deliver(city, "d-1")
    deliver(city, "d-2", issue(number=13) | {"repository": {"full_name": "acme/shop"}})
    work(city)
    web, shop = (run.id for run in city.runs_of("fix"))

    def found(query: str) -> list[str]:
        return [run.id for run in city.do(LIST_RUNS, ListRuns(query=query))]

    assert found("payload.repo:acme/web") == [web]
    assert found("payload.repo:acme/*") == [shop, web]
    assert found("payload.repo:acme/* -payload.issue.number:12") == [shop]
    assert found("payload.issue.number:12,13 state:ready") == [shop, web]
    with pytest.raises(UsageError, match="did you mean `repo`"):
        found("payload.rep:acme/web")


def test_a_delivery_whose_connection_is_gone_is_settled(city: City) -> None:
    connect(city)
    got = deliver(city)
    city.run(lambda tx: tx.connections.delete("gh"))
    work(city)
    assert city.do(SHOW, ShowDelivery(got.id)).problem == "its connection is gone"


def test_two_processes_that_process_one_delivery_at_once_fire_once(
    city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]
) -> None:
    connect(city)
    city.add("fix", **HOOK, overlap="allow")
    got = deliver(city)
    again = new_item(city.ids.make("out"), ItemKind.PROCESS_DELIVERY, {"delivery": got.id}, city.clock.now())
    city.run(lambda tx: tx.outbox.add(again))
    items = city.run(outbox.claim_due, "own_test", city.clock.now(), limit=2)
    ctx, rules = city.context, city.rules
    ask_at_once([lambda tx, item=item: processing.process(tx, item, rules=rules, ctx=ctx) for item in items])
    assert len(city.runs_of("fix")) == 1


def test_deliveries_that_come_together_are_kept_together_and_judged_by_one_item(city: City) -> None:
    connect(city)
    connect(city, "other")
    city.add("fix", **HOOK, overlap="allow")

    def asking(external: str, connection: str = "gh") -> Keeping:
        text, now = json.dumps(issue()), city.clock.now()
        headers = {"x-github-event": "issues"}
        row = DeliveryRow(city.ids.make("dlv"), connection, external, headers, text, now)
        return Keeping(row, city.context, city.read(lambda tx: tx.connections.get(connection)))

    asked = [asking("d-1"), asking("d-2"), asking("d-1"), asking("d-3", "other")]
    city.run(lambda tx: tx.connections.rotated("other", city.clock.now(), city.clock.now()))
    answers = city.run(keep_many, asked)
    first = asked[0].delivery.id
    assert answers[:3] == [Received(first), Received(asked[1].delivery.id), Received(first, repeated=True)]
    assert isinstance(answers[3].error, SourceChanged), "it was verified with a secret that was rotated meanwhile"
    assert city.do(SHOW, ShowDelivery(first)).repeats == 1
    (item,) = items_of(city, ItemKind.PROCESS_DELIVERY)
    assert item.payload == {"deliveries": [first, asked[1].delivery.id]}
    assert work(city) == 1
    assert len(city.runs_of("fix")) == 2


def test_of_many_that_come_together_each_is_kept_or_counted(city: City) -> None:
    connect(city)
    now = city.clock.now()

    def row(external: str | None) -> DeliveryRow:
        return DeliveryRow(city.ids.make("dlv"), "gh", external, {}, '{"text": "a\\"b\u2028"}', now)

    before = [row(f"d-{number}") for number in range(0, 70, 10)]
    assert city.run(lambda tx: tx.deliveries.add(before)) == [one.id for one in before]
    many = [row(f"d-{number}") for number in range(70)] + [row(None) for _ in range(3)]
    ids = city.run(lambda tx: tx.deliveries.add(many))
    assert list(ids[:70:10]) == [one.id for one in before]
    assert len(set(ids)) == 73
    assert {one: city.read(lambda tx, one=one: tx.deliveries.get(one)).repeats for one in ids[:11]} == {
        one: int(number % 10 == 0) for number, one in enumerate(ids[:11])
    }
    assert city.read(lambda tx: tx.deliveries.get(ids[5])).body == many[5].body


def test_a_delivery_that_waits_for_a_run_leaves_those_beside_it(city: City) -> None:
    connect(city)
    city.add("one", **HOOK, overlap="queue")
    got = [deliver(city, external) for external in ("d-1", "d-2")]
    for item in city.run(outbox.claim_due, "own_test", city.clock.now(), limit=2):
        city.run(outbox.done, item, city.clock.now())
    city.run(lambda tx: tx.outbox.add(processed_by([one.id for one in got], city.context)))
    assert work(city) == 1
    assert [verdicts(city, one.id)[0][1] for one in got] == ["fired", "held"]
    (waits,) = items_of(city, ItemKind.PROCESS_DELIVERY)
    assert waits.payload == {"deliveries": [got[1].id]}
    city.clock.advance(timedelta(seconds=6))
    assert work(city) == 1
    (same,) = items_of(city, ItemKind.PROCESS_DELIVERY)
    assert same.id == waits.id, "it waits on as it is, and makes no item each time"


def test_each_is_judged_by_itself_where_one_of_them_cannot_be(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(city)
    city.add("fix", **HOOK, overlap="allow")
    got = [deliver(city, f"d-{number}", issue(number=number)) for number in range(3)]
    for each in city.run(outbox.claim_due, "own_test", city.clock.now(), limit=3):
        city.run(outbox.done, each, city.clock.now())
    city.run(lambda tx: tx.outbox.add(processed_by([one.id for one in got], city.context)))
    read_as = processing.read

    def read(provider: Any, headers: Any, payload: Any, title: str) -> Any:
        if payload["issue"]["number"] == 1:
            raise RuntimeError("nobody thought of this")
        return read_as(provider, headers, payload, title)

    monkeypatch.setattr(processing, "read", read)
    with pytest.raises(RuntimeError):
        work(city)
    (item,) = city.run(lambda tx: tx.outbox.claimed_by("own_test"))
    city.run(processing.process_each, item, city.context)
    with pytest.raises(RuntimeError):
        work(city)
    left = city.run(lambda tx: tx.outbox.claimed_by("own_test"))
    assert {one.payload["deliveries"][0] for one in left} >= {got[1].id}
    for one in left:
        if one.payload["deliveries"] != [got[1].id]:
            city.run(processing.process, one, rules=city.rules, ctx=city.context)
    assert len(city.runs_of("fix")) == 2


def test_in_a_flood_only_some_deliveries_of_each_second_are_judged_at_once() -> None:
    pace = Pace()
    waits = [pace.wait(10.0 + number / 1000) for number in range(JUDGED_AT_ONCE + 5)]
    assert waits == [timedelta(0)] * JUDGED_AT_ONCE + [FLOOD_WAIT] * 5
    assert pace.wait(11.5) == timedelta(0)
