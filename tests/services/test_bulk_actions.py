"""Bulk actions on both databases: what is chosen, what is done to each run and by whose right, and what stops it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.daemon.pipeline.bulk_parts import BulkParts
from lamplighter.domain.access import Actor, Forbidden, Role, Verb, of_run, owner
from lamplighter.domain.delivery.outbox import Item, NotClaimed
from lamplighter.domain.runs.bulk import MOST, PART, BulkOutcome, BulkState, BulkVerb, NotWorking
from lamplighter.domain.runs.query import QueryWrong
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import outbox
from lamplighter.services.bulk import working
from lamplighter.services.bulk.operations import (
    ABORT,
    CREATE,
    LIST,
    PREVIEW,
    RESULTS,
    SHOW,
    AbortBulk,
    BulkUnknown,
    BulkView,
    CreateBulk,
    ListBulk,
    ListResults,
    NoRunsChosen,
    PreviewBulk,
    ShowBulk,
    TooManyRuns,
)
from lamplighter.services.context import Context
from lamplighter.services.guarding import Guard, KeyReused, guarded
from lamplighter.services.operation import judged
from lamplighter.services.resolving import IdAmbiguous
from lamplighter.services.retention import prune_bulk_actions
from lamplighter.services.runs import review
from lamplighter.services.runs.operations import Resolved
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import open_direct, open_store

ME = "own_bulk"


@pytest.fixture
async def store(city: City) -> AsyncIterator[Store]:
    opened = open_store(city.place, CITY, Wakes())
    yield opened
    await opened.close()


@pytest.fixture
def failed(city: City) -> list[str]:
    """Three runs that failed, oldest first."""
    city.add("nightly", overlap="allow")
    return [failed_run(city) for _ in range(3)]


def failed_run(city: City, name: str = "nightly") -> str:
    run = city.run_now(name).run
    city.finish(run, "failed", "exit_status")
    city.advance(seconds=1)
    return run


def many_ids(count: int, *, named: str = "run") -> list[str]:
    return [f"{named}_{number:026d}" for number in range(count)]


def context(city: City, actor: Actor, surface: str = "api") -> Context:
    return Context(actor, city.clock.now(), city.ids, surface, city.configured)


def create(city: City, action: BulkVerb, *runs: str, actor: Actor | None = None, **more: Any) -> BulkView:
    made: BulkView = city.run(judged, CREATE, CreateBulk(action, runs, **more), context(city, actor or owner("ada")))
    return made


def shown(city: City, bulk: str) -> BulkView:
    found: BulkView = city.do(SHOW, ShowBulk(bulk))
    return found


def counts(found: BulkView) -> tuple[str, int, int, int]:
    return found.state.value, found.done, found.refused, found.left


def results(city: City, bulk: str) -> list[tuple[str, str, str | None]]:
    return [(one.run, one.outcome.value, one.reason) for one in city.do(RESULTS, ListResults(bulk))]


def parts_due(city: City, me: str = ME) -> list[Item]:
    """The parts that a worker may take now, claimed; what else is due goes back."""
    items: list[Item] = city.run(outbox.claim_due, me, city.clock.now(), limit=1000)
    for item in items:
        if item.kind != "bulk_part":
            city.run(outbox.later, item, city.clock.now(), city.clock.now())
    return [item for item in items if item.kind == "bulk_part"]


def at_hand(city: City) -> Context:
    """What a worker carries a run out with."""
    return changed(city.context, configured=city.configured)


def at_work(city: City, store: Store) -> BulkParts:
    return BulkParts(store, city.clock, city.ids, "worker", lambda: city.configured)


async def worked_off(city: City, store: Store) -> int:
    """Work until no part is due; how many parts there were."""
    number = 0
    while parts := parts_due(city):
        for item in parts:
            await at_work(city, store).work(item)
            number += 1
    return number


def member(city: City, role: Role = Role.MEMBER, *scopes: Verb, name: str = "ben") -> Actor:
    """By a token of theirs."""

    def add(tx: Tx) -> None:
        now = city.clock.now()
        tx.members.add(MemberRow(name, role, now, "ada"))
        tx.tokens.add(TokenRow(f"tok_{name}", name, "t", f"hash {name}", "abcd", tuple(scopes), now, "ada", None))

    city.run(add)
    return Actor(name, role, token=f"tok_{name}", scopes=frozenset(scopes) or None)


def audited(city: City) -> list[tuple[str, str, str, str | None, str | None]]:
    rows = city.read(lambda tx: tx.audit.page(limit=1000))
    return [(one.actor, one.surface, one.operation, one.object, one.bulk) for one in rows]


async def test_named_runs_are_retried_once_each(city: City, store: Store, failed: list[str]) -> None:
    made = create(city, BulkVerb.RETRY, *failed, failed[0])
    assert (counts(made), made.total, made.creator) == (("working", 0, 0, 3), 3, "ada")
    assert await worked_off(city, store) == 1
    found = shown(city, made.id)
    assert counts(found) == ("done", 3, 0, 0)
    assert found.ended_at is not None
    told = city.do(RESULTS, ListResults(made.id))
    assert [one.run for one in told] == failed
    assert [city.shown(one.made)["retry_of"] for one in told] == failed
    assert len(city.runs_of("nightly")) == 6
    assert await worked_off(city, store) == 0
    assert [one.payload["done"] for one in city.events("bulk.ended")] == [3]


async def test_every_write_names_the_bulk_action_in_the_audit(city: City, store: Store, failed: list[str]) -> None:
    ben = member(city)
    made = create(city, BulkVerb.CLAIM, *failed[:2], actor=ben)
    await worked_off(city, store)
    assert set(audited(city)) == {
        ("ben", "api", "bulk.create", None, None),
        ("ben", "api", "run.claim", failed[0], made.id),
        ("ben", "api", "run.claim", failed[1], made.id),
    }
    assert [city.get(run).assigned_to for run in failed] == ["ben", "ben", None]


async def test_a_filter_chooses_at_creation(city: City, store: Store, failed: list[str]) -> None:
    """What fits later is left alone, and a run that changed meanwhile refuses."""
    made = create(city, BulkVerb.RESOLVE, query=" state:failed ", outcome=Resolved.SUCCEEDED, reason="flaky")
    assert (made.total, made.query, made.said) == (3, "state:failed", {"outcome": "succeeded", "reason": "flaky"})
    later = failed_run(city)
    city.run(review.retry, failed[1], ctx=city.context)
    create(city, BulkVerb.RESOLVE, failed[0], outcome=Resolved.FAILED)
    first, second = parts_due(city)
    await at_work(city, store).work(second)
    await at_work(city, store).work(first)
    assert counts(shown(city, made.id)) == ("done", 2, 1, 0)
    assert results(city, made.id) == [
        (failed[2], "done", None),
        (failed[1], "done", None),
        (failed[0], "refused", f"Run {failed[0]} was resolved as failed already."),
    ]
    assert city.get(failed[2]).reason == "manual_resolution:flaky"
    assert city.get(later).state == "failed"


async def test_runs_in_a_state_that_does_not_take_it_refuse(city: City, store: Store, failed: list[str]) -> None:
    under_way = city.run_now("nightly").run
    made = create(city, BulkVerb.CANCEL, failed[0], under_way)
    await worked_off(city, store)
    assert counts(shown(city, made.id)) == ("done", 1, 1, 0)
    [(_, _, why), (_, done, _)] = results(city, made.id)
    assert why is not None
    assert failed[0] in why
    assert (done, city.get(under_way).state) == ("done", "canceled")


async def test_a_preview_says_what_would_be_done_and_does_nothing(city: City, failed: list[str]) -> None:
    city.run_now("nightly")
    found = city.do(PREVIEW, PreviewBulk(BulkVerb.RETRY, query="automation:nightly"))
    assert (found.total, found.fitting, found.states) == (4, 3, {"failed": 3, "ready": 1})
    assert "started anew" in found.effect
    assert city.do(PREVIEW, PreviewBulk(BulkVerb.CANCEL, failed)).fitting == 0
    assert city.do(LIST, ListBulk()) == []
    assert len(city.runs_of("nightly")) == 4


WRONG = [
    (CreateBulk(BulkVerb.RETRY), UsageError),
    (CreateBulk(BulkVerb.RETRY, query="   "), UsageError),
    (CreateBulk(BulkVerb.RETRY, ("last",), query="state:failed"), UsageError),
    (CreateBulk(BulkVerb.RETRY, query="stat:failed"), QueryWrong),
    (CreateBulk(BulkVerb.RETRY, query="state:timed_out"), NoRunsChosen),
    (CreateBulk(BulkVerb.RETRY, ("no such thing",)), RunUnknown),
    (CreateBulk(BulkVerb.RETRY, ("run_0",)), IdAmbiguous),
    (CreateBulk(BulkVerb.RETRY, many_ids(MOST + 1)), TooManyRuns),
    (CreateBulk(BulkVerb.RETRY, many_ids(200, named="bead")), UsageError),
    (CreateBulk(BulkVerb.RETRY, ("last",), reason="flaky"), UsageError),
    (CreateBulk(BulkVerb.RESOLVE, ("last",)), UsageError),
    (CreateBulk(BulkVerb.RESOLVE, ("last",), outcome=Resolved.FAILED, comment="x" * 2001), UsageError),
]


def test_what_makes_no_sense_is_refused_whole(city: City, failed: list[str]) -> None:
    assert failed
    for ask, wrong in WRONG:
        with pytest.raises(wrong):
            city.run(judged, CREATE, ask, context(city, owner("ada")))
    assert city.do(LIST, ListBulk()) == []
    assert not parts_due(city)


async def test_ten_thousand_are_taken_and_their_parts_follow_one_another(city: City, store: Store) -> None:
    """None of them is a run of this city: each refuses, and the next is tried."""
    made = create(city, BulkVerb.CLAIM, *many_ids(MOST))
    assert made.total == MOST
    for part in range(2):
        (item,) = parts_due(city)
        assert item.payload == {"bulk": made.id, "part": str(part)}
        await at_work(city, store).work(item)
        assert counts(shown(city, made.id)) == ("working", 0, PART * (part + 1), MOST - PART * (part + 1))
    assert len(city.do(RESULTS, ListResults(made.id, BulkOutcome.WAITING, limit=10_000))) == MOST - 2 * PART
    after = city.do(RESULTS, ListResults(made.id, after=PART - 1, limit=1))
    assert [(one.number, one.reason) for one in after] == [(PART, f"There is no run {many_ids(PART + 1)[-1]}.")]


def test_a_query_that_fits_more_is_refused(city: City, failed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are lowered, because a hundred runs say the same as ten thousand."""
    from lamplighter.services.bulk import operations

    monkeypatch.setattr(operations, "MOST", 3)
    assert city.do(PREVIEW, PreviewBulk(BulkVerb.RETRY, query="state:failed")).total == len(failed)
    failed_run(city)
    with pytest.raises(TooManyRuns, match="More than 3 runs fit `state:failed`"):
        city.do(PREVIEW, PreviewBulk(BulkVerb.RETRY, query="state:failed"))
    monkeypatch.setattr(operations, "MOST_SEARCHED", 2)
    with pytest.raises(operations.SearchTooWide, match="looked at 2 runs"):
        city.do(PREVIEW, PreviewBulk(BulkVerb.RETRY, query="-reason:budget"))


