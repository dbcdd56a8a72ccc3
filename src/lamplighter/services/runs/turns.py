"""What a program is told at its next turn, and which of its sessions it goes on with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.runs.model import MESSAGE, Run
from lamplighter.domain.runs.prompt import Turn
from lamplighter.domain.runs.target import FAILED_SELECTION, How, Target
from lamplighter.domain.runs.verify import Checked, message
from lamplighter.domain.sessions.presets.model import Preset
from lamplighter.services.runs import circling, review
from lamplighter.store.tx import Tx

MORE = (
    "Something more has come in on what you worked on in this conversation; what set this run off says what."
    " What you were asked to do holds for that, too."
)
SPEAKS = "An automation asks this of you, in the conversation that you have had so far."
LONGEST_CHAIN = 1000
"""So many runs of one conversation are looked at, from its newest on."""


GIVEN_BACK = (
    "A person took over this work for a while, and gives it back to you now. Files may have changed meanwhile: look"
    " before you go on."
)


@dataclass(frozen=True)
class ToTell:
    """All that a program is told at its start besides its instructions."""

    trigger: dict[str, Any]
    turn: Turn
    notes: tuple[int, str]
    cursor: str


def to_tell(tx: Tx, row: Run, preset: Preset) -> ToTell:
    return ToTell(review.trigger_of(tx, row), turn_of(tx, row, preset), notes_of(tx, row), cursor_of(tx, row))


def turn_of(tx: Tx, row: Run, preset: Preset) -> Turn:
    """The first turn of a run has nothing to add to its instructions; a later one tells what came of the last."""
    if row.round == 1 and row.continues is None and row.given is None and row.trigger_kind != MESSAGE:
        return Turn()
    resume = "agent" if review.snapshots_of(row).speaks_to is not None else resumed(tx, row, preset)
    if row.given is not None:
        return Turn(row.round, f"{GIVEN_BACK}\n\n{row.given['text']}".strip(), resume)
    return _after_round(tx, row, resume) if row.round > 1 else _continued(tx, row, resume)


def _after_round(tx: Tx, row: Run, resume: str) -> Turn:
    last = next((one for one in tx.rounds.of(row.id) if one.number == row.round - 1), None)
    if last is None:
        return Turn(row.round, circling.message_after(tx, row), resume)
    checked = Checked(last.exit_code, last.output_tail, last.why)
    return Turn(row.round, message(review.snapshots_of(row).policies.verify or "", checked), resume)


def _continued(tx: Tx, row: Run, resume: str) -> Turn:
    before = None if row.continues is None else tx.runs.get(row.continues)
    if row.trigger_kind != MESSAGE:
        files = () if resume or before is None else _files(before, "")
        if review.snapshots_of(row).session is not None:
            return Turn(1, SPEAKS, resume, files, tells_trigger=True, instructs=True)
        return Turn(1, MORE, resume, files, tells_trigger=True)
    said = told_by(tx, row)
    if resume:
        return Turn(1, said, resume)
    if before is None or before.reason == FAILED_SELECTION:
        return Turn(1, said, begins=True)
    return Turn(1, f"You are answered:\n\n{said}", files=_files(before, said))


def told_by(tx: Tx, row: Run) -> str:
    """The message that set the run off."""
    event = None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event)
    payload: Any = {} if event is None else event.payload or {}
    found = payload.get("payload", {}).get("message", {}).get("text")
    return str(found or "Go on.")


def _files(before: Run, said: str) -> tuple[tuple[str, str], ...]:
    asked = before.question or {}
    texts = (("summary.md", before.summary), ("question.md", str(asked.get("text") or "")), ("answer.md", said))
    return tuple((name, text) for name, text in texts if text)


def resumed(tx: Tx, row: Run, preset: Preset) -> str:
    """The program's own name for the last session of this conversation; empty if unknown, or not to be resumed."""
    if not preset.can_resume:
        return ""
    first = row
    for run in _conversation(tx, row):
        if _of_another(run, preset):
            continue
        known = _sessions_of(tx, run)
        if known:
            return known
        first = run
    if first.retries is not None and first.trigger_kind == MESSAGE:  # of a run that began with a conversation of others
        retried = tx.runs.get(first.retries) or first
        return "" if _of_another(retried, preset) else _sessions_of(tx, retried)
    if first is row and row.trigger_kind == MESSAGE and row.continues is None:
        return ""  # the first turn of a conversation that begins with it
    if not preset.named or (first is row and row.continues is not None and not (row.in_force or {}).get("preset")):
        return ""  # by no name of ours; or it has not begun, and all before it were another program's
    return first.id


def _of_another(run: Run, preset: Preset) -> bool:
    """Whether it was started with another preset, such as the one that this is the fallback of."""
    return (run.in_force or {}).get("preset", preset.name) != preset.name


def _sessions_of(tx: Tx, run: Run) -> str:
    """The program's own name for the last session of the run; empty if it told none."""
    known = [one for one in tx.sessions.of_run(run.id) if one.program_session]
    last = max(known, key=lambda one: (one.started_at, one.id), default=None)
    return "" if last is None else last.program_session or ""


def _conversation(tx: Tx, row: Run) -> Iterator[Run]:
    """The run and those it goes on with, the newest first."""
    found: Run | None = row
    for _ in range(LONGEST_CHAIN):
        if found is None:
            return
        yield found
        found = None if found.continues is None else tx.runs.get(found.continues)


def notes_of(tx: Tx, row: Run) -> tuple[int, str]:
    """The version and the text of its automation's notes; 0 and nothing where there are none."""
    found = tx.notes.latest(row.automation_id)
    return (0, "") if found is None else (found.version, found.text)


def cursor_of(tx: Tx, row: Run) -> str:
    """Where its automation's cursor is; empty where it has none yet."""
    found = tx.cursors.get(row.automation_id)
    return "" if found is None else found.value


def first_of(tx: Tx, row: Run) -> str:
    """The first run of the conversation, after which its worktree is named: programs know a session by its place."""
    return row.id if row.continues is None else [run.id for run in _conversation(tx, row)][-1]


def began_by_hand(tx: Tx, row: Run) -> bool:
    """Whether a person began the conversation, in the directory itself: it goes on there."""
    first = [*_conversation(tx, row)][-1]
    return first.trigger_kind == MESSAGE and first.continues is None


def must_wait(tx: Tx, row: Run, node: str) -> bool:
    """Whether the run cannot start here now: what it goes on with is on another node, at work, or not yet stopped."""
    if row.continues is None:
        return False
    earlier = (tx.runs.get(run) for run in (row.continues, row.retries) if run is not None)
    return any(_is_in_the_way(tx, before, node) for before in earlier if before is not None)


def _is_in_the_way(tx: Tx, before: Run, node: str) -> bool:
    if before.node not in {None, node} or not before.ended:
        return True
    return any(one.ended_at is None for one in tx.sessions.of_run(before.id))


def target_of(tx: Tx, row: Run) -> Target | None:
    """The configuration of the run that it goes on with; None where that run is gone, or was never given any."""
    before = None if row.continues is None else tx.runs.get(row.continues)
    if before is None or before.reason == FAILED_SELECTION:
        return None
    return Target(How.DEFAULT, before.configuration, "as the run it goes on with")
