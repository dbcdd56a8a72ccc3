"""The completion contract: an agent's run succeeds only by reporting it; accept, answer a replay, or refuse it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from lamplighter.domain.runs.model import ACTIVE, Run, RunState
from lamplighter.kit.canonical import canonical
from lamplighter.kit.errors import Conflict, LampError, UsageError

TOOL = "automation_complete"
ALIAS = "automation.complete"
LONGEST_SUMMARY = 100_000
LONGEST_REF = 2_000
MOST_ENTRIES = 200

_RUN_ID = re.compile(r"run_[0-9a-hjkmnp-tv-z]{26}")
_COMPLETION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,199}")
_UNKEEPABLE = re.compile("[\0\ud800-\udfff]")  # what a database cannot hold as text


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"

    @property
    def state(self) -> RunState:
        return RunState(self.value)


@dataclass(frozen=True)
class Completion:
    """An agent's report about its own run. Contents are compared as canonical JSON, so key order does not matter."""

    run: str
    completion_id: str
    outcome: Outcome
    summary: str = ""
    citations: tuple[Any, ...] = ()
    diff_ref: str = ""
    test_report_ref: str = ""
    side_effect_refs: tuple[Any, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run,
            "completion_id": self.completion_id,
            "outcome": self.outcome.value,
            "summary_markdown": self.summary or None,
            "citations": list(self.citations),
            "diff_ref": self.diff_ref or None,
            "test_report_ref": self.test_report_ref or None,
            "side_effect_refs": list(self.side_effect_refs),
        }

    @property
    def content(self) -> str:
        return canonical(self.as_json())


class CompletionInvalid(UsageError):
    def __init__(self, problems: list[str]) -> None:
        super().__init__(
            f"The completion was not recorded: {'; '.join(problems)}.",
            hint=f"Mend the arguments and call {TOOL} again.",
        )
        self.problems = tuple(problems)


class CompletionRefused(Conflict):
    """The completion was refused and the run's state stays as it was; `code` names the cause for programs."""

    code: ClassVar[str] = "refused"


class SessionMismatch(CompletionRefused):
    code = "session_mismatch"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} belongs to another session.", hint="Complete the run that your own prompt named."
        )


class CompletionConflict(CompletionRefused):
    code = "completion_conflict"

    def __init__(self, run: Run, *, same_id: bool) -> None:
        what = "with other content" if same_id else "under another completion id"
        super().__init__(
            f"Run {run.id} is already completed {what}; it stays {run.state}.",
            hint="Nothing needs to be done; a completion is final.",
        )


class NotAnAgents(CompletionRefused):
    code = "not_an_agents_run"

    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} is no agent's: it ends when its command or its formula does.",
            hint=f"`lamp run cancel {run.id}` ends it now.",
        )


class TooLate(CompletionRefused):
    code = "too_late"

    def __init__(self, run: Run) -> None:
        why = f" ({run.reason})" if run.reason else ""
        super().__init__(
            f"Run {run.id} had already ended as {run.state}{why}; its record keeps the first report that came after.",
            hint=f"Stop working on it. `lamp run retry {run.id}` starts a new run.",
        )


class NotStarted(CompletionRefused):
    code = "not_started"

    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id} is only {run.state}.", hint="Only a running run can be completed.")


@dataclass(frozen=True)
class Recorded:
    """The completion that is already recorded for a run."""

    completion_id: str
    content: str


@dataclass(frozen=True)
class Accept:
    to: RunState


@dataclass(frozen=True)
class Replay:
    """The same completion was recorded before: give the same answer, write nothing."""


@dataclass(frozen=True)
class Late:
    """Refused, but the report is recorded in the run's timeline; raising inside the transaction would lose it."""

    error: TooLate


@dataclass(frozen=True)
class Refuse:
    error: CompletionRefused


Judgement = Accept | Replay | Late | Refuse


def judge(run: Run, recorded: Recorded | None, completion: Completion, *, session: str | None = None) -> Judgement:
    """Decide about a completion. `session` is the caller's session, if it has one."""
    if session and run.session_id and session != run.session_id:
        return Refuse(SessionMismatch(run))
    if recorded is not None:
        same_id = recorded.completion_id == completion.completion_id
        if same_id and recorded.content == completion.content:
            return Replay()
        return Refuse(CompletionConflict(run, same_id=same_id))
    if run.state is RunState.RUNNING:
        return Accept(completion.outcome.state)
    return Refuse(NotStarted(run)) if run.state in ACTIVE else Late(TooLate(run))


