"""Completion against a small model: a run has at most one completion, and nothing changes it."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lamplighter.domain.runs.completion import (
    Accept,
    CompletionInvalid,
    Late,
    Outcome,
    Recorded,
    Refuse,
    Replay,
    judge,
    parse,
)
from lamplighter.domain.runs.lease import Lease, claim
from lamplighter.domain.runs.model import ACTIVE, By, Mover, Run, RunState, may_move, move

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
RUN = "run_" + "0" * 26
CONTENTS: list[dict[str, Any]] = [
    {"outcome": outcome.value, "summary_markdown": summary, "citations": [{"file": "a", "line": 1}]}
    for outcome in Outcome
    for summary in ("", "done")
]
AWAY = {RunState.TIMED_OUT: Mover.FINALIZER, RunState.CANCELED: Mover.PERSON, RunState.FAILED: Mover.FINALIZER}


class CompletionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.run = Run(RUN, "sweep", RunState.READY, NOW, lease=claim(Lease(), "w", NOW), session_id="ses_1")
        self.recorded: Recorded | None = None
        self.said: tuple[str, int] | None = None  # the model: what was accepted, once
        self.late = 0

    @rule()
    def start(self) -> None:
        if may_move(self.run.state, RunState.RUNNING, Mover.WORKER):
            self.run = move(self.run, RunState.RUNNING, By(Mover.WORKER, "w", self.run.lease.version), NOW).run

    @rule(to=st.sampled_from(sorted(AWAY)))
    def ends_otherwise(self, to: RunState) -> None:
        if may_move(self.run.state, to, AWAY[to]) and self.run.state in ACTIVE:
            self.run = move(self.run, to, By(AWAY[to], "x"), NOW, reason="no_completion").run

    @rule(to=st.sampled_from([RunState.SUCCEEDED, RunState.FAILED]))
    def a_person_resolves(self, to: RunState) -> None:
        if self.run.ended and may_move(self.run.state, to, Mover.PERSON):
            self.run = move(self.run, to, By(Mover.PERSON, "ada"), NOW).run

    @rule(
        name=st.sampled_from(["c1", "c2"]),
        content=st.integers(0, len(CONTENTS) - 1),
        session=st.sampled_from([None, "ses_1", "ses_2"]),
        order=st.integers(0, 100),
    )
    def complete(self, name: str, content: int, session: str | None, order: int) -> None:
        pairs = list({"run_id": RUN, "completion_id": name, **CONTENTS[content]}.items())
        random.Random(order).shuffle(pairs)
        completion = parse(dict(pairs))
        before = self.run
        answer = judge(before, self.recorded, completion, session=session)
        match answer:
            case Accept(to):
                assert session != "ses_2"
                assert self.said is None
                assert before.state is RunState.RUNNING
                moved = move(before, to, By(Mover.COMPLETION, "ses_1"), NOW, reason=to.value)
                self.run = replace(moved.run, completion_id=name)
                self.recorded = Recorded(name, completion.content)
                self.said = (name, content)
            case Replay():
                assert session != "ses_2"
                assert self.said == (name, content)
            case Late():
                assert session != "ses_2"
                assert self.said is None
                assert before.ended
                self.late += 1
            case Refuse():
                mismatch = session == "ses_2"
                other = self.said is not None and self.said != (name, content)
                assert mismatch or other or before.state in ACTIVE - {RunState.RUNNING}

    @rule(
        rubbish=st.dictionaries(
            st.sampled_from(["run_id", "completion_id", "outcome", "citations"]),
            st.none() | st.text() | st.integers() | st.floats() | st.lists(st.text()),
        )
    )
    def rubbish_changes_nothing(self, rubbish: dict[str, Any]) -> None:
        try:
            parse(rubbish)
        except CompletionInvalid:
            return
        raise AssertionError(rubbish)

    @invariant()
    def a_completed_run_has_ended_and_keeps_its_completion(self) -> None:
        assert (self.said is None) == (self.recorded is None) == (self.run.completion_id is None)
        if self.said is not None:
            assert self.run.ended
            assert self.run.completion_id == self.said[0]


TestCompletion = CompletionMachine.TestCase
