"""The run pipeline as transactions, on both databases; cases by their number in the reference."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from automation_city import City

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.operations import DirectOperations
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.completion import (
    Completion,
    CompletionConflict,
    NotStarted,
    Outcome,
    SessionMismatch,
    TooLate,
    parse,
)
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.domain.runs.prompt import completion_id, prompt_key, session_key
from lamplighter.domain.runs.target import NotSelected, Selected, Target, resolve, settle
from lamplighter.domain.runs.verdict import Fail, SessionSeen, SessionState, TimeOut, verdict
from lamplighter.domain.sessions.transcript import Text, Usage
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import configurations, outbox
from lamplighter.services.context import acting
from lamplighter.services.runs import command_ends, completing, enriching, executing, finalizing, review, transcripts
from lamplighter.services.runs.operations import COMPLETE_RUN
from lamplighter.store.engine.db import instant
from lamplighter.store.run_days import day_named
from lamplighter.store.sessions import SessionRow

WORKER = review.Worker("own_test", "here")
OTHER = review.Worker("own_other", "here")
AGENT = {"prompt": "Light the lamps."}


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT)
    return city.run_now("sweep").run


def claim(city: City, run: str, worker: review.Worker = WORKER) -> Item:
    items: list[Item] = city.run(outbox.claim_due, worker.owner, city.clock.now(), limit=1, run=run)
    return items[0]


def enriched(city: City, run: str) -> Run:
    row: Run = city.run(enriching.enrich, claim(city, run), WORKER, ctx=city.context)
    return row


def take(city: City, run: str, kind: str) -> Item:
    """Claim the run's items until the one of that kind comes; the others go back."""
    items = city.run(outbox.claim_due, WORKER.owner, city.clock.now(), limit=10, run=run)
    for item in items:
        if item.kind != kind:
            city.run(outbox.later, item, city.clock.now(), city.clock.now())
    found: Item = next(item for item in items if item.kind == kind)
    return found


def ready(city: City, run: str) -> Item:
    enriched(city, run)
    return take(city, run, "enqueue_execute")


def running(city: City, run: str, *, session: str | None = "ses_1") -> Run:
    target = resolve(executing.wish_of(action(city, run)), city.read(configurations.candidates))
    row: Run = city.run(executing.begin, ready(city, run), target, WORKER, ctx=city.context)
    if session is not None:
        start = executing.Began(
            SessionRow(session, run, None, run, "subprocess", "here", 7, city.clock.now()), isolation="none"
        )
        row = city.run(executing.began, run, start, city.context)
    return row


def action(city: City, run: str) -> AgentAction:
    found = review.snapshots_of(city.get(run)).action
    assert isinstance(found, AgentAction)
    return found


def a_completion(run: str, **changes: Any) -> Completion:
    said = {"run_id": run, "completion_id": completion_id(run), "outcome": "succeeded", "summary_markdown": "Lit."}
    return parse(said | changes)


def complete(city: City, completion: Completion, session: str | None = "ses_1") -> Any:
    told = city.run(completing.complete, completion, session=session, ctx=acting("agent", city.clock.now(), city.ids))
    return told.answer()


def to_tell(city: City) -> list[tuple[str, str | None]]:
    """The inbox items that people are still to be told of, with the run of each."""
    return [(item.kind.value, item.last_run) for item in city.run(lambda tx: tx.inbox.to_tell(limit=10))]


def items(city: City, run: str) -> list[tuple[str, str]]:
    rows = city.read(lambda tx: tx.db.rows("SELECT kind, state FROM outbox WHERE run_id = :run ", {"run": run}))
    return sorted((row["kind"], row["state"]) for row in rows)


def timeline(city: City, run: str) -> list[str]:
    return [one["type"] for one in city.shown(run)["events"]]


def trigger_status(city: City, run: str) -> str:
    event = city.get(run).trigger_event
    found: str = city.read(lambda tx: tx.trigger_events.get(event)).status
    return found


