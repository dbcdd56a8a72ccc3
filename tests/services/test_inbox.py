"""The inbox on both databases: each kind opens once, folds, is settled by its cause, dismissed, snoozed, rebuilt.

The table of what is tried of each kind, and what cannot be and why, is `MATRIX` in `inbox_causes.py`.
"""

import os
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from automation_city import CITY, City
from inbox_causes import CAUSES, MATRIX, TRIED, Cause, Cell

from lamplighter.domain.inbox.items import OF_RUNS, InboxItem, Kind, Shown, State
from lamplighter.services.automations import editing
from lamplighter.services.inbox import operations, queries, sweep
from lamplighter.store.inbox import Inbox
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct


def swept(city: City, passes: Sequence[sweep.Pass] = sweep.SWEEP) -> sweep.Swept:
    """What the daemon does every minute; with REBUILD, at its start."""
    opened = settled = 0
    for one in passes:
        after: str | None = ""
        while after is not None:
            done = city.run(one, after, ctx=city.context)
            opened, settled, after = opened + done.opened, settled + done.settled, done.last
    return sweep.Swept(opened, settled)


def listed(city: City, state: Shown = Shown.OPEN) -> list[queries.ItemView]:
    found: list[queries.ItemView] = city.do(queries.LIST, queries.ListInbox(state))
    return found


def of_kind(city: City, kind: Kind, state: Shown = Shown.OPEN) -> list[queries.ItemView]:
    return [item for item in listed(city, state) if item.kind is kind]


def kept(city: City) -> list[InboxItem]:
    rows: list[InboxItem] = city.read(lambda tx: tx.inbox.page(limit=1000))
    return rows


# ── the matrix ────────────────────────────────────────────────────────────────────────────────────────────────────


