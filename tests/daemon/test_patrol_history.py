"""What the patrol remembers while it cannot be recorded, and what it says about it."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from lamplighter.daemon.patrol import history
from lamplighter.daemon.patrol.history import PatrolHistory, Where
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Fenced, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.store.tx import Store

ALPHA = SessionName("alpha")


class Away:
    """A store that refuses what it is told to, and keeps the facts that it takes."""

    def __init__(self) -> None:
        self.refuses: Exception | None = None
        self.facts: list[Any] = []

    async def transact(self, _record: Callable[..., Any], facts: list[Any]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.facts += facts


@pytest.fixture
def away() -> Away:
    return Away()


@pytest.fixture
def remembered(away: Away, ids: IdSource) -> PatrolHistory:
    return PatrolHistory(cast("Store", away), SystemClock(), ids, Where("fake", "here"))


def say(remembered: PatrolHistory, count: int) -> None:
    for number in range(count):
        remembered.tell(ALPHA, remembered.event("agent.stopped", "alpha", str(number)))


async def test_facts_beyond_the_most_are_dropped_and_counted(
    remembered: PatrolHistory, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_PENDING", 3)
    away.refuses = Unavailable("The store is away.", hint="Wait.")
    say(remembered, 2)
    await remembered.flush()
    assert remembered.problem == "2 facts about agents are not on record yet: The store is away."
    say(remembered, 3)
    await remembered.flush()
    assert remembered.problem == (
        "3 facts about agents are not on record yet (2 older ones are lost): The store is away."
    )
    away.refuses = None
    with capture_logs() as told:
        await remembered.flush()
        await remembered.flush()
    assert [fact.event.message for fact in away.facts] == ["0", "1", "2"]
    assert [(line["event"], line["count"]) for line in told] == [("agents.facts_lost", 2)]
    assert remembered.problem is None


async def test_a_fenced_process_says_how_many_facts_it_leaves_unrecorded(remembered: PatrolHistory, away: Away) -> None:
    away.refuses = Fenced("Another process took over.", hint="Start anew.")
    say(remembered, 2)
    with capture_logs() as told, pytest.raises(Fenced):
        await remembered.flush()
    assert [(line["event"], line["count"]) for line in told] == [("agents.unrecorded", 2)]
    assert (remembered.problem or "").startswith("2 facts about agents are not on record yet")
