"""The steps by which a ready run comes to work, and which of them is next; a start cut off goes on where it stopped."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.runs.model import Run, RunState


class Step(StrEnum):
    RESOLVE_TARGET = "resolve_target"
    START_RUNNING = "start_running"
    CREATE_SESSION = "create_session"
    SEND_PROMPT = "send_prompt"
    WATCH = "watch"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Progress:
    """What is on record of a start besides the run itself."""

    target_resolved: bool = False
    prompt_sent_at: datetime | None = None


def next_step(run: Run, progress: Progress) -> Step:
    """Each step is recorded before the next one is taken. Session and prompt carry keys that follow from the run, so
    that a step whose record was lost finds what it had done and does not do it again.
    """
    if run.state is RunState.READY:
        return Step.START_RUNNING if progress.target_resolved else Step.RESOLVE_TARGET
    if run.state is not RunState.RUNNING:
        return Step.NOTHING
    if run.session_id is None:
        return Step.CREATE_SESSION
    return Step.SEND_PROMPT if progress.prompt_sent_at is None else Step.WATCH