async def test_aborted_in_the_middle_it_leaves_the_rest_alone(city: City, store: Store, failed: list[str]) -> None:
    made = create(city, BulkVerb.RETRY, *failed)
    (item,) = parts_due(city)
    await store.transact(working.carry_out, item, 0, ctx=at_hand(city))
    aborted = city.do(ABORT, AbortBulk(made.id[-6:]))
    assert counts(aborted) == ("aborted", 1, 0, 2)
    assert (aborted.aborted_by, aborted.ended_at is None) == ("tester", False)
    assert await store.transact(working.carry_out, item, 1, ctx=at_hand(city)) is False
    await store.transact(working.refuse, item, 1, "too late", ctx=city.context)
    await at_work(city, store).work(item)
    assert counts(shown(city, made.id)) == ("aborted", 1, 0, 2)
    assert [one[1] for one in results(city, made.id)] == ["done", "waiting", "waiting"]
    assert len(city.runs_of("nightly")) == 4
    with pytest.raises(NotWorking):
        city.do(ABORT, AbortBulk(made.id))
    assert not parts_due(city)


@pytest.mark.parametrize("how", ["role", "token", "member", "expired"])
async def test_a_creator_whose_right_ends_in_the_middle_is_refused_from_then_on(
    city: City, store: Store, failed: list[str], how: str
) -> None:
    ben = member(city, Role.ADMIN)
    made = create(city, BulkVerb.RESOLVE, *failed, actor=ben, outcome=Resolved.SUCCEEDED)
    (item,) = parts_due(city)
    assert await store.transact(working.carry_out, item, 0, ctx=at_hand(city))

    def end_it(tx: Tx) -> None:
        match how:
            case "role":
                tx.members.set_role("ben", Role.MEMBER)
            case "token":
                tx.tokens.revoke("tok_ben", city.clock.now())
            case "member":
                tx.members.remove("ben")
            case _:
                tx.db.execute("UPDATE tokens SET expires_at = 1", {})

    city.run(end_it)
    await at_work(city, store).work(item)
    assert counts(shown(city, made.id)) == ("done", 1, 2, 0)
    why = {
        "role": "ben may not resolve run.",
        "token": "The token was revoked.",
        "member": "The token is gone with its member.",
        "expired": "The token has ended.",
    }[how]
    assert {one[2] for one in results(city, made.id)[1:]} == {why}
    assert [city.get(run).state.value for run in failed] == ["succeeded", "failed", "failed"]


