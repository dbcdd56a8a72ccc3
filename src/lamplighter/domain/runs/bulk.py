"""Bulk actions: one thing done to many runs, chosen when it is asked for and worked off in parts."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.domain.access import Role
from lamplighter.domain.runs.model import ACTIVE, ATTENTION, TERMINAL, RunState
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import changed, record

MOST = 10_000
"""A bulk action is about at most so many runs."""
PART = 100
"""So many of them are worked off for one outbox item."""


class BulkVerb(StrEnum):
    """What is done to each run: the operation of that name."""

    RETRY = "retry"
    CANCEL = "cancel"
    CLAIM = "claim"
    UNCLAIM = "unclaim"
    RESOLVE = "resolve"


class BulkState(StrEnum):
    WORKING = "working"
    DONE = "done"
    ABORTED = "aborted"


class BulkOutcome(StrEnum):
    """What became of one run: not tried yet, done, or refused by the operation."""

    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"


@record
class BulkAction:
    """`said` has what the operation is told besides the run. The creator's right is judged anew for each run."""

    id: str
    action: BulkVerb
    said: Mapping[str, Any]
    query: str | None
    creator: str
    role: Role
    token: str | None
    run_id: str | None
    session: str | None
    surface: str
    state: BulkState
    total: int
    created_at: datetime
    done: int = 0
    refused: int = 0
    ended_at: datetime | None = None
    aborted_by: str | None = None


class NotWorking(Conflict):
    def __init__(self, bulk: BulkAction) -> None:
        super().__init__(
            f"Bulk action {bulk.id} is {bulk.state} already.", hint=f"`lamp bulk show {bulk.id}` says what it did."
        )


def counted(bulk: BulkAction, outcome: BulkOutcome) -> BulkAction:
    """With one run more that is done or refused."""
    if outcome is BulkOutcome.DONE:
        return changed(bulk, done=bulk.done + 1)
    return changed(bulk, refused=bulk.refused + 1)


def aborted(bulk: BulkAction, by: str, now: datetime) -> BulkAction:
    """Raises NotWorking."""
    if bulk.state is not BulkState.WORKING:
        raise NotWorking(bulk)
    return changed(bulk, state=BulkState.ABORTED, ended_at=now, aborted_by=by)


def ended(bulk: BulkAction, now: datetime) -> BulkAction:
    return changed(bulk, state=BulkState.DONE, ended_at=now)


def part_of(number: int) -> range:
    """The numbers of the runs in a part, from 0."""
    return range(number * PART, (number + 1) * PART)


def is_last(bulk: BulkAction, part: int) -> bool:
    return (part + 1) * PART >= bulk.total


FITTING: Mapping[BulkVerb, frozenset[RunState]] = {
    BulkVerb.RETRY: TERMINAL,
    BulkVerb.CANCEL: ACTIVE,
    BulkVerb.CLAIM: frozenset(RunState),
    BulkVerb.UNCLAIM: frozenset(RunState),
    BulkVerb.RESOLVE: ATTENTION,
}
"""The states in which a run may take the action; in others its operation refuses it."""
EFFECTS: Mapping[BulkVerb, str] = {
    BulkVerb.RETRY: "Each run that has ended is started anew, as a new run with the same inputs.",
    BulkVerb.CANCEL: "Each run that is under way is ended, and what it works on stops.",
    BulkVerb.CLAIM: "Each run is yours to look after, and others see that.",
    BulkVerb.UNCLAIM: "Each run is let go of, whoever claimed it.",
    BulkVerb.RESOLVE: "Each run that needs a person is settled with the outcome you name.",
}
"""What the action does, said before it is done."""
