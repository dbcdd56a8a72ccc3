"""How a run ends, decided from how its command or precheck ended."""

from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.automations.decisions import PrecheckResult, SkipReason, precheck_result
from lamplighter.domain.runs.model import Grade, Run, RunState, Stage
from lamplighter.domain.runs.verify import Checked, refused
from lamplighter.kit.masking import masked
from lamplighter.kit.records import changed
from lamplighter.ports.commands import CommandEnded
from lamplighter.services.runs.ending import Ending


def until_deadline(run: Run, limit: timedelta) -> timedelta:
    """The command's time limit: at most the time that was left until the deadline when the run started."""
    if run.deadline_at is None or run.started_at is None:
        return limit
    return min(limit, max(run.deadline_at - run.started_at, timedelta(0)))


def after(run: Run, ended: CommandEnded, now: datetime) -> Ending:
    kept: dict[str, Any] = {
        "exit_code": ended.exit_code,
        "output_tail": clean(ended.output),
        "duration": ended.duration,
    }
    if ended.timed_out and run.deadline_at is not None and run.deadline_at <= now:
        error = f"its deadline came, and it was killed after {ended.duration.total_seconds():.1f} s"
        return Ending(RunState.TIMED_OUT, "deadline_exceeded", Stage.FINALIZER, error=error, **kept)
    if ended.timed_out:
        error = f"it did not end within its time limit and was killed after {ended.duration.total_seconds():.1f} s"
        return Ending(RunState.FAILED, "timeout", Stage.EXECUTION, error=error, **kept)
    if ended.exit_code is None:
        error = "nobody saw how it ended: the machine or its shim went down"
        return Ending(RunState.FAILED, "interrupted", Stage.EXECUTION, error=error, **kept)
    if ended.exit_code == 0:
        return Ending(RunState.SUCCEEDED, **kept)
    error = _last_line(ended.output) or f"exit code {ended.exit_code}"
    return Ending(RunState.FAILED, f"exit_{ended.exit_code}", Stage.EXECUTION, error=error, **kept)


def after_precheck(ended: CommandEnded) -> Ending | None:
    match precheck_result(ended.exit_code):
        case PrecheckResult.GO:
            return None
        case PrecheckResult.NOTHING_TO_DO:
            return Ending(RunState.SKIPPED, SkipReason.NOTHING_TO_DO, Stage.EXECUTION, duration=ended.duration)
        case PrecheckResult.FAILED:
            error = _last_line(ended.output) or "the precheck failed"
            tail = clean(ended.output)
            return Ending(
                RunState.FAILED, "precheck_failed", Stage.EXECUTION, error, ended.exit_code, tail, ended.duration
            )


def after_verify(ending: Ending, checked: Checked, command: str) -> Ending:
    """How a run ends whose command ended well and whose success was verified by `command`, or was not."""
    if checked.passed:
        return changed(ending, grade=Grade.VERIFIED)
    error = f"Its command ended well, but that could not be verified: {refused(command, checked)}"
    tail = f"{ending.output_tail.rstrip()}\n{checked.output}".strip("\n")
    return Ending(RunState.FAILED, "verify", Stage.VERIFICATION, error, checked.exit_code, tail, ending.duration)


def clean(text: str) -> str:
    """Output as text that may be kept and shown: URL passwords masked, and NUL replaced, which PostgreSQL refuses."""
    return masked(text.replace("\0", "\ufffd"))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