async def test_a_right_that_was_gained_meanwhile_counts(city: City, store: Store, failed: list[str]) -> None:
    ben = member(city, Role.ADMIN)
    made = create(city, BulkVerb.RESOLVE, failed[0], actor=ben, outcome=Resolved.FAILED)
    city.run(lambda tx: tx.members.set_role("ben", Role.OWNER))
    await worked_off(city, store)
    assert counts(shown(city, made.id)) == ("done", 1, 0, 0)


MEMBERS = {BulkVerb.RETRY, BulkVerb.CANCEL, BulkVerb.CLAIM, BulkVerb.UNCLAIM}
MAY = {
    Role.OWNER: set(BulkVerb),
    Role.ADMIN: set(BulkVerb),
    Role.MEMBER: MEMBERS,
    Role.RUN: set[BulkVerb](),
}


def test_the_rights_of_each_role(city: City, failed: list[str]) -> None:
    """The right to the thing itself is asked for at once, not only when it is done."""
    for role, may in MAY.items():
        actor = of_run(failed[0]) if role is Role.RUN else Actor("ben", role)
        assert {action for action in BulkVerb if is_taken(city, action, failed, actor)} == may, role


def is_taken(city: City, action: BulkVerb, runs: list[str], actor: Actor) -> bool:
    more = {"outcome": Resolved.FAILED} if action is BulkVerb.RESOLVE else {}
    try:
        create(city, action, *runs, actor=actor, **more)
    except Forbidden:
        return False
    return True