def everything(city: City) -> list[Any]:
    tables = ("runs", "run_events", "outbox", "trigger_events", "sessions", "artifacts")
    return [
        city.read(lambda tx, table=table: list(map(dict, tx.db.rows(f"SELECT * FROM {table}", {})))) for table in tables
    ]


def test_case_11_a_claim_for_enrichment_is_one_holders(city: City, run: str) -> None:
    item = claim(city, run)
    before = city.get(run).lease.version
    held = city.run(enriching.begin, item, WORKER, city.clock.now())
    assert (held.state, held.lease.owner, held.lease.version) == ("enriching", "own_test", before + 1)
    assert held.lease.expires_at == city.clock.now() + timedelta(minutes=5)
    city.run(outbox.later, item, city.clock.now(), city.clock.now())
    again = claim(city, run, OTHER)
    assert city.run(enriching.begin, again, OTHER, city.clock.now()) is None
    assert city.get(run).lease.owner == "own_test"
    assert items(city, run) == [("enqueue_enrich", "pending")], "it is tried again once the lease has ended"


def test_case_12_an_enriching_run_is_taken_up_without_telling_its_start_again(city: City, run: str) -> None:
    item = claim(city, run)
    city.run(enriching.begin, item, WORKER, city.clock.now())
    city.run(outbox.later, item, city.clock.now(), city.clock.now())
    city.advance(minutes=5, seconds=1)
    row = city.run(enriching.enrich, claim(city, run, OTHER), OTHER, ctx=city.context)
    assert row.state is RunState.READY
    events = city.shown(run)["events"]
    assert [(one["from"], one["to"]) for one in events if one["type"] == "status_transition"] == [
        ("queued", "enriching"), ("enriching", "ready"),
    ]  # fmt: skip


@pytest.mark.parametrize("gone", [False, True])
def test_case_13_a_trigger_that_says_nothing_fails_its_run(city: City, run: str, *, gone: bool) -> None:
    event = city.get(run).trigger_event
    if gone:
        city.run(lambda tx: tx.db.execute("DELETE FROM trigger_events WHERE id = :id", {"id": event}))
    else:
        said = json.dumps({"provider": "github", "context": {"title": "  "}})
        city.run(
            lambda tx: tx.db.execute(
                "UPDATE trigger_events SET payload = :said WHERE id = :id", {"id": event, "said": said}
            )
        )
    row = enriched(city, run)
    assert row.state is RunState.FAILED
    assert (row.reason, row.stage) == ("missing_context" if gone else "enrichment_failed", "enrichment")
    assert items(city, run) == [("enqueue_enrich", "done")]
    assert to_tell(city) == [("failed", run)]


def test_case_14_enrichment_is_one_transaction(city: City, run: str) -> None:
    row = enriched(city, run)
    assert (row.state, row.lease.owner) == (RunState.READY, None)
    assert city.read(enriching.payload_of, run)["summary"]["title"] == "Manual run of sweep"
    assert timeline(city, run) == ["run_created", "status_transition", "enrichment_saved", "status_transition"]
    assert items(city, run) == [
        ("enqueue_enrich", "done"), ("enqueue_execute", "pending"), ("write_artifact", "pending"),
    ]  # fmt: skip


def test_case_14_a_stage_that_lost_its_lease_writes_nothing(city: City, run: str) -> None:
    item = claim(city, run)
    held = city.run(enriching.begin, item, WORKER, city.clock.now())
    city.run(lambda tx: tx.runs.void_leases(WORKER.owner, now=city.clock.now()))
    city.run(outbox.later, item, city.clock.now(), city.clock.now())
    taken = claim(city, run, OTHER)
    city.run(enriching.begin, taken, OTHER, city.clock.now())
    before = everything(city)
    with pytest.raises(Exception, match=r"changed by another|no longer valid|not this worker's"):
        city.run(enriching.finish, item, held, {"a": 1}, WORKER, ctx=city.context)
    assert everything(city) == before


def configure(city: City, *names: str) -> None:
    known = tuple(Configuration(name=name, description=f"Work on {name}.") for name in names)
    city.run(configurations.sync, known, city.clock.now())


