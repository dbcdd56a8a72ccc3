"""Writes the reference pages of events and of states of runs from their tables."""  # noqa: INP001  a script

from pathlib import Path

from lamplighter.domain import event_types
from lamplighter.domain.runs import reasons

if __name__ == "__main__":
    here = Path(__file__).parent / "reference"
    (here / "events.md").write_text(event_types.reference())
    (here / "run-states.md").write_text(reasons.reference())
