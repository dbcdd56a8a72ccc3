"""Named crash points: places where a crash test kills the process; inert unless armed."""

import os
import signal
from enum import StrEnum


class CrashPoint(StrEnum):
    """Every named point; the crash suite is parametrised over this list."""

    STORE_BEFORE_COMMIT = "store.before_commit"
    STORE_AFTER_COMMIT = "store.after_commit"
    STORE_BEFORE_NUMBERING = "store.before_numbering"
    COOK_BEFORE_SEND = "cook.before_send"
    COOK_AFTER_SEND = "cook.after_send"
    EXPORT_AFTER_WRITE = "export.after_write"


_armed: dict[str, int] = {}


def arm(point: str, *, passes: int = 0) -> None:
    """Kill this process when `point` is reached, after letting it pass `passes` times."""
    _armed[point] = passes


def crash_point(point: CrashPoint) -> None:
    if not _armed or point not in _armed:
        return
    if _armed[point] > 0:
        _armed[point] -= 1
        return
    os.kill(os.getpid(), signal.SIGKILL)
