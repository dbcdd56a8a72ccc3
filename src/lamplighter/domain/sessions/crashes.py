"""The history of a session's starts: how soon it may be started again, and when it is quarantined."""

import signal
from dataclasses import replace
from datetime import datetime, timedelta

from lamplighter.kit.clock import SET_BACK_TOLERANCE
from lamplighter.kit.durations import format_duration
from lamplighter.kit.records import record

# The first relight is immediate; each further one waits longer, as long as the session keeps ending within SHORT_LIFE.
RELIGHT_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (0, 1, 5, 15, 30))
SHORT_LIFE = timedelta(seconds=60)
_KEPT = 100
_LONGEST_LINE = 200
_KNOWN_STATUSES = {126: " (cannot be run)", 127: " (program not found)"}  # as shells report them


@record
class CrashLimit:
    """`count` starts within `window` quarantine a session; with a count of 0 or less it is never quarantined."""

    count: int = 5
    window: timedelta = timedelta(hours=1)


@record
class Life:
    """The time from one start to its end. A failed start ends at the time it began; a wished end is not a crash."""

    started_at: datetime
    ended_at: datetime | None = None
    wished: bool = False  # it was stopped on purpose
    counted: bool = True  # False for a start that must not lead to quarantine, such as one after a configuration change
    cause: str = ""  # why it ended or could not begin, for people


@record
class SessionHistory:
    """The recorded lives of one session, oldest first; kept across restarts of the daemon."""

    lives: tuple[Life, ...] = ()
    crash_noted: str = ""  # the session id whose crash was already reported
    quarantine_noted: datetime | None = None  # the end of the quarantine that was already reported

    def started(self, at: datetime, *, counted: bool = True) -> "SessionHistory":
        return replace(self, lives=(*self.lives, Life(at, counted=counted))[-_KEPT:])

    def failed(self, at: datetime, *, counted: bool = True, cause: str = "") -> "SessionHistory":
        """A failed start is recorded as a life that ended at once."""
        return replace(self, lives=(*self.lives, Life(at, ended_at=at, counted=counted, cause=cause))[-_KEPT:])

    def ended(self, at: datetime, *, wished: bool = False, cause: str = "") -> "SessionHistory":
        """The current life ended; if its end is already recorded, the history stays unchanged."""
        if not self.lives or self.lives[-1].ended_at is not None:
            return self
        life = replace(self.lives[-1], ended_at=at, wished=wished, cause=cause)
        return replace(self, lives=(*self.lives[:-1], life))

    @property
    def next_start_counts(self) -> bool:
        """Whether a start now counts towards quarantine: one after a stop that somebody wished for does not."""
        return not self.lives or not self.lives[-1].wished

    @property
    def last_cause(self) -> str:
        """Why the latest life that nobody ended on purpose was over; empty if that is not known."""
        return next((life.cause for life in reversed(self.lives) if life.ended_at is not None and not life.wished), "")

    def cleared(self) -> "SessionHistory":
        """A person lifted the quarantine: only the last life is kept, and it no longer counts."""
        return SessionHistory(lives=tuple(replace(life, counted=False, wished=True) for life in self.lives[-1:]))


def end_cause(exit_status: int | None, output: str) -> str:
    """Why a program ended, for people: its status or the signal, and the last line that it wrote."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = lines[-1][:_LONGEST_LINE] if lines else ""
    name = signal_name(exit_status)
    if name is not None:  # what it wrote before is not why it ended
        return f"its program was ended by {name}" + (f"; the last it wrote: {last}" if last else "")
    status = "" if exit_status is None else f" with status {exit_status}{_KNOWN_STATUSES.get(exit_status, '')}"
    return f"its program ended{status}" + (f": {last}" if last else "")


def signal_name(exit_status: int | None) -> str | None:
    """Such as `SIGKILL` for 137, by which a shell tells it; None if no signal ended the program."""
    try:
        return None if exit_status is None else signal.Signals(exit_status - 128).name
    except ValueError:
        return None


def starts_in_window(history: SessionHistory, limit: CrashLimit, now: datetime) -> tuple[datetime, ...]:
    lives = _known(history, now)
    return tuple(life.started_at for life in lives if life.counted and now - life.started_at < limit.window)


def quarantined_until(history: SessionHistory, limit: CrashLimit, now: datetime) -> datetime | None:
    """When it may start again, as fewer than `count` starts then lie within the window; None if not quarantined."""
    recent = starts_in_window(history, limit, now)
    if limit.count <= 0 or len(recent) < limit.count:
        return None
    return recent[-limit.count] + limit.window


def quarantine_reason(history: SessionHistory, limit: CrashLimit, now: datetime) -> str:
    """How often it was started, and why it ended the last time."""
    often = f"started {len(starts_in_window(history, limit, now))} times within {format_duration(limit.window)}"
    return f"{often}: {history.last_cause}" if history.last_cause else often


def next_start(history: SessionHistory, now: datetime) -> datetime:
    """The earliest time of the next start, ignoring quarantine; `now` or earlier if it may start at once."""
    short = _short_lives(history, now)
    if short == 0:
        return now
    ended_at = _known(history, now)[-1].ended_at or now
    return ended_at + RELIGHT_DELAYS[min(short, len(RELIGHT_DELAYS)) - 1]


def _short_lives(history: SessionHistory, now: datetime) -> int:
    """How many of the latest lives in a row were shorter than a minute and not ended on purpose.

    A life without a recorded end counts as ending now.
    """
    short = 0
    for life in reversed(_known(history, now)):
        if life.wished or (life.ended_at or now) - life.started_at >= SHORT_LIFE:
            break
        short += 1
    return short


def _known(history: SessionHistory, now: datetime) -> tuple[Life, ...]:
    """The lives without those that began or ended after now: the clock was set back, so they are ignored."""
    latest = now + SET_BACK_TOLERANCE
    return tuple(life for life in history.lives if max(life.started_at, life.ended_at or now) <= latest)
