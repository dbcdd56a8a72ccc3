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
    FIRE_AFTER_TRIGGER_EVENT = "fire.after_trigger_event"
    FIRE_AFTER_RUN = "fire.after_run"
    FIRE_AFTER_COMMIT = "fire.after_commit"
    ITEM_AFTER_CLAIM = "item.after_claim"
    RUN_AFTER_START = "run.after_start"
    COMMAND_BEFORE_LAUNCH = "command.before_launch"
    COMMAND_AFTER_LAUNCH = "command.after_launch"
    RUN_BEFORE_END = "run.before_end"
    RUN_AFTER_END = "run.after_end"
    RUN_AFTER_COOKED = "run.after_cooked"
    RUN_AFTER_ENRICHED = "run.after_enriched"
    RUN_BEFORE_SESSION = "run.before_session"
    SESSION_BEFORE_LAUNCH = "session.before_launch"
    SESSION_AFTER_LAUNCH = "session.after_launch"
    RUN_AFTER_SESSION = "run.after_session"
    RUN_AFTER_PROMPT = "run.after_prompt"
    COMPLETE_AFTER_COMMIT = "complete.after_commit"
    SETUP_BEFORE_COMMAND = "setup.before_command"
    SETUP_AFTER_COMMAND = "setup.after_command"
    VERIFY_BEFORE_COMMAND = "verify.before_command"
    VERIFY_AFTER_COMMAND = "verify.after_command"
    VERIFY_AFTER_VERDICT = "verify.after_verdict"
    STUCK_BEFORE_STOP = "stuck.before_stop"
    STUCK_AFTER_STOP = "stuck.after_stop"
    STUCK_AFTER_TOLD = "stuck.after_told"
    TAKE_BEFORE_HAND_OVER = "take.before_hand_over"
    TAKE_AFTER_HAND_OVER = "take.after_hand_over"
    ARTIFACT_AFTER_WRITE = "artifact.after_write"
    SESSION_BEFORE_STOP = "session.before_stop"
    NOTICE_BEFORE_SEND = "notice.before_send"
    NOTICE_AFTER_SEND = "notice.after_send"
    TURN_BEFORE_POST = "turn.before_post"
    TURN_AFTER_POST = "turn.after_post"
    STREAM_BEFORE_OPEN = "stream.before_open"
    STREAM_AFTER_OPEN = "stream.after_open"
    STREAM_BEFORE_APPEND = "stream.before_append"
    STREAM_AFTER_APPEND = "stream.after_append"
    STREAM_BEFORE_STOP = "stream.before_stop"
    STREAM_AFTER_STOP = "stream.after_stop"
    BULK_BEFORE_RUN = "bulk.before_run"
    BULK_AFTER_RUN = "bulk.after_run"
    TRACES_AFTER_SEND = "traces.after_send"


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
