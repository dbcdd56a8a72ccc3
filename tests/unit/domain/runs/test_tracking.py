"""The labels of tracking beads, and the way back from a label to runs."""

import pytest

from lamplighter.domain.runs import tracking
from lamplighter.domain.runs.model import RunState


@pytest.mark.parametrize(
    ("action", "state", "wanted"),
    [
        ("exec", RunState.RUNNING, ("automation-run:tidy", "exec")),
        ("exec", RunState.SUCCEEDED, ("automation-run:tidy", "exec")),
        ("exec", RunState.FAILED, ("automation-run:tidy", "exec", "exec-failed")),
        ("agent", RunState.TIMED_OUT, ("agent", "agent-failed", "automation-run:tidy")),
        ("formula", RunState.CANCELED, ("automation-run:tidy", "wisp", "wisp-canceled")),
        ("agent", RunState.NEEDS_HUMAN, ("agent", "automation-run:tidy")),
    ],
)
def test_what_a_run_says(action: str, state: RunState, wanted: tuple[str, ...]) -> None:
    assert tracking.labels("tidy", action, state) == wanted


def test_the_runs_behind_a_label_are_those_that_give_it() -> None:
    runs = [(name, action, state) for name in ("a", "a:rig:b") for action in tracking.KINDS for state in RunState]
    given = {label for run in runs for label in tracking.labels(*run)}
    assert len(given) == 2 + 3 * 3
    for label in given:
        found = tracking.labelled(label)
        assert found is not None
        chosen = [
            (name, action, state) for name, action, state in runs
            if found.automation in {None, name} and found.action in {None, action}
            and (not found.states or state in found.states)
        ]  # fmt: skip
        assert chosen == [run for run in runs if label in tracking.labels(*run)], label
    assert tracking.labelled("pool:crew") is None
    assert tracking.labelled("exec-") is None
