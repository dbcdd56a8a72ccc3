"""Which starts of sessions are watched, so that each end is told once and nothing is remembered for ever."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

Cancel = Callable[[], None]


class Watches:
    """By session id. An ended one is remembered while its session is still shown, so that it is not told again."""

    def __init__(self) -> None:
        self._running: dict[str, Cancel] = {}
        self._ended: set[str] = set()

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._running or session_id in self._ended

    def living(self, session_id: str) -> bool:
        """Its end is watched and has not come: it lives, and need not be looked for."""
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
