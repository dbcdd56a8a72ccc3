from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lamplighter.domain.runs.execution import Progress, Step, next_step
from lamplighter.domain.runs.model import Run, RunState

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
READY = Run("run_1", "sweep", RunState.READY, NOW)
RESOLVED = Progress(target_resolved=True)


def test_a_run_is_running_before_its_session_is_made() -> None:
    """Case 19."""
    assert next_step(READY, Progress()) is Step.RESOLVE_TARGET
    assert next_step(READY, RESOLVED) is Step.START_RUNNING
    assert next_step(replace(READY, state=RunState.RUNNING), RESOLVED) is Step.CREATE_SESSION


def test_a_retry_makes_no_second_session_and_sends_no_second_prompt() -> None:
    """Case 20."""
    started = replace(READY, state=RunState.RUNNING, session_id="ses_1")
    assert next_step(started, RESOLVED) is Step.SEND_PROMPT
    assert next_step(started, replace(RESOLVED, prompt_sent_at=NOW)) is Step.WATCH


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.READY, RunState.RUNNING}))
def test_what_is_not_ready_or_has_ended_is_not_started(state: RunState) -> None:
    assert next_step(replace(READY, state=state), RESOLVED) is Step.NOTHING
