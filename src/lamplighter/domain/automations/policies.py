"""The policies of an automation and their defaults."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum

from lamplighter.kit.records import record

AUTO_DISABLE_AFTER = 5
CATCH_UP_WITHIN = timedelta(hours=12)
CATCH_UP_LIMIT = 10
VERIFY_TIMEOUT = timedelta(minutes=10)
ROUNDS = 1
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


class Approve(StrEnum):
    """What a person approves before an agent goes on.

    plan: the first run only plans; the one that carries the plan out begins when a person has approved it.
    """

    PLAN = "plan"


@record
class CatchUp:
    """What to do about slots that passed while nothing could fire; those older than `within` are only recorded."""

    mode: CatchUpMode = CatchUpMode.ONE
    within: timedelta = CATCH_UP_WITHIN
    limit: int = CATCH_UP_LIMIT


@record
class Retry:
    count: int = 0
    backoff: timedelta = timedelta(seconds=30)
    most: timedelta = timedelta(minutes=30)


@record
class Budget:
    """Limits on one run, and on all runs of one day; each has its own reason when it stops a run."""

    cost: float | None = None
    tokens: int | None = None
    time: timedelta | None = None
    day_cost: float | None = None
    day_tokens: int | None = None
    day_time: timedelta | None = None


@record
class Notify:
    """Which destinations are told of it, of which ends of runs, and from how many failures on.

    Without `to` those of the city; `inbox` and `none` tell nobody. `after` 0 is what the city says. `thread` is a
    channel of Slack in which each run of an agent has a thread of its own.
    """

    to: tuple[str, ...] = ()
    on: tuple[str, ...] = NOTIFY_ON
    after: int = 0
    thread: str | None = None


@record
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
    verify: str | None = None
    """A command that says whether a success that is claimed is one: exit code 0."""
    verify_timeout: timedelta | None = None
    rounds: int | None = None
    """How often an agent is told that its claim was not verified, and goes on."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of its programs; `secret:NAME` is the value of that secret."""
    stuck_after: int | None = None
    """How often an agent may make the same call with the same result in a row; 0 for any number."""
    approve: Approve | None = None
    connections: tuple[str, ...] | None = None
    """The connections whose tokens its programs get, beside those of its triggers; empty for none of them at all."""