def test_a_token_needs_both_rights(city: City, failed: list[str]) -> None:
    for number, scopes in enumerate(([Verb.READ], [Verb.RETRY_RUN], [Verb.ACT_IN_BULK])):
        actor = member(city, Role.OWNER, *scopes, name=f"ben{number}")
        assert not is_taken(city, BulkVerb.RETRY, failed, actor), scopes
    both = member(city, Role.OWNER, Verb.ACT_IN_BULK, Verb.RETRY_RUN)
    assert is_taken(city, BulkVerb.RETRY, failed, both)


async def test_runs_of_another_city_are_neither_touched_nor_told(city: City, store: Store, failed: list[str]) -> None:
    other = open_direct(city.place, "cty_other")
    try:
        other.transact(lambda tx: tx.cities.ensure("other", city.clock.now()))
        theirs = City(city.place, other, city.clock, city.ids)
        theirs.add("nightly", overlap="allow")
        run = failed_run(theirs)
        made = create(city, BulkVerb.RETRY, run, failed[0])
        await worked_off(city, store)
        assert results(city, made.id) == [(run, "refused", f"There is no run {run}."), (failed[0], "done", None)]
        assert len(theirs.runs_of("nightly")) == 1
        with pytest.raises(BulkUnknown):
            theirs.do(SHOW, ShowBulk(made.id))
        with pytest.raises(BulkUnknown):
            theirs.do(ABORT, AbortBulk(made.id))
        assert theirs.do(LIST, ListBulk()) == []
    finally:
        other.close()


