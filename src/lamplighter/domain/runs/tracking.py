"""Tracking beads: the labels that their runs give them, and which runs give a label.

They are read off the run and never kept: its automation, its action and how it ended say it all.
"""

from dataclasses import dataclass

from lamplighter.domain.runs.model import RunState

OF_AUTOMATION = "automation-run:"
KINDS = {"exec": "exec", "formula": "wisp", "agent": "agent"}
"""What a tracking bead is called by its run's action."""
BADLY = {RunState.FAILED: "failed", RunState.TIMED_OUT: "failed", RunState.CANCELED: "canceled"}
"""What a run adds to that by its end."""


def labels(automation: str, action: str, state: RunState) -> tuple[str, ...]:
    """In the order of the alphabet."""
    kind = KINDS[action]
    found = [f"{OF_AUTOMATION}{automation}", kind]
    if state in BADLY:
        found.append(f"{kind}-{BADLY[state]}")
    return tuple(sorted(found))


@dataclass(frozen=True)
class Labelled:
    """Runs whose tracking beads have a label: all of an automation, or of an action, perhaps in some states only."""

    automation: str | None = None
    action: str | None = None
    states: frozenset[RunState] = frozenset()


def labelled(label: str) -> Labelled | None:
    """None for a label that no run gives."""
    if label.startswith(OF_AUTOMATION):
        return Labelled(automation=label.removeprefix(OF_AUTOMATION))
    for action, kind in KINDS.items():
        if label == kind:
            return Labelled(action=action)
        states = frozenset(state for state, how in BADLY.items() if label == f"{kind}-{how}")
        if states:
            return Labelled(action=action, states=states)
    return None
