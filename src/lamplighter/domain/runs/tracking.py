"""Tracking beads: the labels they get from their runs, and which runs give a label.

The labels are not stored; they follow from the run's automation, its action and its state.
"""

from dataclasses import dataclass

from lamplighter.domain.runs.model import RunState

OF_AUTOMATION = "automation-run:"
KINDS = {"exec": "exec", "formula": "wisp", "agent": "agent"}
"""The label of a tracking bead for each action of its run."""
BADLY = {RunState.FAILED: "failed", RunState.TIMED_OUT: "failed", RunState.CANCELED: "canceled"}
"""The suffix of a second such label for runs that ended badly."""


def labels(automation: str, action: str, state: RunState) -> tuple[str, ...]:
    """The labels of a tracking bead, sorted."""
    kind = KINDS[action]
    found = [f"{OF_AUTOMATION}{automation}", kind]
    if state in BADLY:
        found.append(f"{kind}-{BADLY[state]}")
    return tuple(sorted(found))


@dataclass(frozen=True)
class Labelled:
    """The runs whose tracking beads have a label: those of an automation or an action; if given, only in `states`."""

    automation: str | None = None
    action: str | None = None
    states: frozenset[RunState] = frozenset()


def labelled(label: str) -> Labelled | None:
    """The runs that give a label; None for a label that no run gives."""
    if label.startswith(OF_AUTOMATION):
        return Labelled(automation=label.removeprefix(OF_AUTOMATION))
    for action, kind in KINDS.items():
        if label == kind:
            return Labelled(action=action)
        states = frozenset(state for state, how in BADLY.items() if label == f"{kind}-{how}")
        if states:
            return Labelled(action=action, states=states)
    return None