def error_of(judgement: Judgement) -> LampError | None:
    """The error to raise to the caller after the transaction has committed; None if there is none."""
    return judgement.error if isinstance(judgement, Late | Refuse) else None


def parse(args: Mapping[str, Any]) -> Completion:
    """A completion from an agent's arguments. Raises CompletionInvalid with every problem.

    Quotes around ids are removed, because some programs add them; unknown arguments are ignored, because some programs
    add their own to every tool call.
    """
    problems: list[str] = []
    read = _Reader(args, problems.append)
    completion = Completion(
        run=read.id("run_id", "runId", _RUN_ID),
        completion_id=read.id("completion_id", "completionId", _COMPLETION_ID),
        outcome=read.outcome(),
        summary=read.text("summary_markdown", "summaryMarkdown", LONGEST_SUMMARY),
        citations=read.entries("citations", "citations"),
        diff_ref=read.text("diff_ref", "diffRef", LONGEST_REF),
        test_report_ref=read.text("test_report_ref", "testReportRef", LONGEST_REF),
        side_effect_refs=read.entries("side_effect_refs", "sideEffectRefs"),
    )
    if problems:
        raise CompletionInvalid(problems)
    return completion


def run_id(text: str) -> str | None:
    """`text` as a run id, without the quotes and spaces that programs put around it; None if it is no run id."""
    bare = _bare(text)
    return bare if _RUN_ID.fullmatch(bare) else None


class _Reader:
    def __init__(self, args: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        self._args = args
        self._tell = tell

    def id(self, name: str, alias: str, pattern: re.Pattern[str]) -> str:
        value = self._value(name, alias)
        if value is None or value == "":
            self._tell(f"`{name}` is missing")
            return ""
        text = _bare(value) if isinstance(value, str) else ""
        if not pattern.fullmatch(text):
            self._tell(f"`{name}` is not the one from your instructions")
        return text

    def outcome(self) -> Outcome:
        value = self._args.get("outcome")
        text = _bare(value).lower() if isinstance(value, str) else ""
        found = next((one for one in Outcome if one.value == text), None)
        if found is None:
            self._tell(f"`outcome` must be one of {', '.join(Outcome)}")
        return found or Outcome.FAILED

    def text(self, name: str, alias: str, longest: int) -> str:
        value = self._value(name, alias)
        if value is None:
            return ""
        if not isinstance(value, str) or _UNKEEPABLE.search(value):
            self._tell(f"`{name}` must be text")
            return ""
        if len(value) > longest:
            self._tell(f"`{name}` has {len(value)} characters; at most {longest} are kept")
        return value.strip()

    def entries(self, name: str, alias: str) -> tuple[Any, ...]:
        """A list of texts or objects; a single one counts as a list of one."""
        value = self._value(name, alias)
        if value is None or value == "":
            return ()
        found = [value] if isinstance(value, str | dict) else value
        if not isinstance(found, list | tuple) or not all(isinstance(one, str | dict) for one in found):
            self._tell(f"`{name}` must be a list of texts or objects")
            return ()
        if len(found) > MOST_ENTRIES:
            self._tell(f"`{name}` has {len(found)} entries; at most {MOST_ENTRIES} are kept")
        return self._keepable(name, tuple(found))

    def _keepable(self, name: str, found: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            size = max((len(canonical(one)) for one in found), default=0)
            sound = _sound(found)
        except (ValueError, TypeError, RecursionError):
            size, sound = 0, False
        if not sound:
            self._tell(f"`{name}` holds what cannot be kept as text")
        elif size > LONGEST_REF:
            self._tell(f"`{name}` has an entry of {size} characters; at most {LONGEST_REF} are kept")
        return found if sound else ()

    def _value(self, name: str, alias: str) -> Any:
        return self._args[name] if self._args.get(name) is not None else self._args.get(alias)


def _sound(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_sound(key) and _sound(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return all(_sound(one) for one in value)
    return not (isinstance(value, str) and _UNKEEPABLE.search(value))


def _bare(text: str) -> str:
    return text.strip().strip("\"'`").strip()
