"""What people do to runs and inbox items: claim, resolve, retry, dismiss, snooze; with the actor on record."""

from datetime import UTC, datetime
from typing import Any

import pytest
from automation_city import City
from inbox_causes import CAUSES

from lamplighter.domain.access import Actor, Forbidden, Role
from lamplighter.domain.inbox.items import Kind, Need, NotOpen, Shown
from lamplighter.domain.runs.model import IllegalMove, RunState
from lamplighter.kit.errors import UsageError
from lamplighter.services import outbox, outbox_operations
from lamplighter.services.automations.operations import EDIT, EditAutomation
from lamplighter.services.context import Context
from lamplighter.services.inbox import operations, queries, sweep
from lamplighter.services.operation import Operation, judged
from lamplighter.services.runs import operations as runs
from lamplighter.services.runs import people


def ask(city: City, operation: Operation[Any, Any], request: Any, by: str = "eva", role: Role = Role.ADMIN) -> Any:
    ctx = Context(Actor(by, role), city.clock.now(), city.ids, "api", city.configured)
    return city.run(judged, operation, request, ctx)


def item(city: City) -> queries.ItemView:
    [found] = city.do(queries.LIST, queries.ListInbox())
    view: queries.ItemView = found
    return view


def test_an_item_is_opened_again_by_the_name_of_what_it_is_about(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    ask(city, operations.DISMISS, operations.DismissItem(item(city).id))
    city.advance(minutes=1)
    CAUSES[Kind.TIMED_OUT].arise(city)
    second = item(city)
    ask(city, operations.DISMISS, operations.DismissItem("nightly"))
    assert ask(city, operations.REOPEN, operations.ReopenItem("nightly")).id == second.id
    with pytest.raises(operations.NotDismissed, match="is open already"):
        ask(city, operations.REOPEN, operations.ReopenItem(second.id))
    with pytest.raises(queries.ItemUnknown):
        ask(city, operations.REOPEN, operations.ReopenItem("weekly"))


def test_an_item_of_several_failures_says_what_the_last_of_them_said(city: City) -> None:
    city.add("nightly", overlap="allow", auto_disable_after=0)
    for count, host in enumerate(("10.0.0.1", "10.0.0.2", "10.0.0.3"), 1):
        city.advance(seconds=5)
        city.finish(city.run_now("nightly").run, "failed", "exit_1", error=f"cannot reach {host}")
        assert (item(city).count, host in item(city).sentence) == (count, True)
    sweep_now(city)
    [row] = city.read(lambda tx: tx.inbox.page(limit=9))
    assert "10.0.0.3" in row.facts["error"]


def test_an_item_of_work_that_was_given_up_names_what_is_left_of_it(city: City) -> None:
    CAUSES[Kind.OUTBOX].arise(city)
    city.advance(seconds=5)
    CAUSES[Kind.OUTBOX].again(city)
    sweep_now(city)
    newest, oldest = sorted((one.item.id for one in city.read(lambda tx: tx.outbox.given_up())), reverse=True)
    assert (item(city).count, item(city).fix) == (2, f"lamp outbox retry {newest}")
    city.do(outbox_operations.RETRY, outbox_operations.RetryOutbox(newest))
    sweep_now(city)
    assert (item(city).count, item(city).fix) == (1, f"lamp outbox retry {oldest}")


def sweep_now(city: City) -> None:
    for one in sweep.SWEEP:
        after: str | None = ""
        while after is not None:
            after = city.run(one, after, ctx=city.context).last


@pytest.fixture
def question(city: City) -> str:
    ended: Any = CAUSES[Kind.NEEDS_HUMAN].arise(city)
    run: str = ended.id
    return run


def test_pages_of_the_inbox_follow_one_another_in_its_order(city: City) -> None:
    for kind in (Kind.NEEDS_HUMAN, Kind.FAILED, Kind.TIMED_OUT):
        city.advance(minutes=1)
        CAUSES[kind].arise(city)
    whole = [one.id for one in city.do(queries.LIST, queries.ListInbox())]
    assert len(whole) == 3
    pages, before = [], None
    while page := city.do(queries.LIST, queries.ListInbox(before=before, limit=1)):
        before = page[-1].id
        pages.append(before)
    assert pages == whole
    assert [one.kind for one in city.do(queries.LIST, queries.ListInbox(kind=Kind.TIMED_OUT, limit=1))] == [
        Kind.TIMED_OUT
    ]
    for one in whole:
        ask(city, operations.DISMISS, operations.DismissItem(one))
    [found] = city.do(queries.LIST, queries.ListInbox(Shown.SETTLED, kind=Kind.NEEDS_HUMAN, limit=1))
    assert found.kind is Kind.NEEDS_HUMAN, "of a kind there is few: other pages are looked at too"


def test_a_claim_is_one_persons_and_anyone_can_let_go_of_it(city: City, question: str) -> None:
    assert ask(city, runs.CLAIM_RUN, runs.ClaimRun(question), "ada", Role.MEMBER).assigned_to == "ada"
    with pytest.raises(people.AlreadyClaimed, match="claimed by ada"):
        ask(city, runs.CLAIM_RUN, runs.ClaimRun(question), "eva")
    assert ask(city, runs.CLAIM_RUN, runs.ClaimRun(question), "ada").assigned_to == "ada"
    assert item(city).claimed_by == "ada"
    assert ask(city, runs.UNCLAIM_RUN, runs.UnclaimRun(question), "eva", Role.MEMBER).assigned_to is None
    assert ask(city, runs.UNCLAIM_RUN, runs.UnclaimRun(question), "eva").assigned_to is None
    told = [(one["type"], one["actor"]) for one in city.shown(question)["events"][-2:]]
    assert told == [("assigned", "ada"), ("unassigned", "eva")]


def test_a_member_cannot_resolve_and_an_admin_can_once(city: City, question: str) -> None:
    asked = runs.ResolveRun(question, runs.Resolved.SUCCEEDED, "checked  by hand", "It is on main.")
    with pytest.raises(Forbidden):
        ask(city, runs.RESOLVE_RUN, asked, role=Role.MEMBER)
    ended_at = city.get(question).ended_at
    city.advance(minutes=5)
    done = ask(city, runs.RESOLVE_RUN, asked)
    assert (done.state, done.reason, done.ended_at) == (
        RunState.SUCCEEDED, "manual_resolution:checked by hand", ended_at,
    )  # fmt: skip
    event = city.shown(question)["events"][-1]
    assert (event["type"], event["from"], event["to"], event["actor"]) == (
        "manual_resolution", "needs_human", "succeeded", "eva",
    )  # fmt: skip
    assert event["data"] == {
        "user": "eva", "previous_state": "needs_human", "reason": "checked by hand", "comment": "It is on main.",
    }  # fmt: skip
    with pytest.raises(people.AlreadyResolved):
        ask(city, runs.RESOLVE_RUN, asked)
    assert city.do(queries.LIST, queries.ListInbox()) == []
    [settled] = city.do(queries.LIST, queries.ListInbox(Shown.SETTLED))
    assert (settled.settled_by, settled.settled_how) == ("eva", "it was resolved")
    assert len(city.events("run.resolved")) == 1


def test_a_run_under_way_cannot_be_resolved(city: City) -> None:
    city.add("nightly")
    run = city.run_now("nightly").run
    city.start(run)
    with pytest.raises(IllegalMove):
        ask(city, runs.RESOLVE_RUN, runs.ResolveRun(run, runs.Resolved.FAILED))


def test_two_who_resolve_at_once_leave_one_event(city: City, question: str, ask_at_once: Any) -> None:
    ctx = Context(Actor("eva", Role.ADMIN), city.clock.now(), city.ids, "api", city.configured)
    said = people.Resolution(RunState.FAILED)

    def resolve(tx: Any) -> str:
        try:
            people.resolve(tx, question, said, ctx=ctx)
        except (IllegalMove, people.AlreadyResolved):
            return "refused"
        return "done"

    assert sorted(ask_at_once([resolve, resolve])) == ["done", "refused"]
    assert [one["type"] for one in city.shown(question)["events"]].count("manual_resolution") == 1


def test_words_that_are_too_long_are_refused(city: City, question: str) -> None:
    with pytest.raises(UsageError, match="at most 500"):
        ask(city, runs.RESOLVE_RUN, runs.ResolveRun(question, runs.Resolved.FAILED, "x" * 501))


def test_on_an_item_of_runs_each_run_is_claimed_and_resolved(city: City) -> None:
    ended = [CAUSES[Kind.FAILED].arise(city).id for _ in range(3)]
    claimed = ask(city, operations.CLAIM, operations.ClaimItem(item(city).id), role=Role.MEMBER)
    assert (claimed.claimed_by, claimed.count, set(claimed.runs)) == ("eva", 3, set(ended))
    assert {city.get(run).assigned_to for run in ended} == {"eva"}
    ask(city, operations.UNCLAIM, operations.UnclaimItem(claimed.id))
    assert {city.get(run).assigned_to for run in ended} == {None}
    city.advance(seconds=5)
    done = ask(city, operations.RESOLVE, operations.ResolveItem(claimed.id, runs.Resolved.FAILED, "known"))
    assert done.state is Shown.SETTLED
    assert {city.get(run).reason for run in ended} == {"manual_resolution:known"}
    assert {city.get(run).state for run in ended} == {RunState.FAILED}


def test_on_an_item_of_runs_each_run_is_retried_once(city: City) -> None:
    ended = [CAUSES[Kind.FAILED].arise(city).id for _ in range(2)]
    done = ask(city, operations.RETRY, operations.RetryItem(item(city).id), role=Role.MEMBER)
    assert (done.state, done.settled_how) == (Shown.SETTLED, "its runs were retried")
    assert sorted(run.retries for run in city.runs_of("nightly") if run.retries) == sorted(ended)
    with pytest.raises(NotOpen):
        ask(city, operations.RETRY, operations.RetryItem(done.id))


def test_a_retry_says_that_it_uses_the_definition_as_it_was(city: City) -> None:
    first, second = (CAUSES[Kind.FAILED].arise(city).id for _ in range(2))
    assert ask(city, runs.RETRY_RUN, runs.RetryRun(first)).note is None
    ask(city, EDIT, EditAutomation("nightly", changes={"exec": "true # another"}))
    note = ask(city, runs.RETRY_RUN, runs.RetryRun(second)).note
    assert note is not None
    assert "nightly was changed since; a retry uses its definition as it was." in note
    assert "`lamp automation run nightly` runs it as it is now" in note


def test_one_retried_run_leaves_the_others_of_its_item_open(city: City) -> None:
    first, second = (CAUSES[Kind.FAILED].arise(city).id for _ in range(2))
    ask(city, runs.RETRY_RUN, runs.RetryRun(first))
    assert list(item(city).runs) == [second]


def test_an_item_of_something_else_has_a_claim_of_its_own(city: City) -> None:
    CAUSES[Kind.QUARANTINED].arise(city)
    found = item(city)
    assert ask(city, operations.CLAIM, operations.ClaimItem(found.id), "ada").claimed_by == "ada"
    with pytest.raises(operations.ClaimedByOther):
        ask(city, operations.CLAIM, operations.ClaimItem(found.id), "eva")
    with pytest.raises(operations.NotOfRuns):
        ask(city, operations.RETRY, operations.RetryItem(found.id))
    assert ask(city, operations.UNCLAIM, operations.UnclaimItem(found.id)).claimed_by is None
    assert ask(city, operations.RESOLVE, operations.ResolveItem(found.id)).settled_how == "it was resolved"
    assert [one.actor for one in city.events("inbox.resolved")] == ["eva"]


@pytest.mark.parametrize(
    ("operation", "request_"),
    [(operations.DISMISS, operations.DismissItem), (operations.RESOLVE, operations.ResolveItem)],
)
def test_a_member_may_not_settle_items(city: City, operation: Any, request_: Any) -> None:
    CAUSES[Kind.FAILED].arise(city)
    with pytest.raises(Forbidden):
        ask(city, operation, request_(item(city).id), role=Role.MEMBER)


def test_seen_is_each_persons_own(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    ask(city, operations.SEE, operations.SeeItem(item(city).id), "ada", Role.MEMBER)
    assert ask(city, queries.LIST, queries.ListInbox(), "ada")[0].seen
    assert not ask(city, queries.LIST, queries.ListInbox(), "eva")[0].seen


@pytest.mark.parametrize("until", ["", "soon", "0", "-1h", "2026-11-18T09:00", "2000-01-01T00:00Z", "9999d", "2y"])
def test_a_time_that_cannot_be_snoozed_until_is_refused(city: City, until: str) -> None:
    CAUSES[Kind.FAILED].arise(city)
    with pytest.raises(UsageError):
        ask(city, operations.SNOOZE, operations.SnoozeItem(item(city).id, until))


def test_an_item_is_named_by_how_its_id_begins(city: City, question: str) -> None:
    full = item(city).id
    assert city.do(queries.SHOW, queries.ShowItem(full[4:16])).id == full
    assert city.do(queries.SHOW, queries.ShowItem(full[-6:].upper())).id == full
    with pytest.raises(queries.ItemUnknown):
        city.do(queries.SHOW, queries.ShowItem("inb_zz"))
    city.advance(seconds=1)
    CAUSES[Kind.NEEDS_HUMAN].again(city)
    with pytest.raises(queries.ItemAmbiguous):
        city.do(queries.SHOW, queries.ShowItem("inb_"))
    shown = city.do(queries.SHOW, queries.ShowItem(full))
    assert shown.question == queries.QuestionView("Which branch?", (), None)
    assert list(shown.runs) == [question]


def test_an_item_is_named_by_what_it_is_about(city: City, question: str) -> None:
    subject = item(city).subject
    for name in (subject, subject.partition(":")[0]):
        assert ask(city, queries.SHOW, queries.ShowItem(name)).runs == [question]
    with pytest.raises(queries.ItemUnknown, match="no inbox item nobody"):
        ask(city, queries.SHOW, queries.ShowItem("nobody"))


def test_a_name_that_two_items_are_about_is_not_guessed() -> None:
    at = datetime(2026, 11, 18, tzinfo=UTC)
    alike = [
        Need(kind, kind.value, "wick", at).item(f"inb_{n:026}", at) for n, kind in enumerate((Kind.QUIET, Kind.DRAFT))
    ]
    with pytest.raises(queries.SubjectAmbiguous, match="2 open inbox items are about wick: 000000, 000001"):
        queries._about(alike, "wick")


def test_given_up_work_is_in_the_outbox_on_the_run_and_in_the_inbox(city: City) -> None:
    from lamplighter.domain.delivery.outbox import ItemKind, new_item

    city.add("nightly")
    run = city.finish(city.run_now("nightly").run)
    now = city.clock.now()
    lost = new_item(city.ids.make("out"), ItemKind.WRITE_ARTIFACT, {"run": run.id, "artifact": "completion"}, now)
    city.run(lambda tx: tx.outbox.add(lost))
    for _ in range(5):
        [claimed] = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9)
        city.run(outbox.failed, claimed, "No space left", permanent=False, ctx=city.context)
        city.advance(minutes=6)
    [shown] = city.do(outbox_operations.LIST, outbox_operations.ListOutbox())
    assert (shown.id, shown.run, shown.attempts, shown.last_error) == (lost.id, run.id, 5, "No space left")
    assert city.shown(run.id)["artifacts_lost"] == ["completion"]
    found = item(city)
    assert found.fix == f"lamp outbox retry {lost.id}"
    with pytest.raises(Forbidden):
        ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox(lost.id), role=Role.MEMBER)
    again = ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox(lost.id))
    assert (again.state, again.attempts) == ("pending", 0)
    with pytest.raises(outbox_operations.CannotRetry, match="it is pending"):
        ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox(lost.id))
    with pytest.raises(outbox_operations.OutboxItemUnknown):
        ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox("out_no"))


