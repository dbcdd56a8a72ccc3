"""Runs, leases and outbox items driven by random commands beside a small model of what must be true."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamplighter.domain.delivery.outbox import (
    HUNG_AFTER,
    MOST_ATTEMPTS,
    MOST_RECOVERIES,
    SETTLED,
    ItemKind,
    ItemState,
    NotClaimed,
    after_failure,
    new_item,
    put_off,
    recover,
    settle,
    take_back,
)
from lamplighter.domain.delivery.outbox import claim as claim_item
from lamplighter.domain.runs.lease import LEASE, Lease, LeaseHeld, LeaseLost, claim, fence, release, renew, void
from lamplighter.domain.runs.model import (
    ACTIVE,
    ATTENTION,
    TERMINAL,
    By,
    IllegalMove,
    Mover,
    Run,
    RunState,
    move,
)

START = datetime(2026, 6, 23, 12, tzinfo=UTC)
WORKERS = st.sampled_from(["w1", "w2", "w3"])
SPANS = st.timedeltas(timedelta(0), timedelta(minutes=8))


class Leases(RuleBasedStateMachine):
    """The model: who holds which version, and until when. At most one version is ever valid."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.lease = Lease()
        self.valid: int | None = None
        self.until = START
        self.seen: dict[str, int] = {}

    @rule(span=SPANS)
    def time_passes(self, span: timedelta) -> None:
        self.now += span

    @rule(worker=WORKERS)
    def claim(self, worker: str) -> None:
        try:
            self.lease = claim(self.lease, worker, self.now)
        except LeaseHeld:
            assert self.valid is not None
            assert self.now < self.until
            return
        assert self.valid is None or self.now >= self.until
        assert self.lease.version > max(self.seen.values(), default=0)
        self.seen[worker] = self.valid = self.lease.version
        self.until = self.now + LEASE

    @rule(worker=WORKERS)
    def renew(self, worker: str) -> None:
        version = self.seen.get(worker, 0)
        try:
            self.lease = renew(self.lease, version, self.now)
        except LeaseLost:
            assert version != self.valid
            return
        assert version == self.valid
        self.until = self.now + LEASE

    @rule(worker=WORKERS)
    def write(self, worker: str) -> None:
        version = self.seen.get(worker, 0)
        try:
            fence(self.lease, version)
        except LeaseLost:
            assert version != self.valid
        else:
            assert version == self.valid

    @rule(worker=WORKERS)
    def release(self, worker: str) -> None:
        version = self.seen.get(worker, 0)
        try:
            self.lease = release(self.lease, version)
        except LeaseLost:
            assert version != self.valid
            return
        assert version == self.valid
        self.valid = None

    @rule()
    def the_owner_dies(self) -> None:
        self.lease, self.valid = void(self.lease), None

    @invariant()
    def live_means_held_and_not_lapsed(self) -> None:
        assert self.lease.live(self.now) == (self.valid is not None and self.now < self.until)


