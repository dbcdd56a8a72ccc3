from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lamplighter.domain.runs.completion import (
    Accept,
    Completion,
    CompletionConflict,
    CompletionInvalid,
    Late,
    NotStarted,
    Outcome,
    Recorded,
    Refuse,
    Replay,
    SessionMismatch,
    TooLate,
    error_of,
    judge,
    parse,
    run_id,
)
from lamplighter.domain.runs.model import Run, RunState

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
RUN = "run_" + "0123456789abcdefghjkmnpqrs"
ARGS: dict[str, Any] = {
    "run_id": RUN,
    "completion_id": f"run:{RUN}:completion:v1",
    "outcome": "succeeded",
    "summary_markdown": "Lit **all** lamps.",
    "citations": [{"file": "lamp.py", "line": 3}, "https://example.test"],
}


def a_run(state: RunState = RunState.RUNNING, **given: Any) -> Run:
    return Run(RUN, "sweep", state, NOW, session_id="ses_1", **given)


def recorded(completion: Completion) -> Recorded:
    return Recorded(completion.completion_id, completion.content)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_running_run_is_completed_with_its_outcome(outcome: Outcome) -> None:
    said = parse(ARGS | {"outcome": outcome.value})
    assert judge(a_run(), None, said) == Accept(RunState(outcome.value))
    assert error_of(judge(a_run(), None, said)) is None


def test_the_same_completion_with_keys_in_another_order_is_a_replay() -> None:
    """Case 22."""
    first = parse(ARGS)
    shuffled = {key: ARGS[key] for key in reversed(ARGS)} | {
        "citations": [{"line": 3.0, "file": "lamp.py"}, ARGS["citations"][1]]
    }
    assert judge(a_run(RunState.SUCCEEDED), recorded(first), parse(shuffled)) == Replay()


def test_a_replay_is_still_answered_after_a_person_resolved_the_run() -> None:
    first = parse(ARGS | {"outcome": "needs_human"})
    assert judge(a_run(RunState.FAILED, reason="manual_resolution:no"), recorded(first), first) == Replay()


@pytest.mark.parametrize(
    "change",
    [
        {"summary_markdown": "Other."},
        {"outcome": "failed"},
        {"citations": []},
        {"diff_ref": "x"},
        {"completion_id": "other"},
    ],
)
def test_another_completion_of_a_completed_run_is_refused(change: dict[str, Any]) -> None:
    """Case 23."""
    answer = judge(a_run(RunState.SUCCEEDED), recorded(parse(ARGS)), parse(ARGS | change))
    assert isinstance(error_of(answer), CompletionConflict)


def test_a_completion_from_another_session_is_refused_whatever_else_it_says() -> None:
    """Case 24."""
    said = parse(ARGS)
    for run, known in [(a_run(), None), (a_run(RunState.SUCCEEDED), recorded(said)), (a_run(RunState.TIMED_OUT), None)]:
        answer = judge(run, known, said, session="ses_2")
        assert isinstance(answer, Refuse)
        assert isinstance(answer.error, SessionMismatch)
    assert judge(a_run(), None, said, session="ses_1") == Accept(RunState.SUCCEEDED)
    assert judge(replace(a_run(), session_id=None), None, said, session="ses_2") == Accept(RunState.SUCCEEDED)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (RunState.TIMED_OUT, "deadline_exceeded"),
        (RunState.FAILED, "no_completion"),
        (RunState.CANCELED, "canceled"),
        (RunState.SKIPPED, ""),
        (RunState.SUCCEEDED, "manual_resolution:fine"),
    ],
)
def test_a_late_completion_is_recorded_and_refused(state: RunState, reason: str) -> None:
    answer = judge(a_run(state, reason=reason), None, parse(ARGS))
    assert isinstance(answer, Late)
    assert isinstance(answer.error, TooLate)
    assert str(state) in answer.error.message


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.ENRICHING, RunState.READY])
def test_a_run_that_has_not_started_cannot_be_completed(state: RunState) -> None:
    assert isinstance(error_of(judge(a_run(state), None, parse(ARGS))), NotStarted)


def test_programs_may_quote_ids_write_camel_case_and_add_arguments_of_their_own() -> None:
    given = {
        "runId": f'"{RUN}"',
        "completionId": f" `run:{RUN}:completion:v1` ",
        "outcome": " Succeeded ",
        "summaryMarkdown": "Lit **all** lamps.\n",
        "citations": ARGS["citations"],
        "security_risk": "LOW",
        "summary": "what the program says of the call",
    }
    assert parse(given) == parse(ARGS)
    assert run_id(f"'{RUN}'") == RUN


def test_a_lone_citation_stands_for_a_list() -> None:
    assert parse(ARGS | {"citations": "a.py"}).citations == ("a.py",)
    assert parse(ARGS | {"citations": ""}).citations == ()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"run_id": None}, "run_id"),
        ({"run_id": "run_1"}, "run_id"),
        ({"run_id": RUN + "x"}, "run_id"),
        ({"run_id": RUN.replace("0", "u")}, "run_id"),
        ({"run_id": 7}, "run_id"),
        ({"run_id": RUN + "\n" + RUN}, "run_id"),
        ({"completion_id": ""}, "completion_id"),
        ({"completion_id": "two words"}, "completion_id"),
        ({"completion_id": "x" * 201}, "completion_id"),
        ({"outcome": "done"}, "outcome"),
        ({"outcome": None}, "outcome"),
        ({"outcome": ["succeeded"]}, "outcome"),
        ({"summary_markdown": 7}, "summary_markdown"),
        ({"summary_markdown": "nul\0"}, "summary_markdown"),
        ({"summary_markdown": "half \ud83d"}, "summary_markdown"),
        ({"summary_markdown": "x" * 100_001}, "summary_markdown"),
        ({"citations": 7}, "citations"),
        ({"citations": [None]}, "citations"),
        ({"citations": ["x"] * 201}, "citations"),
        ({"citations": ["x" * 2001]}, "citations"),
        ({"citations": [{"a": "nul\0"}]}, "citations"),
        ({"citations": [{"a": float("nan")}]}, "citations"),
        ({"diff_ref": ["x"]}, "diff_ref"),
        ({"test_report_ref": "x" * 2001}, "test_report_ref"),
        ({"side_effect_refs": [1]}, "side_effect_refs"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(CompletionInvalid) as refused:
        parse(ARGS | change)
    assert len(refused.value.problems) == 1
    assert named in refused.value.message


def test_a_backslash_is_a_character_like_any_other() -> None:
    assert parse(ARGS | {"citations": ["C:\\u0000"]}).citations == ("C:\\u0000",)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(CompletionInvalid) as refused:
        parse({"citations": 1})
    assert [problem.split("`")[1] for problem in refused.value.problems] == [
        "run_id",
        "completion_id",
        "outcome",
        "citations",
    ]


def test_what_is_not_a_run_id_is_none() -> None:
    for text in ("", "run_", RUN[:-1], f"ses_{RUN[4:]}"):
        assert run_id(text) is None
