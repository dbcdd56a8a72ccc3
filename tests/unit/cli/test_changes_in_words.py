"""What `lamp run show` says of the changes that a run left."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamplighter.services.runs.views import RunEventView, changes_of


def event(kind: str, **data: Any) -> RunEventView:
    return RunEventView(datetime(2026, 6, 1, tzinfo=UTC), kind, None, None, "ada", data)


KEPT = event("worktree_kept", diff="1 new file")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([event("prompt_sent")], None),
        ([KEPT], "1 new file"),
        ([KEPT, event("worktree_applied", repository="/src/shop")], "1 new file, applied to /src/shop"),
        ([KEPT, event("worktree_discarded", repository="/src/shop")], "1 new file, discarded"),
    ],
)
def test_changes_are_told_with_what_became_of_them(events: list[RunEventView], said: str | None) -> None:
    assert changes_of(events) == said