def targets(city: City, run: str) -> list[Any]:
    events = city.shown(run)["events"]
    return [one["data"] for one in events if one["type"] == "target_resolved"]


def test_case_15_a_fixed_configuration_needs_no_selector(city: City) -> None:
    configure(city, "web", "api")
    city.add("fixed", agent=AGENT | {"configuration": "web"})
    run = city.run_now("fixed").run
    row = running(city, run, session=None)
    assert (row.state, row.configuration) == (RunState.RUNNING, "web")
    assert targets(city, run) == [{"type": "default", "reason": "selection_disabled", "configuration": "web"}]


def decided(city: City, answer: Selected | NotSelected, **keys: Any) -> tuple[Run, list[Any]]:
    configure(city, "web", "api")
    wanted = {"strategy": "agent_decide", "configurations": ["web"]} | keys
    city.add("decide", agent=AGENT | wanted)
    run = city.run_now("decide").run
    wish, known = executing.wish_of(action(city, run)), city.read(configurations.candidates)
    found = resolve(wish, known)
    target = found if isinstance(found, Target) else settle(wish, known, answer)
    city.run(executing.begin, ready(city, run), target, WORKER, ctx=city.context)
    return city.get(run), targets(city, run)


def test_case_16_an_empty_allowlist_fails_the_run_without_a_session(city: City) -> None:
    row: Run = city_run_with_empty_allowlist(city)
    assert (row.state, row.reason) == (RunState.FAILED, "configuration_selection_failed")
    assert row.session_id is None
    assert ("stop_session", "pending") not in items(city, row.id)


def city_run_with_empty_allowlist(city: City) -> Run:
    """The decoder refuses such a definition; one that was stored before it did is met here."""
    city.add("decide", agent=AGENT | {"strategy": "agent_decide", "configurations": ["web"]})
    run = city.run_now("decide").run
    item = ready(city, run)
    target = resolve(executing.Wish(decide=True), {})
    assert isinstance(target, Target)
    city.run(executing.begin, item, target, WORKER, ctx=city.context)
    return city.get(run)


def test_case_17_a_choice_outside_the_allowlist_falls_back(city: City) -> None:
    row, told = decided(city, Selected("api", "because"), fallback="web")
    assert (row.state, row.configuration) == (RunState.RUNNING, "web")
    assert told[0]["type"] == "fallback"
    assert "selected_id_not_in_eligible_set" in told[0]["reason"]


def test_case_18_without_an_answer_and_a_fallback_the_run_fails(city: City) -> None:
    row, told = decided(city, NotSelected("llm_call_failed: HTTP 500"))
    assert (row.state, row.reason) == (RunState.FAILED, "configuration_selection_failed")
    assert told[0]["type"] == "failed"
    assert to_tell(city) == [("failed", row.id)]


def test_case_19_running_comes_before_the_session_and_both_keys_are_on_record(city: City, run: str) -> None:
    row = running(city, run, session=None)
    assert (row.state, row.session_id, row.prompt_sent_at) == (RunState.RUNNING, None, None)
    start = executing.Began(SessionRow("ses_1", run, None, run, "subprocess", "here", 7, city.clock.now()), "none")
    city.run(executing.began, run, start, city.context)
    events = city.shown(run)["events"]
    assert [one["type"] for one in events][-3:] == ["status_transition", "session_created", "prompt_sent"]
    assert [one["data"]["key"] for one in events[-2:]] == [session_key(run), prompt_key(run)]


def test_case_20_a_session_that_is_on_record_is_told_once(city: City, run: str) -> None:
    running(city, run)
    start = executing.Began(SessionRow("ses_1", run, None, run, "subprocess", "here", 7, city.clock.now()), "none")
    city.run(executing.began, run, start, city.context)
    assert timeline(city, run).count("session_created") == 1
    assert timeline(city, run).count("prompt_sent") == 1
    assert len(city.read(lambda tx: tx.sessions.of_run(run))) == 1


