"""Records which starts of sessions are watched, so that each end is reported once and the record stays bounded."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

Cancel = Callable[[], None]


class Watches:
    """Keyed by session id. An ended one is kept while its session is still shown, so that it is not reported again."""

    def __init__(self) -> None:
        self._running: dict[str, Cancel] = {}
        self._ended: set[str] = set()

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._running or session_id in self._ended

    def living(self, session_id: str) -> bool:
        """Whether its end is watched and has not come; then it lives, and no look at the processes is needed."""
        return session_id in self._running

    def add(self, session_id: str, cancel: Cancel) -> None:
        self._running[session_id] = cancel

    def ended(self, session_id: str) -> None:
        self._running.pop(session_id, None)
        self._ended.add(session_id)

    def forget_ended_but(self, shown: AbstractSet[str]) -> None:
        self._ended &= shown

    def cancel_all(self) -> None:
        for cancel in self._running.values():
            cancel()
        self._running.clear()
