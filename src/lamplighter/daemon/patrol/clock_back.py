"""Corrects times that sessions recorded before the wall clock was set back, so that nothing waits longer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit.clock import SET_BACK_TOLERANCE, Reading, set_back_by

_NONE = timedelta(0)


@dataclass
class CorrectedTimes:
    """Moves start, last activity and drain marks of sessions to the clock as it is now.

    A time seen before a set-back is moved by as much as the clock was. One that lies in the future although no
    set-back was noticed was recorded before this process began; it counts as the moment at which it was first seen.
    A time that a session records anew is taken as it is.
    """

    _read: Reading | None = None
    _moved: dict[str, dict[datetime, timedelta]] = field(default_factory=dict)
    """By session id: each time that it has on record, and by how much that is to be moved back."""

    def all(self, found: Mapping[SessionName, Seen], read: Reading) -> dict[SessionName, Seen]:
        """These sessions with corrected times; all others are forgotten."""
        self._notice(read)
        known = {seen.session_id for seen in found.values()}
        self._moved = {session_id: moved for session_id, moved in self._moved.items() if session_id in known}
        return {name: self._corrected(seen, read.now) for name, seen in found.items()}

    def one(self, seen: Seen, read: Reading) -> Seen:
        self._notice(read)
        return self._corrected(seen, read.now)

    def _notice(self, read: Reading) -> None:
        """Compare with the last reading; after a set-back, move all times that were seen until then."""
        by = None if self._read is None else set_back_by(self._read, read)
        self._read = read
        if by is not None:
            self._moved = {
                session_id: {at: before + by for at, before in moved.items()}
                for session_id, moved in self._moved.items()
            }

    def _corrected(self, seen: Seen, now: datetime) -> Seen:
        drain = _drained_since(seen)
        before = self._moved.get(seen.session_id, {})
        moved = self._moved[seen.session_id] = {
            at: before.get(at, at - now if at > now + SET_BACK_TOLERANCE else _NONE)
            for at in (seen.started_at, seen.last_activity, drain)
            if at is not None
        }
        if not any(moved.values()):
            return seen
        marks = {} if drain is None else {meta.DRAIN: str(int((drain - moved[drain]).timestamp()))}
        return replace(
            seen,
            started_at=None if seen.started_at is None else seen.started_at - moved[seen.started_at],
            last_activity=None if seen.last_activity is None else seen.last_activity - moved[seen.last_activity],
            meta={**seen.meta, **marks},
        )


def _drained_since(seen: Seen) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seen.meta.get(meta.DRAIN, "")), UTC)
    except (ValueError, OverflowError, OSError):
        return None