class Runs(RuleBasedStateMachine):
    """Ended stays ended unless a person resolves it; times are set once; a stale worker changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.run = Run("run_1", "job", RunState.QUEUED, START)
        self.versions: dict[str, int] = {}
        self.history = [RunState.QUEUED]

    @initialize(enriched=st.booleans())
    def begin(self, enriched: bool) -> None:  # noqa: FBT001  hypothesis draws it
        state = RunState.QUEUED if enriched else RunState.READY
        self.run = Run("run_1", "job", state, START)
        self.history = [state]

    @rule(span=SPANS)
    def time_passes(self, span: timedelta) -> None:
        self.now += span

    @precondition(lambda self: not self.run.ended)
    @rule(worker=WORKERS)
    def claim(self, worker: str) -> None:
        try:
            self.run = replace(self.run, lease=claim(self.run.lease, worker, self.now))
        except LeaseHeld:
            return
        self.versions[worker] = self.run.lease.version

    @rule(worker=WORKERS, to=st.sampled_from(RunState))
    def a_worker_moves(self, worker: str, to: RunState) -> None:
        version = self.versions.get(worker)
        holds = self.run.lease.owner is not None and self.run.lease.version == version
        if self.moved(to, By(Mover.WORKER, worker, version)):
            assert holds

    @rule(mover=st.sampled_from([one for one in Mover if one is not Mover.WORKER]), to=st.sampled_from(RunState))
    def another_moves(self, mover: Mover, to: RunState) -> None:
        self.moved(to, By(mover, mover.value))

    def moved(self, to: RunState, by: By) -> bool:
        before = self.run
        try:
            after = move(before, to, by, self.now)
        except (IllegalMove, LeaseLost):
            return False
        if before.ended:
            assert by.mover is Mover.PERSON
            assert before.state in ATTENTION
            assert to in {RunState.SUCCEEDED, RunState.FAILED}
            assert after.run.ended_at == before.ended_at
        self.run = after.run
        self.history.append(to)
        return True

    @invariant()
    def the_end_has_a_time_and_no_lease(self) -> None:
        assert (self.run.ended_at is not None) == self.run.ended
        assert not (self.run.ended and self.run.lease.owner)

    @invariant()
    def the_work_goes_forward_only(self) -> None:
        order = [RunState.QUEUED, RunState.ENRICHING, RunState.READY, RunState.RUNNING]
        worked = [order.index(state) for state in self.history if state in ACTIVE]
        assert worked == sorted(set(worked))
        first_end = next((place for place, state in enumerate(self.history) if state in TERMINAL), len(self.history))
        assert all(state in TERMINAL for state in self.history[first_end:])
        assert (self.run.started_at is not None) == (RunState.RUNNING in self.history)


class Outbox(RuleBasedStateMachine):
    """The model: the number of the valid claim, attempts paid for, workers lost."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.item = new_item("out_1", ItemKind.ENQUEUE_EXECUTE, {"run": "run_1"}, START)
        self.valid: int | None = None
        self.failures = self.deaths = 0
        self.done = False

    @rule(span=SPANS)
    def time_passes(self, span: timedelta) -> None:
        self.now += span

    @rule(worker=WORKERS)
    def claim(self, worker: str) -> None:
        try:
            self.item = claim_item(self.item, worker, self.now)
        except NotClaimed:
            assert self.item.state is not ItemState.PENDING or self.item.due_at > self.now
            return
        assert self.valid is None
        self.valid = self.item.claims

    @rule(age=st.integers(0, 2))
    def succeed(self, age: int) -> None:
        try:
            self.item = settle(self.item, self.item.claims - age)
        except NotClaimed:
            assert self.valid != self.item.claims - age
            return
        assert age == 0
        self.done, self.valid = True, None

    @rule(age=st.integers(0, 2))
    def fail(self, age: int) -> None:
        try:
            self.item = after_failure(self.item, self.item.claims - age, "boom", self.now)
        except NotClaimed:
            assert self.valid != self.item.claims - age
            return
        assert age == 0
        assert self.item.state is ItemState.FAILED or self.item.due_at > self.now
        self.failures, self.valid = self.failures + 1, None

    @precondition(lambda self: self.valid is not None)
    @rule(span=SPANS)
    def put_off(self, span: timedelta) -> None:
        self.item, self.valid = put_off(self.item, self.item.claims, self.now + span), None

    @rule()
    def the_worker_dies(self) -> None:
        if self.valid is not None:
            self.deaths += 1
        self.item, self.valid = recover(self.item, self.now), None

    @rule()
    def hung_ones_are_taken_back(self) -> None:
        before = self.item
        self.item = take_back(self.item, self.now)
        if self.item is not before:
            assert before.claimed_at is not None
            assert self.now - before.claimed_at > HUNG_AFTER
            self.failures, self.valid = self.failures + 1, None

    @invariant()
    def the_item_agrees_with_the_model(self) -> None:
        assert (self.item.state is ItemState.CLAIMED) == (self.valid is not None)
        assert (self.item.state is ItemState.DONE) == self.done
        given_up = self.failures >= MOST_ATTEMPTS or self.deaths >= MOST_RECOVERIES
        assert (self.item.state is ItemState.FAILED) == (given_up and not self.done)
        assert self.item.attempts == self.failures + self.done
        assert self.item.recoveries == self.deaths
        assert self.item.state not in SETTLED or self.item.claimed_by is None


MACHINE = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLeases = Leases.TestCase
TestRuns = Runs.TestCase
TestOutbox = Outbox.TestCase
for machine in (TestLeases, TestRuns, TestOutbox):
    machine.settings = MACHINE