def test_what_can_never_succeed_is_not_tried_again(city: City) -> None:
    city.add("nightly")
    run = city.run_now("nightly").run
    [stage] = city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9)
    city.run(outbox.failed, stage, "no", permanent=True, ctx=city.context)
    with pytest.raises(outbox_operations.CannotRetry, match="its run has ended") as told:
        ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox(stage.id))
    assert told.value.hint == f"Start the run anew: `lamp run retry {run}`."
    assert [one.kind for one in city.do(queries.LIST, queries.ListInbox())] == [Kind.FAILED]  # the run, not its item
    insert = (
        "INSERT INTO outbox (city_id, id, kind, payload, state, due_at) VALUES (:c, 'out_x', 'odd', '{}', 'failed', 0)"
    )
    city.run(lambda tx: tx.db.execute(insert, {"c": tx.city}))
    with pytest.raises(outbox_operations.CannotRetry, match="is not a kind"):
        ask(city, outbox_operations.RETRY, outbox_operations.RetryOutbox("out_x"))


def test_snoozed_until_it_recurs_it_comes_back_by_itself(city: City) -> None:
    cause = CAUSES[Kind.FAILED]
    cause.arise(city)
    one = item(city)
    with pytest.raises(UsageError, match="until when"):
        ask(city, operations.SNOOZE, operations.SnoozeItem(one.id))
    snoozed = ask(city, operations.SNOOZE, operations.SnoozeItem(one.id, times=2))
    assert (snoozed.state, snoozed.snoozed_times) == (Shown.SNOOZED, 2)
    assert city.read(lambda tx: tx.summary.attention(city.clock.now())) == 0
    city.advance(days=30)
    cause.again(city)
    sweep_now(city)
    assert city.do(queries.LIST, queries.ListInbox()) == []
    cause.again(city)
    sweep_now(city)
    assert item(city).id == one.id
    assert city.read(lambda tx: tx.summary.attention(city.clock.now())) == 1
    shown = ask(city, operations.SNOOZE, operations.SnoozeItem(one.id, "1h", times=1))
    assert (shown.state, shown.snoozed_times) == (Shown.SNOOZED, 1)
    city.advance(hours=2)  # whichever comes first
    assert item(city).id == one.id


