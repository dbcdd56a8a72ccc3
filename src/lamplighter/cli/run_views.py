"""How runs are shown to a person: in lists, one in full, in sentences, and as changes of a worktree."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.output import Col

if TYPE_CHECKING:
    from lamplighter.domain.runs.model import RunState
    from lamplighter.services.runs.changes import DiffRun, RunChanges, WorktreeSettled
    from lamplighter.services.runs.operations import AmendRun, AnswerRun, ApproveRun
    from lamplighter.services.runs.queries import ListRuns, ShowRun
    from lamplighter.services.runs.views import NotedRun, RunDetail, RunEventView, RunView

COLUMNS = {
    "ID": Col("id", "word"), "AUTOMATION": "automation", "STATE": Col("state", "state"), "REASON": "reason",
    "BY": Col("by", "word", spare=1), "STARTED": Col("started", "when"), "TOOK": Col("took", "word"),
    "EXIT": Col("exit", "number", spare=2),
}  # fmt: skip


def listed(runs: "list[RunView]", ask: "ListRuns") -> None:
    output.table([_at_a_glance(run) for run in runs], COLUMNS, empty="No runs.")
    if len(runs) == ask.limit:
        click.echo(f"`--before {words.short_id(runs[-1].id)}` shows older ones.", err=True)


def shown(run: "RunDetail", _ask: "ShowRun") -> None:
    reason = words.reason(run.reason, run.state)
    output.fields(
        {},
        {
            "Run": run.id,
            "Automation": run.automation,
            "State": output.state(state_shown(run), f": {reason}" if reason else ""),
            "Grade": run.grade,
            "Round": run.round if run.round > 1 or run.verifying else None,
            "Waits for": run.waits_for,
            "Error": run.error if run.waits_for is None else None,
            "Fired by": run.trigger.kind,
            "Attempt": attempt(run),
            "Retry of": run.retry_of,
            "Question": run.question and run.question.text,
            "Choices": (run.question and list(run.question.choices)) or None,
            "Without answer": run.question and run.question.without_answer,
            "Continues": run.continues,
            "Continued by": run.continued_by,
            "Plan approved by": run.approved_by,
            "Taken by": run.taken_by and f"{run.taken_by}; its clock stands until `lamp run give`",
            "Claimed by": run.assigned_to,
            "Tried again": run.retried_by,
            "Created": run.created_at,
            "Started": run.started_at,
            "Ended": run.ended_at,
            "Took": run.duration_s,
            "Exit code": run.exit_code or None,
            "Deadline": run.deadline_at if run.ended_at is None else None,
            "Node": run.node,
            "Rig": run.rig,
            "Wisp": run.wisp,
            "Session": run.session_id,
            "Configuration": run.configuration,
            "With": _in_force(run),
            "Prompt": run.in_force and run.in_force.prompt_digest and f"sha256 {run.in_force.prompt_digest}",
            "Limit lifted": run.lifts_at,
            "Cost": _cost(run),
            "Worktree": run.worktree and f"{run.worktree['path']} on {run.worktree['branch']}",
            "Changes": _changes(run),
            "Artifacts": [one.key for one in run.artifacts] or None,
            "Artifacts lost": _lost(run),
            "Summary": run.summary,
        },
    )
    if run.worktree:
        short = words.short_id(run.id)
        output.say(f"\n`lamp run diff {short}` shows its changes; `lamp run apply` and `discard` end the worktree.")
    timeline = [{"at": one.at, "what": event_words(one), "by": one.actor} for one in run.events]
    click.echo()
    output.table(timeline, {"WHEN": Col("at", "when"), "WHAT": "what", "BY": "by"}, empty="")
    if run.output_tail:
        click.echo()
        output.text(run.output_tail.rstrip())


def _changes(run: "RunDetail") -> str | None:
    from lamplighter.services.runs.views import changes_of

    return changes_of(run.events)


def _lost(run: "RunDetail") -> str | None:
    if not run.artifacts_lost:
        return None
    return output.commands(f"{', '.join(run.artifacts_lost)}: given up; `lamp outbox list` says why")


def _in_force(run: "RunDetail") -> str | None:
    """What an agent run was started with, as far as it is known."""
    told = run.in_force
    if told is None:
        return None
    parts = [told.preset, told.version, told.model and f"model {told.model}", told.effort and f"effort {told.effort}",
             told.mode and f"mode {told.mode}", "as fallback" if told.fallback else None]  # fmt: skip
    return ", ".join(word for word in parts if word)


def attempt(run: "RunDetail") -> str | None:
    """Such as `2 of 3`; None for a run that is tried once and was."""
    return f"{run.attempt + 1} of {max(run.attempts, run.attempt + 1)}" if run.attempts > 1 or run.attempt else None


def answered(made: "NotedRun", ask: "AnswerRun") -> None:
    tell_note(made)
    short = words.short_id(made.id)
    output.say(f"Run {short} goes on with {words.short_id(ask.run)}. `lamp run watch {short}` follows it.")


def approved(made: "RunView", ask: "ApproveRun") -> None:
    short = words.short_id(made.id)
    output.say(f"Run {short} carries out the plan of {words.short_id(ask.run)}. `lamp run watch {short}` follows it.")


def amended(made: "RunView", ask: "AmendRun") -> None:
    short = words.short_id(made.id)
    output.say(f"Run {short} makes the plan of {words.short_id(ask.run)} anew. `lamp run watch {short}` follows it.")


def rejected(run: "RunView", _ask: Any) -> None:
    click.echo(f"The plan of run {words.short_id(run.id)} is rejected; nothing of it is done.")


def claimed(run: "RunView", _ask: Any) -> None:
    click.echo(f"Run {words.short_id(run.id)} of {run.automation} is claimed by {run.assigned_to}.")


def unclaimed(run: "RunView", _ask: Any) -> None:
    click.echo(f"Run {words.short_id(run.id)} of {run.automation} is claimed by nobody now.")


def resolved(run: "RunView", _ask: Any) -> None:
    click.echo(f"Run {words.short_id(run.id)} of {run.automation} is resolved: it {state_in_words(run.state)}.")


def event_words(event: "RunEventView") -> str:
    """Such as `fired: queued`, `claimed: ready → running`."""
    moved = event.from_state not in {None, event.to_state}
    move = (
        f"{words.state(event.from_state)} → {words.state(event.to_state)}"
        if moved
        else words.state(event.to_state or "")
    )
    told = words.state(event.type)
    return f"{told}: {move}" if move and words.reason(told, event.to_state) else told


def shown_diff(found: "RunChanges", _ask: "DiffRun") -> None:
    if not found.patch:
        click.echo(f"Run {words.short_id(found.id)} changed nothing in {found.path}.")
        return
    for line in found.patch.splitlines():
        click.echo(click.style(output.plain(line), fg=_DIFF.get(line[:1]), bold=line.startswith("diff ")))
    click.echo(f"{found.summary}, in {found.path} on {found.branch}.", err=True)


_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def applied(done: "WorktreeSettled", _ask: Any) -> None:
    click.echo(f"The changes of run {words.short_id(done.id)} are in {done.repository}, uncommitted.{_branch(done)}")


def discarded(done: "WorktreeSettled", _ask: Any) -> None:
    click.echo(f"Removed {done.path}.{_branch(done)}")


def _branch(done: "WorktreeSettled") -> str:
    return f" Its commits stay on branch {done.kept_branch}." if done.kept_branch else ""


def tell_note(made: "RunView") -> None:
    note: str | None = getattr(made, "note", None)  # only some requests are answered with one
    if note is not None:
        output.note(note)


def sentence(run: "RunDetail") -> str:
    told = (words.reason(run.reason, run.state), run.grade)
    why = ", ".join(str(one) for one in told if one)
    took = words.span(run.duration_s) if run.duration_s is not None else "0 s"
    return f"Run {words.short_id(run.id)} {state_in_words(run.state)}{f' ({why})' if why else ''} after {took}."


_SAID = {
    "canceled": "was canceled", "skipped": "was skipped", "running": "is running", "queued": "is queued",
    "ready": "is ready", "enriching": "is being prepared",
}  # fmt: skip


def state_in_words(state: "RunState") -> str:
    """The state in a sentence about the run: `was canceled`, `needs you`."""
    word = words.state(state)
    return _SAID.get(word, word)


def _cost(run: "RunView") -> str | None:
    parts = [words.counted(run.tokens, "token")] if run.tokens else []
    if run.cost is not None:
        parts.append(f"{run.cost:.4f} USD")
    return ", ".join(parts) or None


def state_shown(run: "RunView") -> str:
    """Its state for people: one that asked and goes on elsewhere needs nobody any more."""
    return "answered" if run.state == "needs_human" and run.continued_by is not None else run.state.value


def _in_a_word(run: "RunView") -> str:
    """Why it ended so; of a success how it is known; of one that goes on, in which run."""
    if run.continued_by is not None:
        return f"see {words.short_id(run.continued_by)}"
    if run.waits_for is not None:
        return f"waits: {run.waits_for}"
    return words.reason(run.reason, run.state) or (run.grade.value if run.grade is not None else "")


def _at_a_glance(run: "RunView") -> dict[str, Any]:
    return {
        "id": run.id,
        "automation": run.automation,
        "state": state_shown(run),
        "reason": _in_a_word(run),
        "by": run.trigger.kind,
        "started": run.started_at,
        "took": run.duration_s,
        "exit": run.exit_code or None,
    }