def opens_once_and_status_counts_it(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    [item] = of_kind(city, kind)
    assert item.sentence
    assert item.fix.startswith("lamp ")
    assert item.state is Shown.OPEN
    assert city.read(lambda tx: tx.summary.attention(city.clock.now())) == len(listed(city))
    swept(city)
    swept(city, sweep.REBUILD)
    assert [one.id for one in of_kind(city, kind)] == [item.id]


def folds(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    first = of_kind(city, kind)[0]
    city.advance(seconds=5)
    cause.again(city)
    swept(city)
    found = of_kind(city, kind)
    assert [one.id for one in found] == [first.id]
    if kind in OF_RUNS:
        assert found[0].count == 2
        assert found[0].last_at > found[0].first_at == first.first_at
        [row] = [one for one in kept(city) if one.kind is kind]
        assert (row.count, row.last_run) == (2, found[0].runs[0])


def settles_by_its_cause(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    item = of_kind(city, kind)[0]
    city.advance(seconds=5)
    cause.mend(city)
    swept(city)
    assert of_kind(city, kind) == []
    [settled] = of_kind(city, kind, Shown.SETTLED)
    assert settled.id == item.id
    assert settled.settled_how
    city.advance(seconds=5)
    swept(city)
    swept(city, sweep.REBUILD)
    assert of_kind(city, kind) == []


def opens_anew(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    first = of_kind(city, kind)[0]
    city.advance(seconds=5)
    cause.mend(city)
    swept(city)
    city.advance(seconds=5)
    cause.arise(city)
    [second] = of_kind(city, kind)
    assert second.id != first.id
    assert second.count == 1


def stays_dismissed(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    city.advance(seconds=5)
    item = of_kind(city, kind)[0]
    gone = city.do(operations.DISMISS, operations.DismissItem(item.id))
    assert (gone.state, gone.settled_by, gone.settled_how) == (Shown.SETTLED, "tester", "it was dismissed")
    city.advance(minutes=5)
    swept(city)
    swept(city, sweep.REBUILD)
    assert of_kind(city, kind) == []
    with pytest.raises(operations.NotOpen, match="settled by tester: it was dismissed"):
        city.do(operations.DISMISS, operations.DismissItem(item.id))


def is_snoozed_and_comes_back(city: City, kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    item = of_kind(city, kind)[0]
    before = city.read(lambda tx: tx.summary.attention(city.clock.now()))
    snoozed = city.do(operations.SNOOZE, operations.SnoozeItem(item.id, "20m"))
    assert snoozed.state is Shown.SNOOZED
    assert of_kind(city, kind) == []
    assert [one.id for one in of_kind(city, kind, Shown.SNOOZED)] == [item.id]
    assert city.read(lambda tx: tx.summary.attention(city.clock.now())) == before - 1
    until = city.clock.now() + timedelta(minutes=21)
    cause.again(city)
    swept(city)
    if city.clock.now() < until:
        assert item.id not in {one.id for one in of_kind(city, kind)}
        city.advance(minutes=21)
    assert item.id in {one.id for one in of_kind(city, kind)}
    city.do(operations.SNOOZE, operations.SnoozeItem(item.id, "1d"))
    shown = city.do(operations.UNSNOOZE, operations.UnsnoozeItem(item.id))
    assert shown.state is Shown.OPEN


def killed(city: City, act: Callable[[City], object], *at: str) -> None:
    """Act in a process of its own, which is killed once one of these methods of the inbox has written, before the
    commit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none of them
        child = os.fork()
    if child == 0:
        try:
            for name in at:
                setattr(Inbox, name, _dies_after(getattr(Inbox, name)))
            act(City(city.place, open_direct(city.place, CITY), city.clock, city.ids))
        finally:
            os._exit(1)  # it was not killed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    city.advance(minutes=10)  # the clock of the child went on too


def _dies_after(real: Callable[..., object]) -> Callable[..., object]:
    def dying(*args: Any, **keys: Any) -> None:
        if real(*args, **keys) == 0:
            return  # there was nothing to write
        os.kill(os.getpid(), signal.SIGKILL)

    return dying


def killed_while_it_opens(city: City, kind: Kind, cause: Cause) -> None:
    """Nothing of it is kept; when the same is found again, it opens once."""
    killed(city, cause.arise, "open", "open_left_out")
    assert kept(city) == []
    cause.arise(city)
    swept(city, sweep.REBUILD)
    assert len(of_kind(city, kind)) == 1


def killed_while_it_settles(city: City, kind: Kind, cause: Cause) -> None:
    """It stays open; when the same is done again, or the sweep looks, it is settled once."""
    cause.arise(city)
    item = of_kind(city, kind)[0]
    city.advance(seconds=5)

    def mend(there: City) -> None:
        cause.mend(there)
        swept(there)

    killed(city, mend, "save", "settle_of_subject")
    assert [one.id for one in of_kind(city, kind)] == [item.id]
    mend(city)
    assert of_kind(city, kind) == []
    assert [one.id for one in of_kind(city, kind, Shown.SETTLED)] == [item.id]


def is_rebuilt(city: City, _kind: Kind, cause: Cause) -> None:
    cause.arise(city)
    city.advance(seconds=5)
    cause.again(city)
    swept(city)
    before = {_facts(one) for one in kept(city) if one.state is State.OPEN}
    city.run(_lose)
    assert kept(city) == []
    city.advance(seconds=5)
    swept(city, sweep.REBUILD)
    swept(city)
    assert {_facts(one) for one in kept(city)} == before


CHECKS: Mapping[Cell, Callable[[City, Kind, Cause], None]] = {
    Cell.OPENS: opens_once_and_status_counts_it,
    Cell.FOLDS: folds,
    Cell.SETTLES: settles_by_its_cause,
    Cell.RETURNS: opens_anew,
    Cell.DISMISSED: stays_dismissed,
    Cell.SNOOZED: is_snoozed_and_comes_back,
    Cell.KILLED_OPENING: killed_while_it_opens,
    Cell.KILLED_SETTLING: killed_while_it_settles,
    Cell.REBUILT: is_rebuilt,
}


@pytest.mark.parametrize("cell", list(Cell), ids=lambda cell: cell.name.lower())
@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_each_kind_in_each_cell(city: City, kind: Kind, cell: Cell) -> None:
    reason = MATRIX[kind][cell]
    if reason is TRIED:
        CHECKS[cell](city, kind, CAUSES[kind])
    else:
        assert reason.why


def test_each_question_is_an_item_of_its_own(city: City) -> None:
    CAUSES[Kind.NEEDS_HUMAN].arise(city)
    CAUSES[Kind.NEEDS_HUMAN].again(city)
    swept(city)
    assert len(of_kind(city, Kind.NEEDS_HUMAN)) == 2


def _lose(tx: Tx) -> None:
    tx.db.execute("DELETE FROM inbox_items WHERE city_id = :city", {"city": tx.city})


def _facts(item: InboxItem) -> tuple[Any, ...]:
    return (item.kind, item.fingerprint, item.subject, item.count, item.last_run, item.state)


def test_runs_of_an_older_program_are_judged_by_the_sweep(city: City) -> None:
    """It left the fingerprint empty; a success that came later settles at once, and what was retried opens nothing."""
    city.add("nightly", retry=1, auto_disable_after=0)
    run = city.run_now("nightly").run
    city.finish(run, "failed", "exit_1")
    city.run(lambda tx: tx.db.execute("UPDATE runs SET fingerprint = NULL WHERE city_id = :c", {"c": tx.city}))
    assert swept(city).opened == 0
    assert city.get(run).fingerprint == ""
    retry = city.runs_of("nightly")[-1]
    city.advance(minutes=5)
    city.finish(retry.id, "failed", "exit_1")
    city.run(_lose)
    city.run(lambda tx: tx.db.execute("UPDATE runs SET fingerprint = NULL WHERE city_id = :c", {"c": tx.city}))
    assert swept(city).opened == 1
    [item] = listed(city)
    assert list(item.runs) == [retry.id]
    city.run(_lose)
    city.run(lambda tx: tx.db.execute("UPDATE runs SET fingerprint = NULL WHERE city_id = :c", {"c": tx.city}))
    city.advance(minutes=5)
    city.finish(city.run_now("nightly").run)
    assert swept(city) == sweep.Swept(0, 0)
    assert kept(city) == []


def test_history_is_listed_and_told_to_nobody(city: City) -> None:
    CAUSES[Kind.FAILED].arise(city)
    city.run(_lose)
    city.advance(days=3)
    swept(city, sweep.REBUILD)
    [item] = kept(city)
    assert item.told == State.OPEN.value
    city.run(_lose)
    CAUSES[Kind.FAILED].arise(city)
    assert [one.told for one in kept(city)] == [""]


def test_a_run_that_is_retried_by_its_policy_needs_nobody_yet(city: City) -> None:
    city.add("nightly", retry=1)
    city.finish(city.run_now("nightly").run, "failed", "exit_1")
    assert listed(city) == []
    city.advance(minutes=5)
    city.finish(city.runs_of("nightly")[-1].id, "failed", "exit_1")
    assert len(listed(city)) == 1


def test_failures_that_disable_their_automation_are_one_item_with_it(city: City) -> None:
    city.add("nightly", gate="cooldown", interval="1m", auto_disable_after=2)
    for _ in range(2):
        city.advance(minutes=2)
        [run] = city.tick().fired
        city.finish(run, "failed", "exit_1", error="3 errors")
    [item] = listed(city)
    assert item.sentence == "nightly was disabled, because it failed 2 times in a row, last with exit 1: 3 errors."
    city.finish(city.run_now("nightly").run, "failed", "exit_2", error="by hand too")
    swept(city)
    swept(city, sweep.REBUILD)
    assert [one.id for one in listed(city)] == [item.id]
    [settled] = {one.settled_how for one in of_kind(city, Kind.FAILED, Shown.SETTLED)}
    assert settled == "the automation was disabled, which has an item of its own"
    city.run(editing.set_enabled, "nightly", enabled=True, rules=city.rules, ctx=city.context)
    swept(city, sweep.REBUILD)
    assert listed(city) == []
    city.advance(minutes=2)
    [run] = city.tick().fired
    city.finish(run, "failed", "exit_1", error="3 errors")
    assert [(one.kind, one.count) for one in listed(city)] == [(Kind.FAILED, 1)]


def test_a_deleted_automation_takes_its_failures_with_it(city: City) -> None:
    from lamplighter.services.automations import editing

    CAUSES[Kind.FAILED].arise(city)
    assert [one.kind for one in listed(city)] == [Kind.FAILED]
    city.run(editing.delete, "nightly", ctx=city.context)
    swept(city)
    assert listed(city) == []


def test_the_quarantine_that_ends_by_itself_settles_only_when_no_other_follows(city: City) -> None:
    CAUSES[Kind.QUARANTINED].arise(city)
    city.advance(minutes=61)
    swept(city)
    assert len(of_kind(city, Kind.QUARANTINED)) == 1
    CAUSES[Kind.QUARANTINED].again(city)
    city.advance(minutes=61)
    swept(city)
    assert len(of_kind(city, Kind.QUARANTINED)) == 1
    city.advance(minutes=2)
    swept(city)
    assert of_kind(city, Kind.QUARANTINED) == []


def test_two_that_fail_at_once_open_one_item(city: City, ask_at_once: Any) -> None:
    from lamplighter.domain.runs.model import By, Mover, RunState
    from lamplighter.services.runs import review

    city.add("nightly", overlap="allow", auto_disable_after=0)
    started = [city.start(city.run_now("nightly").run) for _ in range(4)]
    ctx = city.context
    ask_at_once(
        [
            lambda tx, run=run: review.end(
                tx, run.id, review.Ending(RunState.FAILED, "exit_1"), By(Mover.WORKER, "w", run.lease.version), ctx=ctx
            )
            for run in started
        ]
    )
    [item] = listed(city)
    assert item.count == 4