def test_case_21_a_completion_settles_everything_at_once(city: City, run: str) -> None:
    running(city, run)
    done = complete(city, a_completion(run))
    assert (done.state, done.replayed) == (RunState.SUCCEEDED, False)
    row = city.get(run)
    assert (row.state, row.reason, row.summary) == (RunState.SUCCEEDED, "succeeded", "Lit.")
    assert trigger_status(city, run) == "completed"
    bead = city.read(lambda tx: tx.beads.get(row.bead))
    assert (bead.status.value, bead.labels) == ("closed", ("agent", "automation-run:sweep"))
    (session,) = city.read(lambda tx: tx.sessions.of_run(run))
    assert (session.outcome, session.summary) == ("succeeded", "Lit.")
    pending = [kind for kind, state in items(city, run) if state == "pending"]
    assert sorted(pending) == ["stop_session", "write_artifact", "write_artifact"]
    assert to_tell(city) == [], "a success is told only where its automation asks for it"


class LateStore:
    """A database that is away for a while before it takes the transaction."""

    def __init__(self, city: City, away: timedelta) -> None:
        self.city, self.away = city, away

    def transact(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.city.clock.advance(self.away)
        return self.city.store.transact(fn, *args, **kwargs)


def test_case_21_a_program_that_waited_to_report_has_its_last_words_all_the_same(
    city: City, run: str, tmp_path: Path
) -> None:
    running(city, run)
    opened = OpenCity(Settings(tmp_path, None, "tester", None, {}), CityPaths(tmp_path), city.clock, city.ids)
    opened.__dict__["store"] = LateStore(city, timedelta(seconds=45))
    DirectOperations(opened).do(COMPLETE_RUN, a_completion(run))
    due = "SELECT due_at FROM outbox WHERE run_id = :run AND kind = 'stop_session'"
    row = city.read(lambda tx: tx.db.row(due, {"run": run}))
    assert instant(row["due_at"]) == city.clock.now() + review.LAST_WORDS


@pytest.mark.parametrize(
    ("outcome", "state", "event"), [("failed", "failed", "failed"), ("needs_human", "needs_human", "failed")]
)
def test_case_21_an_agent_may_report_a_failure_or_ask_for_a_person(
    city: City, run: str, outcome: str, state: str, event: str
) -> None:
    running(city, run)
    assert complete(city, a_completion(run, outcome=outcome)).state == state
    assert trigger_status(city, run) == event


def test_case_22_the_same_words_in_another_order_add_nothing(city: City, run: str) -> None:
    running(city, run)
    refs = [{"kind": "pr", "url": "u"}]
    complete(city, a_completion(run, side_effect_refs=refs))
    before = everything(city)
    again = a_completion(run, side_effect_refs=[dict(reversed(refs[0].items()))])
    assert complete(city, again).replayed
    assert everything(city) == before


@pytest.mark.parametrize("changes", [{"summary_markdown": "Else."}, {"completion_id": "another"}])
def test_case_23_other_words_for_a_completed_run_are_refused(city: City, run: str, changes: dict[str, str]) -> None:
    running(city, run)
    complete(city, a_completion(run))
    before = everything(city)
    with pytest.raises(CompletionConflict):
        complete(city, a_completion(run, **changes))
    assert everything(city) == before


def test_case_24_a_completion_from_another_session_is_refused(city: City, run: str) -> None:
    running(city, run)
    before = everything(city)
    with pytest.raises(SessionMismatch):
        complete(city, a_completion(run), session="ses_2")
    assert everything(city) == before


def test_a_completion_of_a_run_that_has_not_begun_or_is_not_there_is_refused(city: City, run: str) -> None:
    with pytest.raises(NotStarted):
        complete(city, a_completion(run))
    with pytest.raises(RunUnknown):
        complete(city, a_completion("run_" + "0" * 26))


def test_a_late_completion_is_recorded_and_refused(city: City, run: str) -> None:
    running(city, run)
    city.run(finalizing.settle, run, TimeOut(), ctx=city.context)
    with pytest.raises(TooLate, match="timed_out"):
        complete(city, a_completion(run))
    row = city.get(run)
    assert (row.state, row.completion_id) == (RunState.TIMED_OUT, None)
    (late,) = [one for one in city.shown(run)["events"] if one["type"] == "late_completion"]
    assert late["data"]["summary_markdown"] == "Lit."


def test_of_many_late_completions_the_first_is_recorded(city: City, run: str) -> None:
    running(city, run)
    city.run(finalizing.settle, run, TimeOut(), ctx=city.context)
    for word in ("first", "second", "third"):
        with pytest.raises(TooLate):
            complete(city, a_completion(run, summary_markdown=word))
    late = [one for one in city.shown(run)["events"] if one["type"] == "late_completion"]
    assert [one["data"]["summary_markdown"] for one in late] == ["first"]


def judged(city: City, run: str, session: SessionSeen | None, rules: Runs | None = None) -> Run:
    """What the finalizer does with one candidate."""
    row = city.get(run)
    policy = finalizing.policy_of(review.snapshots_of(row), rules or Runs())
    found = verdict(row, session, city.clock.now(), policy)
    city.run(finalizing.settle, run, found, ctx=acting("finalizer", city.clock.now(), city.ids))
    return city.get(run)


def candidates(city: City, rules: Runs | None = None) -> list[str]:
    return [row.id for row in city.read(finalizing.candidates, city.clock.now(), rules or Runs())]


LIVING = SessionSeen(SessionState.RUNNING, alive=True)


def test_case_25_past_its_deadline_a_run_times_out_and_its_session_is_stopped(city: City, run: str) -> None:
    running(city, run)
    assert candidates(city) == []
    city.advance(hours=2, seconds=1)
    assert candidates(city) == [run]
    row = judged(city, run, LIVING)
    assert (row.state, row.reason, row.stage) == (RunState.TIMED_OUT, "deadline_exceeded", "finalizer")
    assert trigger_status(city, run) == "failed"
    kinds = [kind for kind, state in items(city, run) if state == "pending"]
    assert kinds.count("stop_session") == 1
    assert to_tell(city) == [("timed_out", run)]


def test_case_26_past_its_deadline_without_a_session_it_has_failed(city: City, run: str) -> None:
    running(city, run, session=None)
    city.advance(hours=2, seconds=1)
    row = judged(city, run, None)
    assert (row.state, row.reason) == (RunState.FAILED, "missing_session")


def test_case_27_a_session_that_cannot_be_asked_about_changes_nothing(city: City, run: str) -> None:
    running(city, run)
    city.advance(minutes=31)
    assert candidates(city) == [run]
    assert judged(city, run, None).state is RunState.RUNNING
    assert candidates(city) == [run], "it is looked at again"


@pytest.mark.parametrize(("alive", "state"), [(False, "failed"), (None, "running"), (True, "running")])
def test_case_28_only_a_program_known_to_be_dead_fails_its_run(
    city: City, run: str, *, alive: bool | None, state: str
) -> None:
    running(city, run)
    city.advance(minutes=31)
    row = judged(city, run, SessionSeen(SessionState.RUNNING, alive=alive))
    assert row.state == state
    assert (row.reason == "sandbox_dead") == (alive is False)


def test_case_29_an_ended_session_of_a_completed_run_changes_nothing(city: City, run: str) -> None:
    running(city, run)
    complete(city, a_completion(run))
    before = everything(city)
    assert judged(city, run, SessionSeen(SessionState.ENDED)).state is RunState.SUCCEEDED
    assert everything(city) == before


def test_an_ended_session_without_completion_fails_the_run(city: City, run: str) -> None:
    running(city, run)
    row = judged(city, run, SessionSeen(SessionState.ENDED, exit_status=0))
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion")
    assert "exit code 0" in row.error


def test_a_silence_is_told_once(city: City, run: str) -> None:
    running(city, run)
    city.advance(minutes=31)
    for _ in range(3):
        judged(city, run, LIVING)
    assert timeline(city, run).count("run_quiet") == 1
    assert city.get(run).state is RunState.RUNNING


def test_keeping_a_lease_is_no_sign_of_life(city: City, run: str) -> None:
    held = {run: running(city, run).lease.version}
    for _ in range(11):
        city.advance(minutes=3)
        assert city.run(review.renew, held, WORKER.owner, city.clock.now()) == set()
    assert candidates(city) == [run]
    judged(city, run, LIVING)
    assert "run_quiet" in timeline(city, run)


@pytest.mark.parametrize(
    ("own", "rules", "ends"),
    [
        ({}, Runs(), False),
        ({}, Runs(idle_timeout=timedelta(minutes=10)), True),
        ({}, Runs(idle_timeout=timedelta(0)), False),
        ({"idle_timeout": "10m"}, Runs(), True),
        ({"idle_timeout": "0s"}, Runs(idle_timeout=timedelta(minutes=10)), False),
        ({"idle_timeout": "20m"}, Runs(idle_timeout=timedelta(minutes=10)), False),
    ],
)
def test_silence_ends_a_run_as_the_automation_or_else_the_city_says(
    city: City, own: dict[str, str], rules: Runs, *, ends: bool
) -> None:
    city.add("sweep", agent=AGENT, **own)
    run = city.run_now("sweep").run
    running(city, run)
    spoke = city.clock.now()
    city.advance(minutes=11)
    row = judged(city, run, replace(LIVING, last_activity=spoke), rules)
    assert row.state is (RunState.FAILED if ends else RunState.RUNNING)
    if ends:
        assert (row.reason, row.error) == ("idle", "Its session said nothing for 10m.")
        assert ("stop_session", "pending") in items(city, run)
        assert row.stage is Stage.FINALIZER


def test_the_periodic_pass_looks_at_silent_runs_as_early_as_the_city_ends_them(city: City, run: str) -> None:
    running(city, run)
    city.advance(minutes=11)
    assert candidates(city) == []
    assert candidates(city, Runs(idle_timeout=timedelta(0))) == []
    assert candidates(city, Runs(idle_timeout=timedelta(minutes=10))) == [run]


def test_usage_is_added_up_once_and_a_budget_ends_the_run(city: City) -> None:
    city.add("dear", agent=AGENT, budget={"cost": 0.5})
    run = city.run_now("dear").run
    running(city, run)
    batch = transcripts.Batch(run, "ses_1", 0, 10, [Text("hello"), Usage(100, 20, cost_usd=0.4)], "prog-1")
    assert city.run(transcripts.record, batch, city.clock.now()).cost == pytest.approx(0.4)
    assert city.run(transcripts.record, batch, city.clock.now()).cost == pytest.approx(0.4), "read twice, told once"
    more = transcripts.Batch(run, "ses_1", 10, 20, [Usage(10, 2, cost_usd=0.2)])
    spent = city.run(transcripts.record, more, city.clock.now())
    assert (spent.tokens, spent.cost) == (132, pytest.approx(0.6))
    row = city.get(run)
    assert (row.tokens, row.cost) == (132, pytest.approx(0.6))
    policy = finalizing.policy_of(review.snapshots_of(row), Runs())
    found = verdict(row, LIVING, city.clock.now(), policy, spent=spent)
    assert isinstance(found, Fail)
    assert (found.reason, found.stop_session) == ("budget_cost", True)


def test_usage_counts_for_the_day_that_its_batch_names_and_without_one_for_none(city: City, run: str) -> None:
    running(city, run)
    today = city.clock.now()
    for place, day in enumerate(("", day_named(today), "")):
        batch = transcripts.Batch(run, "ses_1", place, place + 1, [Usage(100, 20, cost_usd=0.4)], day=day)
        city.run(transcripts.record, batch, today)
    of_day = city.read(lambda tx: tx.run_days.spent(today, today))
    assert (of_day.tokens, of_day.cost) == (120, pytest.approx(0.4))
    assert city.read(lambda tx: tx.db.row("SELECT count(*) AS n FROM run_days", {}))["n"] == 1
    assert city.get(run).tokens == 360


def test_a_command_has_its_own_limit_or_what_was_left_until_the_deadline_when_it_started(city: City) -> None:
    city.add("slow", deadline="10m")
    row = city.start(city.run_now("slow").run)
    limit, started = timedelta(minutes=20), city.clock.now()
    until = {
        None: limit,
        started + timedelta(minutes=10): timedelta(minutes=10),
        started + timedelta(minutes=30): limit,
        started - timedelta(minutes=1): timedelta(0),
    }
    assert {at: command_ends.until_deadline(replace(row, deadline_at=at), limit) for at in until} == until
    assert command_ends.until_deadline(replace(row, started_at=None), limit) == limit


def test_a_transcript_is_bounded_and_goes_on_counting(city: City, run: str) -> None:
    running(city, run)
    events = [Text("x" * 10_000)] * (transcripts.MOST_EVENTS + 50) + [Usage(1, 1)]
    city.run(transcripts.record, transcripts.Batch(run, "ses_1", 0, 1, events), city.clock.now())
    kept = city.read(transcripts.of_run, run)
    assert len(kept) == transcripts.MOST_EVENTS + 2
    assert [one.kind for one in kept[-2:]] == ["cut", "usage"]
    assert len(kept[0].body["text"]) == transcripts.LONGEST_TEXT


def test_a_retry_is_a_new_run_linked_to_the_old_one(city: City, run: str) -> None:
    running(city, run)
    complete(city, a_completion(run, outcome="failed"))
    again = city.run(review.retry, run, ctx=city.context)
    assert (again.state, again.retries, again.attempt) == (RunState.QUEUED, run, 1)
    assert (again.session_id, again.node, again.completion_id) == (None, None, None)
    assert items(city, again.id) == [("enqueue_enrich", "pending")]


def test_cancelling_stops_the_session(city: City, run: str) -> None:
    running(city, run)
    city.run(review.cancel, run, ctx=city.context)
    assert ("stop_session", "pending") in items(city, run)
    with pytest.raises(TooLate):
        complete(city, a_completion(run))


@pytest.mark.parametrize("scheduled", [True, False])
def test_case_19_of_schedules_a_scheduled_agent_run_has_half_an_hour(city: City, *, scheduled: bool) -> None:
    gate: dict[str, Any] = {"gate": "cron", "schedule": "* * * * *"} if scheduled else {"gate": "manual"}
    city.add("timed", agent=AGENT, **gate)
    if scheduled:
        city.advance(minutes=1)
        (run,) = city.tick().fired
    else:
        run = city.run_now("timed").run
    running(city, run)
    city.advance(minutes=30, seconds=1)
    row = judged(city, run, LIVING)
    assert row.state is (RunState.TIMED_OUT if scheduled else RunState.RUNNING)


def test_case_17_of_schedules_run_now_beside_a_run_is_a_conflict(city: City, run: str) -> None:
    running(city, run)
    before = everything(city)
    with pytest.raises(Exception, match="already running"):
        city.run_now("sweep")
    assert everything(city) == before


@pytest.mark.parametrize("name", ["web", "api"])
def test_configurations_follow_their_file_and_spare_those_of_people(city: City, name: str) -> None:
    from lamplighter.store.configurations import ConfigurationRow

    city.run(lambda tx: tx.configurations.put(ConfigurationRow("mine", "api", {"model": "m"}), city.clock.now()))
    configure(city, "web", "api")
    configure(city, name)
    assert sorted(city.read(configurations.known)) == sorted([name, "mine"])
    assert city.read(configurations.known)["mine"].model == "m"


def test_of_many_completions_at_once_one_is_accepted(
    city: City, run: str, ask_at_once: Callable[..., list[Any]]
) -> None:
    running(city, run)
    said = [a_completion(run, completion_id=f"c{number}", outcome=Outcome.SUCCEEDED) for number in range(4)]
    answers = ask_at_once(
        [lambda tx, one=one: completing.complete(tx, one, session=None, ctx=city.context) for one in said]
    )
    accepted = [one for one in answers if type(one.judgement).__name__ == "Accept"]
    assert len(accepted) == 1
    assert timeline(city, run).count("completion") == 1
