"""The starts of a session remembered: how soon it may be started again, and when it is quarantined."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lamplighter.kit.clock import SET_BACK_TOLERANCE

# The first relight comes at once; then ever later, while the lives stay short.
RELIGHT_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (0, 1, 5, 15, 30))
SHORT_LIFE = timedelta(seconds=60)
_KEPT = 100


@dataclass(frozen=True)
class CrashLimit:
    """`count` starts within `window` quarantine a session; a count of 0 never does."""

    count: int = 5
    window: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Life:
    """One start and how it went. A failed start ended when it began; a wished end is no crash."""

    started_at: datetime
    ended_at: datetime | None = None
    wished: bool = False  # it was stopped on purpose
    counted: bool = True  # a start after a change of configuration is nobody's crash


@dataclass(frozen=True)
class SessionHistory:
    """What is remembered of one session, oldest life first; kept across restarts of the daemon."""

    lives: tuple[Life, ...] = ()
    crash_noted: str = ""  # the session id whose crash was already told
    quarantine_noted: datetime | None = None  # the end of the quarantine that was already told

    def started(self, at: datetime, *, counted: bool = True) -> "SessionHistory":
        return replace(self, lives=(*self.lives, Life(at, counted=counted))[-_KEPT:])

    def failed(self, at: datetime, *, counted: bool = True) -> "SessionHistory":
        """A start that came to nothing is the shortest of lives."""
        return replace(self, lives=(*self.lives, Life(at, ended_at=at, counted=counted))[-_KEPT:])

    def ended(self, at: datetime, *, wished: bool = False) -> "SessionHistory":
        """The present life ended; an end that is already known stays as it was told first."""
        if not self.lives or self.lives[-1].ended_at is not None:
            return self
        return replace(self, lives=(*self.lives[:-1], replace(self.lives[-1], ended_at=at, wished=wished)))

    def cleared(self) -> "SessionHistory":
        """A person lifted the quarantine: what was is not held against it any more."""
        return SessionHistory(lives=tuple(replace(life, counted=False, wished=True) for life in self.lives[-1:]))


def starts_in_window(history: SessionHistory, limit: CrashLimit, now: datetime) -> tuple[datetime, ...]:
    lives = _known(history, now)
    return tuple(life.started_at for life in lives if life.counted and now - life.started_at < limit.window)


def quarantined_until(history: SessionHistory, limit: CrashLimit, now: datetime) -> datetime | None:
    """When it may be started again: as soon as fewer than `count` starts lie within the window; None for now."""
    recent = starts_in_window(history, limit, now)
    if limit.count <= 0 or len(recent) < limit.count:
        return None
    return recent[-limit.count] + limit.window


def next_start(history: SessionHistory, now: datetime) -> datetime:
    """The earliest instant of the next start, quarantine aside; `now` or earlier for one that is due."""
    short = _short_lives(history, now)
    if short == 0:
        return now
    ended_at = _known(history, now)[-1].ended_at or now
    return ended_at + RELIGHT_DELAYS[min(short, len(RELIGHT_DELAYS)) - 1]


def _short_lives(history: SessionHistory, now: datetime) -> int:
    """How many lives in a row, up to the last one, ended by themselves within a minute."""
    short = 0
    for life in reversed(_known(history, now)):
        if life.wished or (life.ended_at or now) - life.started_at >= SHORT_LIFE:
            break
        short += 1
    return short


def _known(history: SessionHistory, now: datetime) -> tuple[Life, ...]:
    """Without the lives that began or ended later than now: the clock was set back, and those count for nothing."""
    latest = now + SET_BACK_TOLERANCE
    return tuple(life for life in history.lives if max(life.started_at, life.ended_at or now) <= latest)
