"""Decisions by policy: what blocks an automation, when it is retried or disabled, and when silence is reported."""

from datetime import datetime, timedelta
from enum import StrEnum

from lamplighter.domain.automations.policies import Retry
from lamplighter.kit.backoff import doubling
from lamplighter.kit.records import record


class SkipReason(StrEnum):
    """Why a slot did not run; recorded on its trigger event, or on its run if that was skipped after firing."""

    DISABLED = "disabled"
    LEFT_OUT = "left_out"
    PAUSED = "paused"
    CITY_SUSPENDED = "city_suspended"
    RIG_SUSPENDED = "rig_suspended"
    AUTOMATION_SUSPENDED = "automation_suspended"
    OVERLAP = "overlap"
    MISSED = "missed"
    NOTHING_TO_DO = "nothing_to_do"
    PROJECT_MISSING = "project_missing"
    LOGIN = "login"
    PROVIDER_LIMIT = "provider_limit"
    BUDGET = "budget"


class Outcome(StrEnum):
    """How a run ended; the values are those of its state."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    SKIPPED = "skipped"


@record
class Switches:
    """Everything that can keep an automation from firing."""

    enabled: bool = True
    left_out: bool = False
    paused: bool = False
    city_suspended: bool = False
    rig_suspended: bool = False
    suspended: bool = False


def blocked_by(switches: Switches, *, by_hand: bool = False) -> SkipReason | None:
    """The reason that keeps it from firing, the widest scope first, or None.

    With `by_hand` (a person runs it) a disabled or skipped automation may run, but nothing paused or suspended.
    """
    if switches.paused:
        return SkipReason.PAUSED
    if switches.city_suspended:
        return SkipReason.CITY_SUSPENDED
    if switches.rig_suspended:
        return SkipReason.RIG_SUSPENDED
    if switches.suspended:
        return SkipReason.AUTOMATION_SUSPENDED
    if switches.left_out and not by_hand:
        return SkipReason.LEFT_OUT
    return None if switches.enabled or by_hand else SkipReason.DISABLED


@record
class ActiveRun:
    """A run that has not ended; one that a person has taken has no deadline as long as that is so."""

    id: str
    deadline_at: datetime | None = None
    taken: bool = False


@record
class RetryAt:
    at: datetime
    attempt: int


def retry(policy: Retry, outcome: Outcome, attempt: int, now: datetime) -> RetryAt | None:
    """When to try again, or None. `attempt` counts from 0. Only failures and timeouts are retried, never a person's
    decision.
    """
    if outcome not in {Outcome.FAILED, Outcome.TIMED_OUT} or attempt >= policy.count:
        return None
    return RetryAt(now + doubling(attempt, first=policy.backoff, most=policy.most), attempt + 1)


START_AGAIN = 3
"""So often a run of which nothing ran is tried again, whatever its policy says."""
_START_PAUSE, _LONGEST_START_PAUSE = timedelta(seconds=5), timedelta(seconds=20)


def start_again(attempt: int, now: datetime) -> RetryAt | None:
    """When to try again what could not be started: what was in the way is mostly over soon. None after the last try."""
    if attempt >= START_AGAIN:
        return None
    return RetryAt(now + doubling(attempt, first=_START_PAUSE, most=_LONGEST_START_PAUSE), attempt + 1)


@record
class Streak:
    """The number of consecutive failures after one more run; `disable` is set if it reaches the limit."""

    failures: int
    disable: bool = False


def streak(failures: int, outcome: Outcome, *, limit: int, by_hand: bool, reason: SkipReason | None = None) -> Streak:
    """Any success resets the count; failures count only for runs not started by hand. A limit of 0 never disables.

    A slot skipped because its directory is missing counts as a failure, as otherwise it would be skipped for ever.
    """
    if outcome is Outcome.SUCCEEDED:
        return Streak(0)
    failed = outcome in {Outcome.FAILED, Outcome.TIMED_OUT} or reason is SkipReason.PROJECT_MISSING
    if by_hand or not failed:
        return Streak(failures)
    return Streak(failures + 1, disable=0 < limit <= failures + 1)


def failures_after_edit(failures: int, *, was_enabled: bool, is_enabled: bool) -> int:
    """Enabling always resets the count; any other edit keeps it."""
    return 0 if is_enabled and not was_enabled else failures


@record
class Quiet:
    """Nothing has fired since `since`, for longer than allowed."""

    since: datetime
    for_: timedelta


def quiet(
    quiet_after: timedelta | None, last_fired_at: datetime | None, armed_at: datetime, now: datetime, *,
    alarmed_at: datetime | None = None,
) -> Quiet | None:  # fmt: skip
    """Reported once for each silence; `armed_at` is when the automation was last enabled or resumed."""
    if quiet_after is None:
        return None
    since = max(armed_at, last_fired_at or armed_at)
    if now - since < quiet_after or (alarmed_at is not None and alarmed_at >= since):
        return None
    return Quiet(since, now - since)


class PrecheckResult(StrEnum):
    GO = "go"
    NOTHING_TO_DO = "nothing_to_do"
    FAILED = "failed"


def precheck_result(exit_code: int | None) -> PrecheckResult:
    """Exit code 0 means go ahead, 75 nothing to do; anything else, including None for a timeout, is a failure."""
    match exit_code:
        case 0:
            return PrecheckResult.GO
        case 75:
            return PrecheckResult.NOTHING_TO_DO
        case _:
            return PrecheckResult.FAILED