def test_a_dismissal_keeps_its_reason_and_can_be_taken_back(city: City) -> None:
    cause = CAUSES[Kind.FAILED]
    cause.arise(city)
    one = item(city)
    with pytest.raises(operations.NotDismissed):
        ask(city, operations.REOPEN, operations.ReopenItem(one.id))
    with pytest.raises(UsageError, match="longer"):
        ask(city, operations.DISMISS, operations.DismissItem(one.id, "x" * 501))
    with pytest.raises(Forbidden):
        ask(city, operations.DISMISS, operations.DismissItem(one.id), role=Role.MEMBER)
    gone = ask(city, operations.DISMISS, operations.DismissItem(one.id, " known "))
    assert (gone.settled_how, gone.settled_why) == ("it was dismissed", "known")
    assert city.events("inbox.dismissed")[-1].payload["reason"] == "known"
    with pytest.raises(Forbidden):
        ask(city, operations.REOPEN, operations.ReopenItem(one.id), role=Role.MEMBER)
    back = ask(city, operations.REOPEN, operations.ReopenItem(one.id))
    assert (back.id, back.state, back.count, back.settled_by) == (one.id, Shown.OPEN, one.count, None)
    sweep_now(city)
    assert item(city).id == one.id
    ask(city, operations.DISMISS, operations.DismissItem(one.id))
    city.advance(minutes=5)
    cause.again(city)
    with pytest.raises(operations.OpenAgain):
        ask(city, operations.REOPEN, operations.ReopenItem(one.id))


def test_all_are_seen_at_once_by_one_person(city: City, question: str) -> None:
    assert question
    assert ask(city, operations.SEE_ALL, operations.SeeAll("nobody")).seen == 0
    assert ask(city, operations.SEE_ALL, operations.SeeAll(), "ada", Role.MEMBER).seen == 1
    assert ask(city, operations.SEE_ALL, operations.SeeAll(), "ada").seen == 0
    assert item(city).seen is False  # to the others it is new still