async def test_a_worker_whose_claim_is_gone_does_nothing_more(city: City, store: Store, failed: list[str]) -> None:
    """As after a pause of the machine: another one has taken the part over."""
    made = create(city, BulkVerb.RETRY, *failed)
    (stale,) = parts_due(city)
    await store.transact(working.carry_out, stale, 0, ctx=at_hand(city))
    city.run(outbox.recover_of, ME, ctx=city.context)
    (fresh,) = parts_due(city, "own_other")
    with pytest.raises(NotClaimed):
        await at_work(city, store).work(stale)
    await at_work(city, store).work(fresh)
    assert counts(shown(city, made.id)) == ("done", 3, 0, 0)
    assert len(city.runs_of("nightly")) == 6


async def test_a_defect_on_one_run_does_not_keep_it_from_the_others(
    city: City, store: Store, failed: list[str]
) -> None:
    """Its row cannot be read by this program."""
    made = create(city, BulkVerb.RETRY, *failed)
    broken = "UPDATE runs SET causes = '{' WHERE id = :id"
    city.run(lambda tx: tx.db.execute(broken, {"id": failed[1]}))
    await worked_off(city, store)
    assert counts(shown(city, made.id)) == ("done", 2, 1, 0)
    assert (results(city, made.id)[1][2] or "").startswith("It failed by a defect of Lamplighter: ")


def test_a_repeated_request_makes_one(city: City, failed: list[str]) -> None:
    def ask(*runs: str) -> Any:
        said = json.dumps(runs)
        return city.run(
            guarded, CREATE, CreateBulk(BulkVerb.RETRY, runs), context(city, owner("ada")), Guard("k", said)
        )

    first, again = ask(*failed), ask(*failed)
    assert (again.is_repeated, again.again["id"]) == (True, first.answer.id)
    with pytest.raises(KeyReused):
        ask(failed[0])
    assert len(city.do(LIST, ListBulk())) == 1


async def test_lists_show_the_newest_first_by_state(city: City, store: Store, failed: list[str]) -> None:
    first = create(city, BulkVerb.CLAIM, failed[0])
    await worked_off(city, store)
    city.advance(seconds=1)
    second = create(city, BulkVerb.UNCLAIM, failed[0])
    assert [one.id for one in city.do(LIST, ListBulk())] == [second.id, first.id]
    assert [one.id for one in city.do(LIST, ListBulk(BulkState.WORKING))] == [second.id]
    assert [one.id for one in city.do(LIST, ListBulk(before=second.id))] == [first.id]
    assert shown(city, "last").id == second.id


async def test_an_old_one_goes_with_its_results_and_one_at_work_stays(
    city: City, store: Store, failed: list[str]
) -> None:
    old = create(city, BulkVerb.CLAIM, *failed)
    await worked_off(city, store)
    waits = create(city, BulkVerb.RETRY, *failed)
    city.advance(days=31)
    assert city.run(prune_bulk_actions, before=city.clock.now()) == 1
    assert [one.id for one in city.do(LIST, ListBulk())] == [waits.id]
    left = city.read(lambda tx: tx.db.rows("SELECT DISTINCT bulk_id FROM bulk_items", {}))
    assert [row["bulk_id"] for row in left] == [waits.id]
    assert old.id != waits.id


async def test_its_events_and_its_actor_stay_those_of_the_creator(city: City, store: Store, failed: list[str]) -> None:
    """Also of one that an agent at work asked for: its run is the cause."""
    made = create(city, BulkVerb.CLAIM, failed[0], actor=changed(owner("ada"), run=failed[2]))
    await worked_off(city, store)
    (event,) = city.events("bulk.created")
    assert (event.subject, event.actor, event.run) == (made.id, "ada", failed[2])
    told = city.read(lambda tx: tx.runs.events(failed[0]))[-1]
    assert (told.type, told.actor) == ("assigned", "ada")
