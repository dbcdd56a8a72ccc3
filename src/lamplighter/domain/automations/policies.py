"""The policies of an automation and their defaults."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

AUTO_DISABLE_AFTER = 5
CATCH_UP_WITHIN = timedelta(hours=12)
CATCH_UP_LIMIT = 10
NOTIFY_ON = ("failed", "needs_human", "timed_out")


class Overlap(StrEnum):
    """What a due trigger does while an earlier run is under way.

    skip: record the slot as skipped. queue: wait, then run once for all that waited. allow: run beside it.
    replace: cancel the earlier run first.
    """

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"
    REPLACE = "replace"


class CatchUpMode(StrEnum):
    ONE = "one"
    SKIP = "skip"
    ALL = "all"


@dataclass(frozen=True)
class CatchUp:
    """What to do about slots that passed while nothing could fire; those older than `within` are only recorded."""

    mode: CatchUpMode = CatchUpMode.ONE
    within: timedelta = CATCH_UP_WITHIN
    limit: int = CATCH_UP_LIMIT


@dataclass(frozen=True)
class Retry:
    count: int = 0
    backoff: timedelta = timedelta(seconds=30)
    most: timedelta = timedelta(minutes=30)


@dataclass(frozen=True)
class Budget:
    """Limits on one run; each has its own reason when it stops the run."""

    cost: float | None = None
    tokens: int | None = None
    time: timedelta | None = None


@dataclass(frozen=True)
class Notify:
    """Who is notified of a run's end (`slack:#channel`, `slack:@user` or `inbox`), and of which end states."""

    to: tuple[str, ...] = ()
    on: tuple[str, ...] = NOTIFY_ON


@dataclass(frozen=True)
class Policies:
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = field(default_factory=CatchUp)
    retry: Retry = field(default_factory=Retry)
    auto_disable_after: int = AUTO_DISABLE_AFTER
    quiet_after: timedelta | None = None
    precheck: str | None = None
    timeout: timedelta | None = None
    deadline: timedelta | None = None
    idle_timeout: timedelta | None = None
    budget: Budget = field(default_factory=Budget)
    notify: Notify = field(default_factory=Notify)
    jitter: timedelta = timedelta(0)
